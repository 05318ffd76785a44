// Reads the columns that hta_widgets/timeline/pack.py writes.

import type { Items, Outline } from "./types";

const ESCAPE = 0xffffffff;

export interface TimesLayout {
  n: number;
  origin: number;
  gap_escapes: number;
  dur_escapes: number;
  kind_bytes: number;
  /** recorded times follow, as differences */
  moved?: boolean;
}
export interface SlicesLayout extends TimesLayout {
  flows: number;
}
export interface WindowLayout extends TimesLayout {
  /** items per requested lane */
  sizes: number[];
}

export interface Flows {
  source: Int32Array;
  target: Int32Array;
}

export async function inflate(chunks: readonly DataView[]): Promise<Uint8Array<ArrayBuffer>> {
  const packed = chunks.map((c) => new Uint8Array(c.buffer as ArrayBuffer, c.byteOffset, c.byteLength));
  const reader = new Blob(packed).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
  const parts: Uint8Array[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
  }
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/**
 * What `read` makes of the inflated chunks, which it must not keep: their memory is given back at once. Little else here
 * would have the browser collect it soon.
 */
export async function unpacked<T>(chunks: readonly DataView[], read: (bytes: Uint8Array) => T): Promise<T> {
  const bytes = await inflate(chunks);
  const result = read(bytes);
  (bytes.buffer as { transfer?(length: number): unknown }).transfer?.(0); // browsers of before 2024 have none
  return result;
}

export interface PathLayout {
  n: number;
  /** what can bound a segment; `Path.limit` counts in it */
  limits: string[];
  /** the answer in one sentence */
  message: string;
}

/** Segments of critical paths, as hta_widgets/timeline/path_lanes.py lists them: by rank and time. */
export interface Path extends PathLayout {
  start: Float64Array;
  end: Float64Array;
  /** lane, slice and kind: -1 for none */
  lane: Int32Array;
  id: Int32Array;
  kind: Int32Array;
  limit: Uint8Array;
  /** 1: its slice has not begun yet; 2: inferred; 4: what its thread did is not recorded */
  special: Uint8Array;
}

export function decodePath(bytes: Uint8Array, layout: PathLayout): Path {
  const cursor = new Cursor(bytes);
  const { n } = layout;
  const start = cursor.float64(n);
  const end = cursor.float64(n);
  const [lane, id, kind] = [cursor.uint32(n), cursor.uint32(n), cursor.uint32(n)].map(
    (column) => new Int32Array(column.buffer),
  ) as [Int32Array, Int32Array, Int32Array];
  return { ...layout, start, end, lane, id, kind, limit: cursor.uint8(n), special: cursor.uint8(n) };
}

/** The least values of each counter, then its greatest, as hta_widgets/timeline/counter_pixels.py packs them. */
export function decodeCounters(bytes: Uint8Array, pixels: number): Float64Array[] {
  const cursor = new Cursor(bytes);
  const columns: Float64Array[] = [];
  while (!cursor.done) columns.push(cursor.shuffledFloat64(pixels));
  return columns;
}

/** Takes byte-shuffled columns off the front of a block, one after the other. */
class Cursor {
  #at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  uint8(n: number): Uint8Array {
    const column = this.bytes.slice(this.#at, this.#at + n);
    this.#at += n;
    return column;
  }

  uint16(n: number): Uint16Array {
    return new Uint16Array(this.#unshuffled(n, 2));
  }

  uint32(n: number): Uint32Array {
    return new Uint32Array(this.#unshuffled(n, 4));
  }

  /** Reads a column where it lies. */
  peeked32(n: number): (i: number) => number {
    const { bytes } = this;
    const at = this.#at;
    this.#at += 4 * n;
    const byte = (i: number) => bytes[at + i] as number;
    return (i) => (byte(i) | (byte(i + n) << 8) | (byte(i + 2 * n) << 16) | (byte(i + 3 * n) << 24)) >>> 0;
  }

  kinds(n: number, size: number): Uint16Array | Uint32Array {
    return size === 2 ? this.uint16(n) : this.uint32(n);
  }

  shuffledFloat64(n: number): Float64Array {
    return new Float64Array(this.#unshuffled(n, 8));
  }

  get done(): boolean {
    return this.#at >= this.bytes.length;
  }

  float64(n: number): Float64Array {
    return new Float64Array(this.uint8(n * 8).buffer);
  }

  #unshuffled(n: number, size: number): ArrayBuffer {
    const out = new Uint8Array(n * size);
    for (let plane = 0; plane < size; plane++) {
      const from = this.#at + plane * n;
      for (let i = 0; i < n; i++) out[i * size + plane] = this.bytes[from + i] as number;
    }
    this.#at += n * size;
    return out.buffer;
  }
}

export function decodeSlices(
  bytes: Uint8Array,
  layout: SlicesLayout,
  outline: Outline,
): { items: Items; flows: Flows } {
  const cursor = new Cursor(bytes);
  const sizes = outline.tracks.flatMap((track) => track.sizes);
  const { first, last } = bounds(sizes, (i) => i, sizes.length);
  const { start, dur } = times(cursor, layout, sizes);
  const kind = cursor.kinds(layout.n, layout.kind_bytes);
  const eventClass = new Uint8Array(layout.n);
  for (let i = 0; i < layout.n; i++) eventClass[i] = outline.class_of[kind[i] as number] as number;
  const source = accumulated(cursor.uint32(layout.flows));
  const target = accumulated(cursor.uint32(layout.flows));
  return {
    items: {
      ...recorded(cursor, layout, start, dur),
      start,
      dur,
      kind,
      eventClass,
      id: null,
      count: null,
      busy: null,
      first,
      last,
    },
    flows: { source, target },
  };
}

/** Items of the requested `lanes`; every other of the `laneCount` lanes is empty. */
export function decodeWindow(
  bytes: Uint8Array,
  layout: WindowLayout,
  lanes: readonly number[],
  laneCount: number,
): Items {
  const cursor = new Cursor(bytes);
  const { start, dur } = times(cursor, layout, layout.sizes);
  const kind = cursor.kinds(layout.n, layout.kind_bytes);
  const id = cursor.uint32(layout.n);
  const count = cursor.uint32(layout.n);
  const eventClass = cursor.uint8(layout.n);
  const cover = cursor.uint8(layout.n);
  const busy = new Float32Array(layout.n);
  for (let i = 0; i < layout.n; i++) busy[i] = ((dur[i] as number) * (cover[i] as number)) / 255;
  const { first, last } = bounds(layout.sizes, (i) => lanes[i] as number, laneCount);
  return {
    ...recorded(cursor, layout, start, dur),
    start,
    dur,
    kind,
    eventClass,
    id,
    count,
    busy,
    first,
    last,
  };
}

function times(cursor: Cursor, layout: TimesLayout, sizes: readonly number[]) {
  const gapAt = cursor.peeked32(layout.n);
  const durs = cursor.uint32(layout.n);
  const gapEscapes = cursor.float64(layout.gap_escapes);
  const durEscapes = cursor.float64(layout.dur_escapes);
  const start = new Float64Array(layout.n);
  const dur = layout.dur_escapes ? new Float64Array(durs) : durs;
  let gapsTaken = 0;
  let dursTaken = 0;
  let i = 0;
  for (const size of sizes) {
    let end = layout.origin;
    for (const stop = i + size; i < stop; i++) {
      const gap = gapAt(i);
      const length = durs[i] as number;
      start[i] = end + (gap === ESCAPE ? (gapEscapes[gapsTaken++] as number) : gap);
      if (length === ESCAPE) dur[i] = durEscapes[dursTaken++] as number;
      end = (start[i] as number) + (dur[i] as number);
    }
  }
  return { start, dur };
}

/** `Items.was`, if these are replayed times. */
function recorded(cursor: Cursor, { moved, n }: TimesLayout, start: Items["start"], dur: Items["dur"]) {
  if (!moved) return {};
  const [starts, durs] = [start, dur].map((now) => {
    const was = cursor.float64(n);
    return was.map((by, i) => by + (now[i] as number));
  }) as [Float64Array, Float64Array];
  return { was: { start: starts, dur: durs } };
}

function bounds(sizes: readonly number[], laneOf: (index: number) => number, laneCount: number) {
  const first = new Uint32Array(laneCount);
  const last = new Uint32Array(laneCount);
  let at = 0;
  sizes.forEach((size, index) => {
    first[laneOf(index)] = at;
    at += size;
    last[laneOf(index)] = at;
  });
  return { first, last };
}

/** Undo numpy.diff; the differences are int32 in two's complement. */
function accumulated(differences: Uint32Array): Int32Array {
  const values = new Int32Array(differences.buffer);
  for (let i = 1; i < values.length; i++) values[i] = (values[i] as number) + (values[i - 1] as number);
  return values;
}
