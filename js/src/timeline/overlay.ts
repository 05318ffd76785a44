// What is marked by the pointer and the selection, on a canvas of its own: slices are not redrawn for it.

import { duration } from "../format";
import { drawFlags, type Flag } from "./flags";
import { FONT, MINIMAP_HEIGHT, type Place, TOP, xOf } from "./frame";
import type { Layout, Row } from "./layout";
import { drawMeasured, type Measured } from "./measure";
import type { Palette } from "./palette";
import { textWidth } from "./text_width";
import type { Flow, Slice } from "./types";
import { drawWaits, type Exchange } from "./waits";

/** Height of the bracket, in place of the time axis. */
const BRACKET = 20;

/** A time on a lane: a slice, or a gap between two. */
export type Extent = Pick<Slice, "lane" | "start" | "dur">;

/** A place that shows a finding: its time, what is said of it, and the event that causes it. */
export interface Marked {
  span: readonly [number, number];
  label: string;
  cause: readonly [number, number] | null;
}

export interface Marks {
  place: Marked | null;
  /** the slice that causes what the place shows */
  cause: Extent | null;
  window: readonly [number, number] | null;
  hover: Extent | null;
  focus: Extent | null;
  /** what is measured from, and the time from there to the focus */
  held: Extent | null;
  measured: Measured | null;
  flows: readonly Flow[];
  /** who waits for whom at the exchange of the focused slice */
  exchange: Exchange | null;
  flags: readonly Flag[];
  /** how far below the axis the lanes would stand that are being moved */
  drop: number | null;
  /** a time that was just shown, and how brightly it is lit, 0 to 1 */
  flash: { extent: readonly [number, number]; strength: number } | null;
}

/** Whether anything is marked. */
export function hasMarks({ place, window, hover, focus, held, flows, flags, flash, drop }: Marks): boolean {
  return (
    [place, window, hover, focus, held, flash, drop].some((mark) => mark !== null) ||
    flows.length + flags.length > 0
  );
}

export function drawOverlay(
  context: CanvasRenderingContext2D,
  place: Place,
  layout: Layout,
  marks: Marks,
  palette: Palette,
): void {
  context.clearRect(0, 0, place.width, place.height);
  if (marks.drop !== null) {
    context.fillStyle = palette.accent;
    context.fillRect(0, TOP + marks.drop - 3, place.width, 3);
  }
  context.save();
  context.beginPath();
  context.rect(place.gutter, MINIMAP_HEIGHT, place.width - place.gutter, place.height - MINIMAP_HEIGHT);
  context.clip();
  drawFlags(context, place, marks.flags, palette);
  if (marks.window) drawWindow(context, place, marks.window, palette);
  if (marks.flash) drawFlash(context, place, marks.flash, palette);
  if (marks.place) drawPlace(context, place, marks.place, palette);
  context.beginPath();
  context.rect(place.gutter, TOP, place.width - place.gutter, place.height - TOP);
  context.clip();
  const rows = new Map(layout.rows.map((row) => [row.lane, row]));
  if (marks.cause) drawCause(context, place, rows, marks.cause, palette);
  if (marks.hover) outline(context, place, rows, marks.hover, palette.text, 1);
  if (marks.focus) outline(context, place, rows, marks.focus, palette.accent, 2.5);
  if (marks.held) outline(context, place, rows, marks.held, palette.accent, 2.5);
  if (marks.measured) drawMeasured(context, place, rows, marks.measured, palette);
  if (marks.exchange) drawWaits(context, place, rows, marks.exchange, palette);
  for (const flow of marks.flows) drawFlow(context, place, rows, flow, palette);
  context.restore();
}

/** A bracket over a time with what is said of it, and dashed edges through all lanes. */
function drawPlace(
  context: CanvasRenderingContext2D,
  place: Place,
  { span, label }: Marked,
  palette: Palette,
): void {
  const left = Math.max(xOf(place, span[0]), place.gutter - 10);
  const right = Math.min(xOf(place, span[1]), place.width + 10);
  if (right < left) return;
  context.fillStyle = palette.accentSoft;
  context.globalAlpha = 0.5;
  context.fillRect(left, TOP, right - left, place.height - TOP);
  context.globalAlpha = 1;
  context.fillStyle = palette.background;
  context.fillRect(place.gutter, TOP - BRACKET, place.width - place.gutter, BRACKET);
  context.strokeStyle = palette.accent;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(left, TOP);
  context.lineTo(left, TOP - 5);
  context.lineTo(right, TOP - 5);
  context.lineTo(right, TOP);
  context.stroke();
  context.lineWidth = 1;
  context.setLineDash([4, 3]);
  context.beginPath();
  for (const x of [left, right]) {
    context.moveTo(Math.round(x) + 0.5, TOP);
    context.lineTo(Math.round(x) + 0.5, place.height);
  }
  context.stroke();
  context.setLineDash([]);
  context.font = `600 ${FONT}`;
  context.fillStyle = palette.accent;
  context.textBaseline = "middle";
  const wide = context.measureText(label).width;
  const centre = (left + right) / 2 - wide / 2;
  context.fillText(
    label,
    Math.max(place.gutter + 4, Math.min(centre, place.width - wide - 4)),
    TOP - BRACKET / 2 - 3,
  );
}

