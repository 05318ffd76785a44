// Hatches slices whose times are estimates, and steps that are left out because records are missing.

import { type Place, TOP, xOf } from "./frame";
import type { Layout } from "./layout";
import type { Palette } from "./palette";
import { trackOf } from "./tooltip";
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
  const steps = new Path2D();
  const slices = new Path2D();
  for (const { rank, lane, start, dur } of doubtful) {
    const left = Math.max(xOf(place, start), place.gutter);
    const right = Math.min(Math.max(xOf(place, start + dur), left + 2), place.width);
    if (right <= left) continue;
    const add = (path: Path2D, y: number, bottom: number) => {
      const [upper, lower] = [Math.max(TOP + y - place.scroll, TOP), TOP + bottom - place.scroll];
      if (upper < Math.min(lower, place.height)) path.rect(left, upper, right - left, lower - upper);
    };
    if (lane === null) {
      for (const { rank: of, y, bottom } of layout.stretches) if (of === rank) add(steps, y, bottom);
    } else {
      const row = rows.get(lane);
      if (row) add(slices, row.y, row.y + row.h - 1);
    }
  }
  hatch(context, steps, place, palette.text, 0.25);
  hatch(context, slices, place, palette.background, 0.8); // every fill stands out from the background
}

/** The same lines from the lower left to the upper right for all boxes, however many there are. */
function hatch(
  context: CanvasRenderingContext2D,
  boxes: Path2D,
  place: Place,
  colour: string,
  opacity: number,
): void {
  context.save();
  context.clip(boxes);
  context.beginPath();
  for (let x = -place.height; x < place.width; x += SPACING) {
    context.moveTo(x, place.height);
    context.lineTo(x + place.height, 0);
  }
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.globalAlpha = opacity;
  context.stroke();
  context.restore();
}

/** What is said of a moment on a lane: why its slice is an estimate, and why its step is left out. */
export function doubtsAt(outline: Outline, lane: number, t: number): string[] {
  const rank = trackOf(outline, lane)?.rank;
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
