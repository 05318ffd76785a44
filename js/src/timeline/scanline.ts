// Draws any number of slices at the cost of lanes x width pixels: every visible lane is one row of an image.
//
// Wide slices fill their pixels. Slices below 1.5 px add their colour to a pixel, weighted by how much of it they
// cover, and the sum is blended in at the end; a least weight keeps a lone short slice visible. Each image row is then
// stretched to its lane's height. No GPU is needed.

import { element } from "../page";
import type { Row } from "./layout";
import type { Inks } from "./palette";
import { range } from "./pyramid";
import type { Items, View } from "./types";

const SUB_PIXEL = 1.5;
const LEAST_COVER = 0.18;
const LEAST_ALPHA = 70;

export interface Layer {
  items: Items;
  inks: Inks;
}

export class Scanline {
  #canvas = element("canvas");
  #context = this.#canvas.getContext("2d", { willReadFrequently: false }) as CanvasRenderingContext2D;
  #image = new ImageData(1, 1);
  #pixels = new Uint32Array(this.#image.data.buffer);
  #sums = new Float32Array(4);

  /**
   * Draw layers over each other. `x`, `y`: where the first pixel column and height 0 of the rows stand on the target;
   * `width` in its units.
   */
  draw(
    target: CanvasRenderingContext2D,
    layers: readonly Layer[],
    rows: readonly Row[],
    view: View,
    place: { x: number; y: number; width: number; ratio: number },
  ): void {
    const columns = Math.max(1, Math.round(place.width * place.ratio));
    if (rows.length === 0) return;
    this.#resize(columns, rows.length);
    for (const [at, row] of rows.entries()) {
      for (const { items, inks } of layers)
        rasterise(items, row.lane, view, inks, this.#pixels, at * columns, columns, this.#sums);
    }
    this.#context.putImageData(this.#image, 0, 0);
    target.imageSmoothingEnabled = false;
    rows.forEach((row, at) => {
      // A line between lanes, but not at the cost of lanes that are themselves lines.
      const height = row.h > 4 ? row.h - 1 : row.h;
      target.drawImage(this.#canvas, 0, at, columns, 1, place.x, place.y + row.y, place.width, height);
    });
  }

  #resize(columns: number, rows: number): void {
    if (this.#canvas.width !== columns || this.#canvas.height !== rows) {
      this.#canvas.width = columns;
      this.#canvas.height = rows;
      this.#image = new ImageData(columns, rows);
      this.#pixels = new Uint32Array(this.#image.data.buffer);
      this.#sums = new Float32Array(4 * columns);
    }
    this.#pixels.fill(0);
  }
}

/** One lane into `columns` pixels from position `base` on; `sums` (4 per column) is zero before and after. */
export function rasterise(
  items: Items,
  lane: number,
  view: View,
  inks: Inks,
  pixels: Uint32Array,
  base: number,
  columns: number,
  sums: Float32Array,
): void {
  const scale = columns / (view.t1 - view.t0);
  const { start, dur, busy, eventClass, kind } = items;
  const [from, to] = range(items, lane, view.t0, view.t1);
  let lowest = columns;
  let highest = -1;
  for (let i = from; i < to; i++) {
    const x = ((start[i] as number) - view.t0) * scale;
    const width = (dur[i] as number) * scale;
    if (width < SUB_PIXEL) {
      const column = x < 0 ? 0 : Math.floor(x);
      if (column >= columns) continue;
      const cover = Math.max(LEAST_COVER, busy ? (busy[i] as number) * scale : width);
      const colour = inks.classes[eventClass[i] as number] ?? [136, 136, 136];
      const s = 4 * column;
      sums[s] = (sums[s] as number) + colour[0] * cover;
      sums[s + 1] = (sums[s + 1] as number) + colour[1] * cover;
      sums[s + 2] = (sums[s + 2] as number) + colour[2] * cover;
      sums[s + 3] = (sums[s + 3] as number) + cover;
      lowest = Math.min(lowest, column);
      highest = Math.max(highest, column);
      continue;
    }
    const left = x < 0 ? 0 : Math.round(x);
    let right = x + width > columns ? columns : Math.round(x + width);
    if (right - left > 2) right--; // a gap, so that neighbours of one colour stay two
    const density = busy ? Math.min(1, (busy[i] as number) / (dur[i] as number)) : 1;
    const alpha = density > 0.95 ? 255 : Math.max(LEAST_ALPHA, Math.round(255 * density));
    pixels.fill(
      (((inks.kinds[kind[i] as number] as number) & 0xffffff) | (alpha << 24)) >>> 0,
      base + left,
      base + right,
    );
  }
  for (let column = lowest; column <= highest; column++) {
    const s = 4 * column;
    const cover = sums[s + 3] as number;
    if (cover > 0) {
      pixels[base + column] = over(sums, s, cover, pixels[base + column] as number);
      sums.fill(0, s, s + 4);
    }
  }
}

/** The summed colour, as opaque as its cover, over what the pixel shows already. */
function over(sums: Float32Array, s: number, cover: number, below: number): number {
  const a = Math.min(1, cover);
  const b = ((below >>> 24) / 255) * (1 - a);
  const alpha = a + b;
  const mix = (sum: number, channel: number) => Math.round(((sum / cover) * a + channel * b) / alpha);
  const red = mix(sums[s] as number, below & 255);
  const green = mix(sums[s + 1] as number, (below >>> 8) & 255);
  const blue = mix(sums[s + 2] as number, (below >>> 16) & 255);
  return ((Math.round(255 * alpha) << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
