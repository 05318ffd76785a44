// Moments that the reader flagged, each with a note, on the time axis. Python has them as `selection.flags`.

import { visible } from "../visible";
import { MINIMAP_HEIGHT, type Place, TOP, xOf } from "./frame";
import type { Palette } from "./palette";
import { textWidth } from "./text_width";

export type Flag = readonly [time: number, note: string];

/** A flag is hit from so many pixels away. */
const REACH = 5;
const FLAG_TOP = TOP - 18;
const FLAG_HEIGHT = 16;
const PADDING = 5;
/** A flag without a note, and the least that is drawn of one. */
const BARE = 8;
const LONGEST = 220;

/** The flags with one more, or with another note on the one at that time. */
export function withFlag(flags: readonly Flag[], flag: Flag): Flag[] {
  return [...withoutFlag(flags, flag[0]), flag].sort((a, b) => a[0] - b[0]);
}

export function withoutFlag(flags: readonly Flag[], time: number): Flag[] {
  return flags.filter((flag) => flag[0] !== time);
}

/** The next one after a time, and after the last the first. */
export function nextFlag(flags: readonly Flag[], after: number): Flag | undefined {
  return flags.find((flag) => flag[0] > after) ?? flags[0];
}

/** The flag at a point of the time axis: the one that is drawn last, where several share the place. */
export function flagAt(place: Place, flags: readonly Flag[], x: number, y: number): Flag | undefined {
  if (y < MINIMAP_HEIGHT || y >= TOP || x < place.gutter) return undefined;
  return [...flags].reverse().find((flag) => Math.abs(xOf(place, flag[0]) - x) <= REACH);
}

/** A line through all lanes for each flag, and its note as far as the next one leaves room. */
export function drawFlags(
  context: CanvasRenderingContext2D,
  place: Place,
  flags: readonly Flag[],
  palette: Palette,
): void {
  const shown = flags
    .map(([time, note]) => ({
      x: Math.round(xOf(place, time)),
      note: visible(note.split("\n")[0] as string),
    }))
    .filter(({ x }) => x >= place.gutter && x <= place.width);
  shown.forEach(({ x, note }, at) => {
    const room = Math.min((shown[at + 1]?.x ?? place.width) - x - 2, LONGEST);
    const full = textWidth(context, note) + 2 * PADDING;
    const width = note ? Math.max(BARE, Math.min(full, room)) : BARE;
    context.fillStyle = palette.text;
    context.fillRect(x, FLAG_TOP, 1, place.height - FLAG_TOP);
    context.fillRect(x, FLAG_TOP, width, FLAG_HEIGHT);
    if (!note || width <= 2 * PADDING) return;
    context.save();
    context.beginPath();
    context.rect(x, FLAG_TOP, width - 2, FLAG_HEIGHT);
    context.clip();
    context.fillStyle = palette.background;
    context.fillText(note, x + PADDING, FLAG_TOP + FLAG_HEIGHT / 2 + 0.5);
    context.restore();
  });
}
