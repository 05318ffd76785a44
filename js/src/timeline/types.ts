// What the timeline is made of. Times are ns relative to the job's start: exact integers in a float64.

export interface TrackInfo {
  rank: number;
  kind: "stream" | "sync" | "annotation" | "thread";
  label: string;
  /** what runs it: a device or a process */
  process: string;
  /** what it is, in words that are the same for every rank */
  alike: string;
  /** its first lane; one lane per entry of `sizes` */
  first: number;
  /** slices per lane */
  sizes: number[];
}

export interface IterationInfo {
  iteration: number;
  rank: number;
  label: string;
  start: number;
  end: number;
}

/** A stretch whose records cannot be true (hta_widgets/timeline/doubtful.py). */
export interface Doubtful {
  rank: number;
  /** the lane of an estimated slice; null for a step that is left out */
  lane: number | null;
  start: number;
  dur: number;
  reason: string;
}

/** Everything that is known before the first slice (hta_widgets/timeline/outline.py). */
export interface Outline {
  n: number;
  mode: "client" | "kernel";
  extent: [number, number];
  /** slices lie where a replay puts them, not as recorded */
  replayed?: boolean;
  ranks: { rank: number; label: string }[];
  tracks: TrackInfo[];
  names: string[];
  categories: string[];
  /** per kind: index into `categories` */
  category_of: number[];
  /** per kind: event class (hta_widgets/trace/classify.py) */
  class_of: number[];
  iterations: IterationInfo[];
  /** per class group (compute, communication, memory), per bin: busy lanes */
  activity: number[][];
  doubtful?: Doubtful[];
}

/** Slices, or merged slices, lane after lane and sorted by start inside a lane. */
export interface Items {
  start: Float64Array;
  /** exact, in half the memory where all are below 4.29 s */
  dur: Float64Array | Uint32Array;
  kind: Uint16Array | Uint32Array;
  eventClass: Uint8Array;
  /** of merged items only: id of the longest slice, how many slices, and the time that they cover */
  id: Uint32Array | null;
  count: Uint32Array | Uint8Array | null;
  busy: Float64Array | Float32Array | Uint32Array | null;
  /** as recorded, where the slices lie at replayed times */
  was?: { start: Float64Array; dur: Float64Array };
  /** lane l owns positions first[l] .. last[l] - 1 */
  first: Uint32Array;
  last: Uint32Array;
}

/** One slice, or one merged item under the pointer (`count` > 1; then it describes the longest of them). */
export interface Slice {
  id: number;
  lane: number;
  start: number;
  dur: number;
  kind: number;
  count: number;
  /** [start, dur] as recorded, where these are replayed times */
  was?: [number, number];
}

/** A launching host call and the device slice that it launched. */
export type Flow = [Slice, Slice];

export interface View {
  t0: number;
  t1: number;
}
