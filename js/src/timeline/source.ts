// Where slices come from. The renderer asks for items at a resolution and never waits for them.

import type { Choice, Found } from "./matches";
import { lowerBound } from "./pyramid";
import type { Flow, Items, Slice } from "./types";
import type { WindowSums } from "./window_sums";

export type Relation = "parent" | "child";
export type Gap = [start: number, end: number];

export interface Source {
  /** The best items at hand to draw these lanes, or null before any. May fetch better ones and report them. */
  items(t0: number, t1: number, pixels: number, lanes: readonly number[]): Items | null;
  /** What is drawn at a place: the item under `t`, else the nearest within `tolerance`. */
  find(lane: number, t: number, tolerance: number): Slice | null;
  slice(id: number): Promise<Slice | null>;
  neighbour(slice: Slice, step: 1 | -1): Promise<Slice | null>;
  /** Launch flows of a slice that are known without asking. */
  knownFlows(slice: Slice): Flow[];
  flows(slice: Slice): Promise<Flow[]>;
  /** The slice around this one on its track, or the first one inside it. */
  relative(slice: Slice, to: Relation): Promise<Slice | null>;
  /** The time around `t` without a slice on any of `lanes`, as far as known without asking; null if one is there. */
  knownGap(lanes: readonly number[], t: number): Gap | null;
  gap(lanes: readonly number[], t: number): Promise<Gap | null>;
  /** What lies in a window of time on these lanes, summed up. */
  sums(t0: number, t1: number, lanes: readonly number[]): Promise<WindowSums>;
  /** Choose the slices that `matchItems` and `nextMatch` are about; null for none. */
  choose(choice: Choice | null): Promise<Found>;
  /** The chosen ones of what `items` gave last. */
  matchItems(): Items | null;
  /** Some of the chosen slices: by start, or the longest first. */
  matchPage(order: "start" | "dur", offset: number, limit: number): Promise<Slice[]>;
  /** The chosen slice after, or before, a place in time; goes on at the other end. */
  nextMatch(from: { start: number; id: number }, step: 1 | -1): Promise<Slice | null>;
}

export function sliceAt(items: Items, at: number, lane: number): Slice {
  const { was } = items;
  return {
    ...(was && { was: [was.start[at] as number, was.dur[at] as number] as [number, number] }),
    id: items.id ? (items.id[at] as number) : at,
    lane,
    start: items.start[at] as number,
    dur: items.dur[at] as number,
    kind: items.kind[at] as number,
    count: items.count ? (items.count[at] as number) : 1,
  };
}

export function findIn(items: Items, lane: number, t: number, tolerance: number): Slice | null {
  const from = items.first[lane] as number;
  const to = items.last[lane] as number;
  const after = lowerBound(items.start, from, to, t);
  let best = -1;
  let distance = tolerance;
  for (const at of [after - 1, after]) {
    if (at < from || at >= to) continue;
    const start = items.start[at] as number;
    const gap = Math.max(start - t, t - start - (items.dur[at] as number), 0);
    if (gap <= distance) {
      best = at;
      distance = gap;
    }
  }
  return best < 0 ? null : sliceAt(items, best, lane);
}

/** See `Source.knownGap`; without a neighbour the gap reaches to the end of `extent`. */
export function gapIn(
  items: Items,
  lanes: readonly number[],
  t: number,
  extent: readonly [number, number],
): Gap | null {
  let [start, end] = extent;
  for (const lane of lanes) {
    const from = items.first[lane] as number;
    const to = items.last[lane] as number;
    let after = lowerBound(items.start, from, to, t);
    if (after < to && items.start[after] === t) after++;
    if (after > from)
      start = Math.max(start, (items.start[after - 1] as number) + (items.dur[after - 1] as number));
    if (after < to) end = Math.min(end, items.start[after] as number);
  }
  return start <= t && t < end ? [start, end] : null;
}
