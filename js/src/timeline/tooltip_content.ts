// The tooltip for what is under the pointer: a slice, a gap between slices, or a segment of the critical path.

import { counted } from "../format";
import { doubtsAt } from "./doubtful";
import type { Extent } from "./overlay";
import type { Palette } from "./palette";
import type { CriticalPath } from "./path";
import type { Source } from "./source";
import { describe, describeGap, type Facts, trackOf } from "./tooltip";
import type { Flow, Outline, Slice, TrackInfo } from "./types";

export interface Pointed {
  row: { lane: number };
  t: number;
  slice: Slice | null;
}

/** No slice is outlined. */
const NOWHERE: Extent = { lane: -1, start: -Infinity, dur: 0 };

export interface Tip {
  facts: Facts;
  colour: string;
  extent: Extent;
}

/** Lanes that have to be empty for their stream to be idle, or null where a gap means nothing. */
export function gapLanes(outline: Outline, lane: number): number[] | null {
  const track = trackOf(outline, lane);
  return track?.kind === "stream" ? track.sizes.map((_, i) => track.first + i) : null;
}

/** `flows`: the slice's launch flows, where they are at hand already. */
export function tipFor(
  pointed: Pointed | null,
  outline: Outline,
  source: Source,
  path: CriticalPath | null,
  palette: Palette,
  flows?: readonly Flow[],
): Tip | null {
  if (!pointed) return null;
  const { lane } = pointed.row;
  const segment = path ? path.at(lane, pointed.t) : -1;
  const onPath = path && segment >= 0 ? path.describe(segment) : [];
  const tip = pointed.slice
    ? sliceTip(pointed.slice, outline, flows ?? knownFlows(pointed.slice, source), palette)
    : gapTip(lane, pointed.t, outline, source, palette);
  if (tip) {
    const lines = [...tip.facts.lines, ...doubtsAt(outline, lane, pointed.t), ...onPath];
    return { ...tip, facts: { ...tip.facts, lines } };
  }
  if (!path || segment < 0) return null;
  const start = path.path.start[segment] as number;
  const [name = "", ...lines] = onPath;
  const extent = { lane, start, dur: (path.path.end[segment] as number) - start };
  return { facts: { name, lines }, colour: palette.text, extent };
}

function sliceTip(slice: Slice, outline: Outline, flows: readonly Flow[], palette: Palette): Tip {
  const colour = palette.classes[outline.class_of[slice.kind] as number] ?? [136, 136, 136];
  return { facts: describe(outline, slice, flows), colour: `rgb(${colour.join(" ")})`, extent: slice };
}

function gapTip(lane: number, t: number, outline: Outline, source: Source, palette: Palette): Tip | null {
  const lanes = gapLanes(outline, lane);
  const gap = lanes && source.knownGap(lanes, t);
  if (!gap) return null;
  const extent = { lane, start: gap[0], dur: gap[1] - gap[0] };
  return { facts: describeGap(outline, lane, gap), colour: palette.idle, extent };
}

/** A track under the pointer: its whole name, and what it can do. */
export function trackTip(outline: Outline, { rank, label, sizes }: TrackInfo, palette: Palette): Tip {
  const slices = sizes.reduce((sum, size) => sum + size, 0);
  const of = outline.ranks.find((one) => one.rank === rank)?.label ?? "";
  const lines = [`rank ${of} · ${counted(slices, "slice")}`, "click or P: keep it at the top, or let it go"];
  return { facts: { name: label, lines }, colour: palette.idle, extent: NOWHERE };
}

/** A counter under the pointer. */
export function counterTip(facts: Facts, palette: Palette): Tip {
  return { facts, colour: palette.muted, extent: NOWHERE };
}

function knownFlows(slice: Slice, source: Source): readonly Flow[] {
  return slice.count === 1 ? source.knownFlows(slice) : [];
}
