// Names on slices that are wide enough to carry them.

import { visible } from "../visible";
import { ROW_HEIGHT, type Row } from "./layout";
import { range } from "./pyramid";
import type { Items, Outline, View } from "./types";

const PADDING = 3;
const NARROWEST = 26;
const MOST_LABELS = 900;

/** A kernel's own name without namespaces, template and call arguments; a Python frame without its folder. */
export function shortName(name: string): string {
  const frame = /([^/\\]+\.py\(\d+\): .*)$/.exec(name);
  if (frame) return frame[1] as string;
  if (name.startsWith("<") || !/::|</.test(name)) return name;
  const short = name
    .replaceAll("(anonymous namespace)::", "")
    .replace(/^(void|int|bool|float) /, "")
    .replace(/[<(].*$/s, "");
  return short.split("::").at(-1) || name;
}

export class Labels {
  #short: string[];
  #widths: (number | undefined)[] = [];

  constructor(outline: Outline) {
    this.#short = outline.names.map((name) => visible(shortName(name)));
  }

  /** `colours` per kind; `x`: where the view begins on the context; `y`: where height 0 of the rows is. */
  draw(
    context: CanvasRenderingContext2D,
    items: Items,
    rows: readonly Row[],
    view: View,
    colours: readonly string[],
    place: { x: number; y: number; width: number },
  ): void {
    const scale = place.width / (view.t1 - view.t0);
    let drawn = 0;
    for (const row of rows) {
      if (row.h < ROW_HEIGHT) continue;
      const [from, to] = range(items, row.lane, view.t0, view.t1);
      for (let i = from; i < to && drawn < MOST_LABELS; i++) {
        const dur = items.dur[i] as number;
        if (dur * scale < NARROWEST || (items.count && (items.count[i] as number) > 1)) continue;
        const left = Math.max(((items.start[i] as number) - view.t0) * scale, 0);
        const right = Math.min(((items.start[i] as number) + dur - view.t0) * scale, place.width);
        const kind = items.kind[i] as number;
        const text = this.#fitted(context, kind, right - left - 2 * PADDING);
        if (!text) continue;
        context.fillStyle = colours[kind] as string;
        context.fillText(text, place.x + left + PADDING, place.y + row.y + (row.h - 1) / 2 + 0.5);
        drawn++;
      }
    }
  }

  #fitted(context: CanvasRenderingContext2D, kind: number, room: number): string {
    const text = this.#short[kind] as string;
    this.#widths[kind] ??= context.measureText(text).width;
    const width = this.#widths[kind] as number;
    if (width <= room) return text;
    const letters = Math.floor((text.length * (room - 7)) / width);
    return letters < 3 ? "" : `${text.slice(0, letters)}…`;
  }
}
