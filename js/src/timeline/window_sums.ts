// What lies in a window of time on some lanes, summed up: for the words beside a brush while it is drawn.
//
// hta_widgets/timeline/window_sums.py has the same rule, for what the browser does not hold.

import { counted, duration, exact, grouped, percent } from "../format";
import { shortName } from "./labels";
import { labelOf } from "./lane_groups";
import { range } from "./pyramid";
import { type Facts, trackOf } from "./tooltip";
import type { Items, Outline } from "./types";

export interface WindowSums {
  /** how many slices begin or run in it */
  slices: number;
  /** of each rank how long at least one of the streams looked at works, ns */
  busy: [rank: number, ns: number][];
  /** the kinds with most time, on streams where there are any, else on threads with what they call */
  longest: [kind: number, ns: number, slices: number][];
}

const NAMED = 3;
/** So many ranks are told one by one. */
const TOLD_RANKS = 4;

export function windowSums(
  outline: Outline,
  items: Items,
  t0: number,
  t1: number,
  lanes: readonly number[],
): WindowSums {
  const kindOf = lanes.map((lane) => trackOf(outline, lane)?.kind);
  const named = kindOf.includes("stream") ? "stream" : "thread";
  const time = new Float64Array(outline.names.length);
  const count = new Uint32Array(outline.names.length);
  const streams = new Map<number, [from: number, to: number][]>();
  let slices = 0;
  lanes.forEach((lane, i) => {
    const [from, to] = range(items, lane, t0, t1);
    slices += to - from;
    if (kindOf[i] !== named) return;
    for (let at = from; at < to; at++) {
      const start = items.start[at] as number;
      const kind = items.kind[at] as number;
      time[kind] =
        (time[kind] as number) + Math.min(start + (items.dur[at] as number), t1) - Math.max(start, t0);
      count[kind] = (count[kind] as number) + 1;
    }
    if (named !== "stream") return;
    const rank = trackOf(outline, lane)?.rank as number;
    streams.set(rank, [...(streams.get(rank) ?? []), [from, to]]);
  });
  const longest = [...time.keys()].filter((kind) => (time[kind] as number) > 0);
  longest.sort((a, b) => (time[b] as number) - (time[a] as number) || a - b);
  return {
    slices,
    busy: [...streams].map(([rank, ranges]) => [rank, covered(items, ranges, t0, t1)]),
    longest: longest.slice(0, NAMED).map((kind) => [kind, time[kind] as number, count[kind] as number]),
  };
}

/** How long at least one of the lanes works: their slices in the order of their starts. */
function covered(items: Items, ranges: [from: number, to: number][], t0: number, t1: number): number {
  const at = ranges.map(([from]) => from);
  let reached = t0;
  let sum = 0;
  for (;;) {
    let next = -1;
    for (let lane = 0; lane < at.length; lane++) {
      if ((at[lane] as number) >= (ranges[lane] as [number, number])[1]) continue;
      if (next < 0 || startOf(items, at[lane]) < startOf(items, at[next])) next = lane;
    }
    if (next < 0) return sum;
    const start = Math.max(startOf(items, at[next]), reached);
    const end = Math.min(startOf(items, at[next]) + (items.dur[at[next] as number] as number), t1);
    if (end > start) {
      sum += end - start;
      reached = end;
    }
    at[next] = (at[next] as number) + 1;
  }
}

function startOf(items: Items, at: number | undefined): number {
  return items.start[at as number] as number;
}

/** In words: what a brush holds. */
export function describeWindow(outline: Outline, t0: number, t1: number, sums: WindowSums): Facts {
  const lines = [`${counted(sums.slices, "slice")} on the lanes shown`, ...busyLines(outline, t1 - t0, sums)];
  const called = sums.busy.length > 0 ? "" : ", with what it calls";
  for (const [kind, ns, slices] of sums.longest)
    lines.push(
      `${duration(ns)} in ${grouped(slices)} × ${shortName(outline.names[kind] as string)}${called}`,
    );
  return { name: `${duration(t1 - t0)} (${exact(t1 - t0, "ns")})`, lines };
}

function busyLines(outline: Outline, ns: number, { busy }: WindowSums): string[] {
  if (busy.length === 0) return [];
  const told = busy.map(([rank, of]) => ({ share: (100 * of) / ns, label: labelOf(outline, { rank }) }));
  const one = ({ share, label }: (typeof told)[number]) => `${percent(share)} (rank ${label})`;
  if (told.length === 1) return [`streams busy ${percent(told[0]?.share ?? 0)}`];
  if (told.length <= TOLD_RANKS) return [`streams busy ${told.map(one).join(", ")}`];
  told.sort((a, b) => a.share - b.share);
  const mean = told.reduce((sum, { share }) => sum + share, 0) / told.length;
  const [least, most] = [told[0], told.at(-1)] as [(typeof told)[number], (typeof told)[number]];
  return [`streams busy ${one(least)} to ${one(most)}, ${percent(mean)} on average`];
}
