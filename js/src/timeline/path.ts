// The critical path on the lanes: which parts of which slices lie on it, and what bounds each of them.

import { duration, exact } from "../format";
import type { Path } from "./decode";
import { shortName } from "./labels";
import { Levels } from "./matches";
import type { Items, Outline } from "./types";

const BEFORE_ITS_SLICE = 1;
const INFERRED = 2;
const UNRECORDED = 4;

/** What holds the job up in each kind of segment (`bound_by` of hta_widgets/analysis/critical_path). */
const LIMITS: Record<string, string> = {
  cpu_bound: "the host",
  data_loading: "data loading",
  gpu_compute_bound: "a compute kernel",
  gpu_communication_bound: "a communication kernel",
  gpu_memory_bound: "a memory copy",
  kernel_launch_overhead: "the delay of a launch",
  kernel_kernel_overhead: "the gap between kernels",
  sync: "synchronisation",
};

export class CriticalPath {
  readonly levels: Levels;
  /** positions of the segments by lane, in time order */
  #ofLane = new Map<number, number[]>();

  constructor(
    readonly path: Path,
    private readonly outline: Outline,
  ) {
    for (let i = 0; i < path.n; i++) {
      const lane = path.lane[i] as number;
      if (lane < 0) continue;
      const before = this.#ofLane.get(lane);
      if (before) before.push(i);
      else this.#ofLane.set(lane, [i]);
    }
    this.levels = new Levels(this.#items());
    void this.levels.refine(outline.extent[1] - outline.extent[0]);
  }

  /** Whether a segment is no part of a slice: a wait, or something that is not recorded. */
  bare(segment: number): boolean {
    const special = this.path.special[segment] as number;
    return (special & (BEFORE_ITS_SLICE | UNRECORDED)) > 0 || (this.path.kind[segment] as number) < 0;
  }

  /** The segment on a lane at a time, or -1. */
  at(lane: number, t: number): number {
    const { start, end } = this.path;
    return this.#ofLane.get(lane)?.find((i) => (start[i] as number) <= t && t < (end[i] as number)) ?? -1;
  }

  /** What bounds a segment, as lines for the tooltip. */
  describe(segment: number): string[] {
    const { start, end, kind, limit, limits, special } = this.path;
    const bound = limits[limit[segment] as number] as string;
    const flags = special[segment] as number;
    const ns = (end[segment] as number) - (start[segment] as number);
    const lines = [
      `on the critical path for ${duration(ns)} (${exact(ns, "ns")})`,
      `bound by ${LIMITS[bound] ?? bound.replaceAll("_", " ")}${flags & INFERRED ? " (inferred)" : ""}`,
    ];
    const name = this.outline.names[kind[segment] as number];
    if (name !== undefined && flags & BEFORE_ITS_SLICE) lines.push(`before ${shortName(name)} begins`);
    if (flags & UNRECORDED)
      lines.push(`nothing recorded on the thread${name === undefined ? "" : `, in ${shortName(name)}`}`);
    return lines;
  }

  /** The slices' parts on the path as items to draw. Segments do not overlap: those of a lane are in order. */
  #items(): Items {
    const { path, outline } = this;
    const lanes = outline.tracks.reduce((sum, track) => sum + track.sizes.length, 0);
    const first = new Uint32Array(lanes);
    const last = new Uint32Array(lanes);
    const order: number[] = [];
    for (let lane = 0; lane < lanes; lane++) {
      first[lane] = order.length;
      for (const i of this.#ofLane.get(lane) ?? []) if (!this.bare(i)) order.push(i);
      last[lane] = order.length;
    }
    const start = Float64Array.from(order, (i) => path.start[i] as number);
    const kind = Uint32Array.from(order, (i) => path.kind[i] as number);
    return {
      start,
      dur: Float64Array.from(order, (i) => (path.end[i] as number) - (path.start[i] as number)),
      kind,
      eventClass: Uint8Array.from(kind, (k) => outline.class_of[k] as number),
      id: null,
      count: null,
      busy: null,
      first,
      last,
    };
  }
}
