// Everything drawn around the slices: time axis, iterations, headers of groups and track names.

import { duration } from "../format";
import { visible } from "../visible";
import type { Bands } from "./bands";
import { HEADER_HEIGHT, headerTop, type Layout } from "./layout";
import type { Palette } from "./palette";
import { textWidth } from "./text_width";
import { ticks, tickText } from "./ticks";
import type { IterationInfo, View } from "./types";

/** The strip under the minimap that shows where matches are. */
export const MARKS_HEIGHT = 8;
export const MINIMAP_HEIGHT = 40 + MARKS_HEIGHT;
const BANDS_HEIGHT = 16;
const AXIS_HEIGHT = 20;
/** Height of what stays in place while lanes scroll. */
export const TOP = MINIMAP_HEIGHT + BANDS_HEIGHT + AXIS_HEIGHT;
export const FONT = "11px system-ui, sans-serif";
const BOLD = "600 11px system-ui, sans-serif";

export interface Place {
  view: View;
  /** width of the gutter, and of the whole in CSS pixels */
  gutter: number;
  width: number;
  height: number;
  /** how far the lanes are scrolled */
  scroll: number;
}

export function xOf(place: Place, t: number): number {
  return (
    place.gutter + ((t - place.view.t0) * (place.width - place.gutter)) / (place.view.t1 - place.view.t0)
  );
}

export function timeAt(place: Place, x: number): number {
  return (
    place.view.t0 + ((x - place.gutter) * (place.view.t1 - place.view.t0)) / (place.width - place.gutter)
  );
}

export function drawAxis(
  context: CanvasRenderingContext2D,
  place: Place,
  bands: Bands,
  chosen: readonly number[],
  palette: Palette,
): void {
  const { view, gutter, width } = place;
  context.fillStyle = palette.background;
  context.fillRect(gutter, MINIMAP_HEIGHT, width - gutter, TOP - MINIMAP_HEIGHT);
  context.save();
  context.beginPath();
  context.rect(gutter, MINIMAP_HEIGHT, width - gutter, place.height - MINIMAP_HEIGHT);
  context.clip();
  const { step, values } = ticks(view.t0, view.t1, (width - gutter) / 110);
  context.strokeStyle = palette.line;
  context.fillStyle = palette.muted;
  context.font = FONT;
  context.beginPath();
  for (const t of values) {
    const x = Math.round(xOf(place, t)) + 0.5;
    context.moveTo(x, TOP - 6);
    context.lineTo(x, TOP);
    const text = tickText(t, step);
    if (x + 4 + textWidth(context, text) < width) context.fillText(text, x + 4, TOP - AXIS_HEIGHT / 2);
  }
  context.moveTo(gutter, TOP - 0.5);
  context.lineTo(width, TOP - 0.5);
  context.stroke();
  const [from, to] = bands.shown(view);
  for (let at = from; at < to; at++)
    drawBandTitle(context, place, bands.all[at] as IterationInfo, at, chosen, palette);
  context.restore();
}

/** What the strip above the time axis shows. */
export function drawBandsTitle(context: CanvasRenderingContext2D, palette: Palette): void {
  context.fillStyle = palette.muted;
  context.fillText("iterations", 8, MINIMAP_HEIGHT + BANDS_HEIGHT / 2);
}

function drawBandTitle(
  context: CanvasRenderingContext2D,
  place: Place,
  band: IterationInfo,
  at: number,
  chosen: readonly number[],
  palette: Palette,
): void {
  const left = Math.max(place.gutter, xOf(place, band.start));
  const right = Math.min(place.width, xOf(place, band.end));
  if (right - left < 1) return;
  const selected = chosen.includes(band.iteration);
  const ground = selected ? palette.accent : at % 2 ? palette.line : palette.raised;
  context.fillStyle = ground;
  context.fillRect(left, MINIMAP_HEIGHT + 1, Math.max(1, right - left - 1), BANDS_HEIGHT - 2);
  const room = right - left - 8;
  if (room <= 0) return;
  const title = [
    `${band.label} · ${duration(band.end - band.start)}`,
    band.label,
    String(band.iteration),
  ].find((text) => textWidth(context, text) <= room);
  if (!title) return;
  // with forced colors, lines have the colour of text
  context.fillStyle = selected || ground === palette.text ? palette.background : palette.text;
  context.fillText(title, left + 4, MINIMAP_HEIGHT + BANDS_HEIGHT / 2 + 0.5);
}

/** Names of tracks, beside their lanes. */
export function drawGutter(
  context: CanvasRenderingContext2D,
  place: Place,
  layout: Layout,
  palette: Palette,
): void {
  context.fillStyle = palette.background;
  context.fillRect(0, 0, place.gutter, place.height);
  context.save();
  context.beginPath();
  context.rect(0, TOP, place.gutter, place.height - TOP);
  context.clip();
  for (const label of layout.tracks) {
    const y = TOP + label.y - place.scroll;
    if (y + label.h < TOP || y > place.height) continue;
    context.fillStyle = palette.text;
    context.font = FONT;
    context.fillText(shortened(context, visible(label.text), place.gutter - 20), 12, y + 8);
    if (label.foldable === 0 || label.h < 26) continue;
    context.fillStyle = palette.muted;
    const folded = `${label.folded ? "▸" : "▾"} ${label.foldable} outer frames`;
    context.fillText(shortened(context, folded, place.gutter - 16), 12, y + 22);
  }
  context.restore();
  context.strokeStyle = palette.line;
  context.beginPath();
  context.moveTo(place.gutter - 0.5, MINIMAP_HEIGHT);
  context.lineTo(place.gutter - 0.5, place.height);
  context.stroke();
}

/** A bar above the lanes of each group, from the gutter across the lanes. */
export function drawHeaders(
  context: CanvasRenderingContext2D,
  place: Place,
  layout: Layout,
  palette: Palette,
): void {
  context.save();
  context.beginPath();
  context.rect(0, TOP + layout.pinned, place.width, place.height - TOP - layout.pinned);
  context.clip();
  context.font = BOLD;
  for (const header of layout.headers) {
    const top = headerTop(layout, header, place.scroll);
    if (top === null || TOP + top > place.height) continue;
    const y = TOP + top;
    context.fillStyle = palette.raised;
    context.fillRect(0, y, place.width, HEADER_HEIGHT - 2);
    context.fillStyle = palette.text;
    const text = `${header.collapsed ? "▸" : "▾"} ${visible(header.text)}`;
    context.fillText(text, 6, y + HEADER_HEIGHT / 2 - 0.5);
  }
  context.restore();
}

/** What a lane's name can do without where there is little room, the first first. */
const SPARED: readonly [RegExp, string][] = [
  [/\bthread (?=\d)/, ""],
  [/(\d) stream /, "$1 · "],
  [/ \([^)]*\)$/, ""],
];

/** A text as it fits, at last without its middle: lanes begin alike, and their numbers come last. */
export function shortened(context: CanvasRenderingContext2D, text: string, room: number): string {
  const width = textWidth(context, text);
  if (width <= room) return text;
  for (const [long, short] of SPARED)
    if (long.test(text)) return shortened(context, text.replace(long, short), room);
  for (let left = Math.floor((text.length * (room - 7)) / width); ; left--) {
    const end = Math.max(1, left >> 1);
    const short = `${text.slice(0, Math.max(1, left - end))}…${text.slice(-end)}`;
    if (left <= 2 || textWidth(context, short) <= room) return short;
  }
}
