// The whole trace at the top: device activity by class, and the visible part as a frame to drag.

import { MARKS_HEIGHT, MINIMAP_HEIGHT, type Place } from "./frame";
import type { Found } from "./matches";
import type { Palette } from "./palette";
import type { Outline, View } from "./types";

const PADDING = 4;
/** Per row of `activity`: the event class whose colour it has; a trace without device work has one row, host ops. */
const ROW_CLASSES = [0, 1, 2];
const HOST_CLASS = 5;
const NARROWEST_FRAME = 6;
const ACTIVITY_HEIGHT = MINIMAP_HEIGHT - MARKS_HEIGHT;
const NARROWEST_MARK = 2;
const FAINTEST_MARK = 0.4;

/** Where the visible part's frame stands. */
export function frameOf(place: Place, extent: readonly [number, number]): [number, number] {
  const left = minimapX(place, extent, place.view.t0);
  const right = minimapX(place, extent, place.view.t1);
  const grow = Math.max(0, NARROWEST_FRAME - (right - left)) / 2;
  const inside = (x: number) => Math.min(Math.max(x, place.gutter), place.width);
  return [inside(left - grow), inside(right + grow)];
}

export function minimapX(place: Place, extent: readonly [number, number], t: number): number {
  return place.gutter + ((t - extent[0]) / (extent[1] - extent[0] || 1)) * (place.width - place.gutter);
}

export function minimapTime(place: Place, extent: readonly [number, number], x: number): number {
  return extent[0] + ((x - place.gutter) / (place.width - place.gutter)) * (extent[1] - extent[0]);
}

/** The view after dragging the frame by some pixels. */
export function draggedView(
  place: Place,
  extent: readonly [number, number],
  from: View,
  pixels: number,
): View {
  const ns = (pixels / (place.width - place.gutter)) * (extent[1] - extent[0]);
  return { t0: from.t0 + ns, t1: from.t1 + ns };
}

/** What the activity is of. */
export function drawMinimapTitle(
  context: CanvasRenderingContext2D,
  { activity }: Outline,
  palette: Palette,
): void {
  context.fillStyle = palette.muted;
  context.fillText(activity.length === 1 ? "host activity" : "device activity", 8, ACTIVITY_HEIGHT / 2);
}

/** The activity of the whole trace, and where matches are. */
export function drawMinimap(
  context: CanvasRenderingContext2D,
  place: Place,
  outline: Outline,
  found: Found | null,
  palette: Palette,
): void {
  context.fillStyle = palette.background;
  context.fillRect(place.gutter, 0, place.width - place.gutter, MINIMAP_HEIGHT);
  const onHost = outline.activity.length === 1;
  drawActivity(context, place, outline.activity, onHost ? [HOST_CLASS] : ROW_CLASSES, palette);
  if (found) drawMarks(context, place, found, palette);
}

/** A frame around the visible part; the rest is dimmed. */
export function drawMinimapFrame(
  context: CanvasRenderingContext2D,
  place: Place,
  outline: Outline,
  palette: Palette,
): void {
  const { gutter, width } = place;
  const [left, right] = frameOf(place, outline.extent);
  context.globalAlpha = 0.7;
  context.fillStyle = palette.raised;
  context.fillRect(gutter, 0, left - gutter, ACTIVITY_HEIGHT);
  context.fillRect(right, 0, width - right, ACTIVITY_HEIGHT);
  context.globalAlpha = 1;
  context.strokeStyle = palette.accent;
  context.lineWidth = 1.5;
  context.strokeRect(left + 0.75, 1.5, right - left - 1.5, ACTIVITY_HEIGHT - 3);
  context.lineWidth = 1;
}

/** Where matches begin: the more of them on a spot, the darker. */
function drawMarks(context: CanvasRenderingContext2D, place: Place, { bins }: Found, palette: Palette): void {
  const most = Array.from(bins).reduce((a, b) => Math.max(a, b), 1);
  const width = (place.width - place.gutter) / bins.length;
  context.fillStyle = palette.accent;
  for (let bin = 0; bin < bins.length; bin++) {
    const count = bins[bin] as number;
    if (count === 0) continue;
    context.globalAlpha = FAINTEST_MARK + (1 - FAINTEST_MARK) * Math.sqrt(count / most);
    const x = Math.floor(place.gutter + bin * width);
    context.fillRect(x, ACTIVITY_HEIGHT + 1, Math.max(NARROWEST_MARK, width), MARKS_HEIGHT - 3);
  }
  context.globalAlpha = 1;
}

function drawActivity(
  context: CanvasRenderingContext2D,
  place: Place,
  activity: readonly number[][],
  classes: readonly number[],
  palette: Palette,
): void {
  const bins = activity[0]?.length ?? 0;
  let highest = 1e-9;
  for (let bin = 0; bin < bins; bin++) {
    highest = Math.max(
      highest,
      activity.reduce((sum, row) => sum + (row[bin] as number), 0),
    );
  }
  const width = (place.width - place.gutter) / bins;
  for (let bin = 0; bin < bins; bin++) {
    let y = ACTIVITY_HEIGHT - PADDING;
    activity.forEach((row, at) => {
      const height = ((row[bin] as number) / highest) * (ACTIVITY_HEIGHT - 2 * PADDING);
      if (height <= 0) return;
      context.fillStyle = `rgb(${palette.classes[classes[at] as number]?.join(" ")})`;
      context.fillRect(place.gutter + bin * width, y - height, width + 0.5, height);
      y -= height;
    });
  }
}
