// At an exchange between ranks: who arrives last, how long the others wait for it, and for whom it had been waiting
// itself. The kernel knows.

import { counted, duration } from "../format";
import { visible } from "../visible";
import { type Place, TOP, xOf } from "./frame";
import type { Call } from "./kernel";
import type { Row } from "./layout";
import type { Palette } from "./palette";
import { textWidth } from "./text_width";
import { trackOf } from "./tooltip";
import type { Outline, Slice } from "./types";

const COMMUNICATION = 1; // hta_widgets/trace/classify.py

export interface Meeting {
  last: Slice;
  /** the slices of those that wait, and for how many ns from their beginning on */
  waiting: (readonly [Slice, number])[];
}

export interface Exchange extends Meeting {
  /** where the last one had been waiting, one after the other, to the rank that causes it */
  through: readonly Hop[];
}

/** Of all exchanges at which this rank had been waiting the longest; `whole` is what passes through all, ns. */
export interface Hop extends Meeting {
  whole: number;
}

type Sent = Omit<Slice, "count">;
interface SentMeeting {
  last: Sent;
  waiting: [Sent, number][];
}

const whole = (sent: Sent): Slice => ({ ...sent, count: 1 });
const met = ({ last, waiting }: SentMeeting): Meeting => ({
  last: whole(last),
  waiting: waiting.map(([sent, waited]) => [whole(sent), waited] as const),
});

export class Waits {
  /** of the focused slice; null where there is none, or it is not known */
  exchange: Exchange | null = null;
  #of = -1;

  constructor(
    private readonly outline: Outline,
    private readonly call: Call,
    private readonly changed: () => void,
  ) {}

  /** Learn of the exchange that a slice belongs to. */
  look(slice: Slice | null): void {
    const id = slice?.id ?? -1;
    if (id === this.#of) return;
    this.#of = id;
    this.exchange = null;
    if (slice && this.outline.class_of[slice.kind] === COMMUNICATION && this.outline.ranks.length > 1)
      void this.#ask(id);
  }

  async #ask(id: number): Promise<void> {
    try {
      const { result } = await this.call<
        SentMeeting & { last: Sent | null; through: (SentMeeting & { whole: number })[] }
      >("waits", { id });
      if (this.#of !== id || !result.last) return;
      this.exchange = {
        ...met(result),
        through: result.through.map((hop) => ({ ...met(hop), whole: hop.whole })),
      };
      this.changed();
    } catch {
      // a report, or a recording that does not tell: no arrows
    }
  }
}

/** What the exchange means for one of its slices, in words. */
export function describeWaits(outline: Outline, { last, waiting, through }: Exchange, slice: Slice): string {
  const rankOf = (one: Slice) => trackOf(outline, one.lane)?.rank;
  const name = (one: Slice) => {
    const rank = rankOf(one);
    return `rank ${visible(String(outline.ranks.find((each) => each.rank === rank)?.label ?? rank))}`;
  };
  const own = waiting.find(([one]) => one.id === slice.id)?.[1];
  if (own !== undefined) {
    const further = through.map(
      (hop) => `, which waits ${duration(hop.whole)} of that for ${name(hop.last)}`,
    );
    return `waits ${duration(own)} for ${name(last)}${further.join("")}`;
  }
  const most = Math.max(...waiting.map(([, waited]) => waited));
  const who = counted(waiting.length, "rank");
  const cause = through.at(-1)?.last;
  const beyond = cause ? `, and through it for ${name(cause)}` : "";
  return last.id === slice.id
    ? `${who} ${waiting.length === 1 ? "waits" : "wait"} for this one, up to ${duration(most)}${beyond}`
    : "";
}

/** The part of each slice that is waiting, and an arrow to its end from the beginning of the last; through all. */
export function drawWaits(
  context: CanvasRenderingContext2D,
  place: Place,
  rows: ReadonlyMap<number, Row>,
  exchange: Exchange,
  palette: Palette,
): void {
  for (const one of [exchange, ...exchange.through]) drawMeeting(context, place, rows, one, palette);
}

function drawMeeting(
  context: CanvasRenderingContext2D,
  place: Place,
  rows: ReadonlyMap<number, Row>,
  { last, waiting }: Meeting,
  palette: Palette,
): void {
  const inside = (t: number) => Math.min(Math.max(xOf(place, t), place.gutter - 10), place.width + 10);
  const from = rows.get(last.lane);
  const begin = inside(last.start);
  for (const [slice, waited] of waiting) {
    const row = rows.get(slice.lane);
    if (!row) continue;
    const top = TOP + row.y - place.scroll;
    const [left, right] = [inside(slice.start), inside(slice.start + waited)];
    context.globalAlpha = 0.9;
    context.fillStyle = palette.background;
    context.fillRect(left, top + 1, right - left, row.h - 3);
    context.globalAlpha = 1;
    context.strokeStyle = context.fillStyle = palette.text;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, top + 1.5, Math.max(0, right - left - 1), row.h - 4);
    const text = `waits ${duration(waited)}`;
    if (textWidth(context, text) + 8 < right - left) context.fillText(text, left + 4, top + row.h / 2);
    if (from) drawArrow(context, begin, TOP + from.y - place.scroll + from.h / 2, right, top, row.h);
  }
}

/** Up or down, then to the side: it ends at the edge of a row. */
function drawArrow(
  context: CanvasRenderingContext2D,
  x0: number,
  y0: number,
  x1: number,
  top: number,
  height: number,
): void {
  const down = top > y0;
  const y1 = down ? top : top + height;
  context.lineWidth = 1.6;
  context.beginPath();
  context.arc(x0, y0, 2.5, 0, 7);
  context.fill();
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
  const angle = Math.atan2(y1 - y0, x1 - x0);
  context.beginPath();
  context.moveTo(x1, y1);
  for (const side of [0.5, -0.5])
    context.lineTo(x1 - 7 * Math.cos(angle + side), y1 - 7 * Math.sin(angle + side));
  context.fill();
}
