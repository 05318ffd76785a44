// Under which headers tracks stand, and in which order.
//
// hta_widgets/timeline/lane_choice.py has the same rule.

import type { TrackName } from "./lane_choice";
import type { Outline, TrackInfo } from "./types";

/** All of a rank; each process and device of it; or the same stream, or kind of thread, of all ranks. */
export type Grouping = "rank" | "process" | "lane";

export interface Group {
  text: string;
  tracks: TrackInfo[];
}

const KINDS = ["stream", "sync", "annotation", "thread"];

/** Groups in the order of their ranks; those of all ranks in the order of their kinds. */
export function grouped(
  outline: Outline,
  tracks: readonly TrackInfo[],
  by: Grouping,
  order: readonly TrackName[],
): Group[] {
  const groups = new Map<string, TrackInfo[]>();
  for (const track of byKind(tracks, by)) {
    const text = groupOf(outline, track, by);
    const those = groups.get(text);
    if (those) those.push(track);
    else groups.set(text, [track]);
  }
  return [...groups].map(([text, those]) => ({ text, tracks: ordered(those, order) }));
}

export function groupOf(outline: Outline, track: TrackInfo, by: Grouping): string {
  if (by === "lane") return `${track.alike} of each rank`;
  const rank = `Rank ${labelOf(outline, track)}`;
  return by === "rank" ? rank : `${rank} · ${track.process}`;
}

/** Of each outline the labels of its ranks: there may be thousands. */
const labels = new WeakMap<Outline, Map<number, string>>();

export function labelOf(outline: Outline, { rank }: Pick<TrackInfo, "rank">): string {
  let known = labels.get(outline);
  if (!known) {
    known = new Map(outline.ranks.map((one) => [one.rank, one.label]));
    labels.set(outline, known);
  }
  return known.get(rank) ?? String(rank);
}

/** Those that were put in an order come first, in it. */
export function ordered(tracks: readonly TrackInfo[], order: readonly TrackName[]): TrackInfo[] {
  if (order.length === 0) return [...tracks];
  const place = (track: TrackInfo) => {
    const at = order.findIndex(([rank, label]) => rank === track.rank && label === track.label);
    return at < 0 ? order.length : at;
  };
  return [...tracks].sort((a, b) => place(a) - place(b));
}

/** The order in which a track of a group stands before another one of it, or behind them all. */
export function reordered(
  order: readonly TrackName[],
  group: readonly TrackInfo[],
  track: TrackInfo,
  before: TrackInfo | undefined,
): TrackName[] {
  const others = group.filter((one) => one !== track);
  const at = before ? others.indexOf(before) : others.length;
  const next = [...others.slice(0, at), track, ...others.slice(at)].map(
    ({ rank, label }): TrackName => [rank, label],
  );
  const isOf = ([rank, label]: TrackName) => next.some((one) => one[0] === rank && one[1] === label);
  return [...order.filter((one) => !isOf(one)), ...next];
}

function byKind(tracks: readonly TrackInfo[], by: Grouping): readonly TrackInfo[] {
  if (by !== "lane") return tracks;
  return [...tracks].sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind));
}