/** The slice that causes it, with a halo that tells it from one that is only selected. */
function drawCause(
  context: CanvasRenderingContext2D,
  place: Place,
  rows: ReadonlyMap<number, Row>,
  cause: Extent,
  palette: Palette,
): void {
  context.globalAlpha = 0.3;
  outline(context, place, rows, cause, palette.accent, 6);
  context.globalAlpha = 1;
  outline(context, place, rows, cause, palette.accent, 2);
}

function drawFlash(
  context: CanvasRenderingContext2D,
  place: Place,
  { extent, strength }: NonNullable<Marks["flash"]>,
  palette: Palette,
): void {
  const left = Math.max(xOf(place, extent[0]), place.gutter - 10);
  const right = Math.min(xOf(place, extent[1]), place.width + 10);
  if (right < left) return;
  context.globalAlpha = 0.35 * strength;
  context.fillStyle = palette.accent;
  context.fillRect(left, TOP, Math.max(2, right - left), place.height - TOP);
  context.globalAlpha = Math.max(strength, 0.2);
  context.strokeStyle = palette.accent;
  context.lineWidth = 2;
  context.strokeRect(left, TOP + 1, Math.max(2, right - left), place.height - TOP - 2);
  context.globalAlpha = 1;
}

function drawWindow(
  context: CanvasRenderingContext2D,
  place: Place,
  window: readonly [number, number],
  palette: Palette,
): void {
  const left = xOf(place, window[0]);
  const right = xOf(place, window[1]);
  context.fillStyle = palette.accentSoft;
  context.fillRect(left, MINIMAP_HEIGHT, right - left, place.height);
  context.fillStyle = palette.accent;
  context.fillRect(left - 1, MINIMAP_HEIGHT, 2, place.height);
  context.fillRect(right - 1, MINIMAP_HEIGHT, 2, place.height);
  context.font = FONT;
  const text = duration(window[1] - window[0]);
  const width = textWidth(context, text) + 10;
  const centre = (Math.max(left, place.gutter) + Math.min(right, place.width)) / 2;
  context.fillRect(centre - width / 2, TOP - 18, width, 16);
  context.fillStyle = palette.background;
  context.textBaseline = "middle";
  context.fillText(text, centre - width / 2 + 5, TOP - 9.5);
}

function outline(
  context: CanvasRenderingContext2D,
  place: Place,
  rows: ReadonlyMap<number, Row>,
  slice: Extent,
  colour: string,
  width: number,
): void {
  const row = rows.get(slice.lane);
  if (!row) return;
  // Edges far outside are clipped by hand: canvases lose precision beyond a few million pixels.
  const left = Math.max(xOf(place, slice.start), place.gutter - 10);
  const right = Math.min(xOf(place, slice.start + slice.dur), place.width + 10);
  if (right < left) return;
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.strokeRect(left, TOP + row.y - place.scroll, Math.max(2, right - left), Math.max(2, row.h - 1));
}

/** From the end of the launching call to the beginning of the device slice. */
function drawFlow(
  context: CanvasRenderingContext2D,
  place: Place,
  rows: ReadonlyMap<number, Row>,
  [from, to]: Flow,
  palette: Palette,
): void {
  const source = rows.get(from.lane);
  const target = rows.get(to.lane);
  if (!source || !target) return;
  const x0 = xOf(place, from.start + from.dur);
  const x1 = xOf(place, to.start);
  const y0 = TOP + source.y - place.scroll + source.h / 2;
  const y1 = TOP + target.y - place.scroll + target.h / 2;
  const bend = Math.max(18, Math.min(120, Math.abs(x1 - x0) / 2));
  context.strokeStyle = palette.text;
  context.fillStyle = palette.text;
  context.lineWidth = 1.6;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
  context.stroke();
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 7, y1 - 4);
  context.lineTo(x1 - 7, y1 + 4);
  context.fill();
  context.beginPath();
  context.arc(x0, y0, 2.5, 0, 7);
  context.fill();
}
