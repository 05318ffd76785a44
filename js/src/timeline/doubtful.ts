// Hatches slices whose times are estimates, and steps that are left out because records are missing.

import { type Place, TOP, xOf } from "./frame";
import type { Layout } from "./layout";
import type { Palette } from "./palette";
import type { Doubtful, Outline } from "./types";

const SPACING = 6;

export function drawDoubtful(
  context: CanvasRenderingContext2D,
  place: Place,
  layout: Layout,
  doubtful: readonly Doubtful[],
  palette: Palette,
): void {
  if (doubtful.length === 0) return;
  const rows = new Map(layout.rows.map((row) => [row.lane, row]));
  context.save();
  context.strokeStyle = palette.text;
  context.lineWidth = 1;
  for (const { rank, lane, start, dur } of doubtful) {
    const left = Math.max(xOf(place, start), place.gutter);
    const right = Math.min(Math.max(xOf(place, start + dur), left + 2), place.width);
    if (right <= left) continue;
    if (lane === null) {
      context.globalAlpha = 0.25;
      for (const { y, bottom } of layout.stretches.filter((stretch) => stretch.rank === rank))
        hatch(context, left, TOP + y - place.scroll, right, TOP + bottom - place.scroll, place);
      continue;
    }
    const row = rows.get(lane);
    context.globalAlpha = 0.8;
    if (row)
      hatch(context, left, TOP + row.y - place.scroll, right, TOP + row.y + row.h - 1 - place.scroll, place);
  }
  context.restore();
}

/** Lines from the lower left to the upper right of a box, at the same places wherever the box begins. */
function hatch(
  context: CanvasRenderingContext2D,
  left: number,
  top: number,
  right: number,
  bottom: number,
  place: Place,
): void {
  const [upper, lower] = [Math.max(top, TOP), Math.min(bottom, place.height)];
  if (lower <= upper) return;
  context.save();
  context.beginPath();
  context.rect(left, upper, right - left, lower - upper);
  context.clip();
  context.beginPath();
  const height = lower - upper;
  for (let x = left - height - ((left + lower) % SPACING); x < right; x += SPACING) {
    context.moveTo(x, lower);
    context.lineTo(x + height, upper);
  }
  context.stroke();
  context.restore();
}

/** What is said of a moment on a lane: why its slice is an estimate, and why its step is left out. */
export function doubtsAt(outline: Outline, lane: number, t: number): string[] {
  const rank = outline.tracks.find(
    (track) => lane >= track.first && lane < track.first + track.sizes.length,
  )?.rank;
  return (outline.doubtful ?? [])
    .filter(
      (each) =>
        each.rank === rank &&
        (each.lane === null || each.lane === lane) &&
        each.start <= t &&
        t < each.start + Math.max(each.dur, 1),
    )
    .map(({ reason }) => reason);
}
