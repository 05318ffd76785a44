// Names on slices that are wide enough to carry them.

import { visible } from "../visible";
import { ROW_HEIGHT, type Row } from "./layout";
import { textWidth } from "./text_width";
import type { Items, Outline, View } from "./types";

const PADDING = 3;
const MOST_LABELS = 900;
const FEWEST_LETTERS = 3;

/** A kernel's own name without namespaces, template and call arguments; a Python frame without its folder. */
export function shortName(name: string): string {
  const frame = /([^/\\]+\.py\(\d+\): .*)$/.exec(name);
  if (frame) return frame[1] as string;
  if (name.startsWith("<") || !/::|</.test(name)) return name;
  const short = name
    .replaceAll("(anonymous namespace)::", "")
    .replace(/^(void|int|bool|float|.*evaluate_function:) /, "")
    .replace(/[<(].*$/s, "");
  return short.split("::").at(-1) || name;
}

export class Labels {
  /** per kind, once it was drawn: every step of a long recording has a name of its own */
  #short: string[];

  constructor(private readonly outline: Outline) {
    this.#short = new Array(outline.names.length);
  }

  /**
   * `wide`: for each row the slices that may have room for a name; `colours` per kind; `place`: where the view begins
   * on the context, and height 0 of the rows.
   */
  draw(
    context: CanvasRenderingContext2D,
    items: Items,
    rows: readonly Row[],
    wide: readonly (readonly number[])[],
    view: View,
    colours: readonly string[],
    place: { x: number; y: number; width: number },
  ): void {
    const scale = place.width / (view.t1 - view.t0);
    let drawn = 0;
    let colour = "";
    for (const [at, row] of rows.entries()) {
      if (row.h < ROW_HEIGHT) continue;
      for (const i of wide[at] as readonly number[]) {
        if (drawn === MOST_LABELS) return;
        if (items.count && (items.count[i] as number) > 1) continue;
        const start = ((items.start[i] as number) - view.t0) * scale;
        const left = Math.max(start, 0);
        const right = Math.min(start + (items.dur[i] as number) * scale, place.width);
        const kind = items.kind[i] as number;
        this.#short[kind] ??= visible(shortName(this.outline.names[kind] as string));
        const text = this.#fitted(context, this.#short[kind], right - left - 2 * PADDING);
        if (!text) continue;
        if (colours[kind] !== colour) {
          colour = colours[kind] as string;
          context.fillStyle = colour;
        }
        context.fillText(text, place.x + left + PADDING, place.y + row.y + (row.h - 1) / 2 + 0.5);
        drawn++;
      }
    }
  }

  /** As much of a name as there is room for: nothing is painted beyond its slice. */
  #fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
    const width = textWidth(context, text);
    if (width <= room) return text;
    for (let letters = Math.floor((text.length * room) / width); letters >= FEWEST_LETTERS; letters--) {
      const cut = `${text.slice(0, letters)}…`;
      if (textWidth(context, cut) <= room) return cut;
    }
    return "";
  }
}
