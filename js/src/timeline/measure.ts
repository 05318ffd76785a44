// The time between two slices: one that was held on to, and the focused one.

import { duration, exact } from "../format";
import { type Place, TOP, xOf } from "./frame";
import { shortName } from "./labels";
import type { Row } from "./layout";
import type { Palette } from "./palette";
import { textWidth } from "./text_width";
import type { Facts } from "./tooltip";
import type { Outline, Slice } from "./types";

/** The one that begins first, and the other. */
export type Measured = readonly [from: Slice, to: Slice];

export function measured(held: Slice | null, focused: Slice | null): Measured | null {
  if (!held || !focused || held.id === focused.id) return null;
  return held.start <= focused.start ? [held, focused] : [focused, held];
}

export function describeMeasured({ names }: Outline, [from, to]: Measured): Facts {
  const told = (what: string, ns: number) => `${what} ${duration(ns)} (${exact(ns, "ns")})`;
  const [firstEnd, secondEnd] = [endOf(from), endOf(to)];
  const between =
    to.start >= firstEnd
      ? told("end to start", to.start - firstEnd)
      : told("overlap", Math.min(firstEnd, secondEnd) - to.start);
  return {
    name: "Measured",
    lines: [
      told("start to start", to.start - from.start),
      between,
      told("first start to last end", Math.max(firstEnd, secondEnd) - from.start),
      `${shortName(names[from.kind] as string)} → ${shortName(names[to.kind] as string)}`,
    ],
  };
}

/** An arrow to where the second begins, from where the first ends, or begins if they overlap. */
export function drawMeasured(
  context: CanvasRenderingContext2D,
  place: Place,
  rows: ReadonlyMap<number, Row>,
  [from, to]: Measured,
  palette: Palette,
): void {
  const source = rows.get(from.lane);
  const target = rows.get(to.lane);
  if (!source || !target) return;
  const begin = to.start >= endOf(from) ? endOf(from) : from.start;
  const inside = (t: number) => Math.min(Math.max(xOf(place, t), place.gutter - 10), place.width + 10);
  const [left, right] = [inside(begin), inside(to.start)];
  const middle = (row: Row) => TOP + row.y - place.scroll + row.h / 2;
  const [top, y] = [middle(source), middle(target)];
  context.strokeStyle = context.fillStyle = palette.text;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(left, top);
  context.lineTo(left, y);
  context.lineTo(right, y);
  context.stroke();
  context.beginPath();
  context.moveTo(right, y);
  context.lineTo(right - 7, y - 4);
  context.lineTo(right - 7, y + 4);
  context.fill();
  const text = duration(to.start - begin);
  const width = textWidth(context, text) + 10;
  const x = (left + right - width) / 2;
  context.fillRect(x, y - 8, width, 16);
  context.fillStyle = palette.background;
  context.fillText(text, x + 5, y + 0.5);
}

function endOf({ start, dur }: Slice): number {
  return start + dur;
}
