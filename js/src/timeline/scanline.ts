// Draws any number of slices at the cost of lanes x width pixels: every visible lane is one line of an opaque image, and
// repeated for its height.
//
// Wide slices fill their pixels. Slices below 1.5 px add their colour to a pixel, weighted by how much of it they
// cover, and the sum is blended in at the end; a least weight keeps a lone short slice visible. The image is put on the
// canvas as it is, which costs less than stretching lanes onto it or blending it. No GPU is needed.

import type { Row } from "./layout";
import type { Inks } from "./palette";
import { range } from "./pyramid";
import type { Items, View } from "./types";

const SUB_PIXEL = 1.5;
const LEAST_COVER = 0.18;
const LEAST_ALPHA = 70;
/** A slice of so many CSS pixels may have room for a name. */
const LEAST_NAMED = 26;

export interface Layer {
  items: Items;
  inks: Inks;
}

/** One line of pixels that lies behind all lanes between two heights. */
export interface Ground {
  top: number;
  bottom: number;
  pixels: Uint32Array;
}

/** Where lanes are drawn, in CSS pixels; `scroll`: the height that stands at the top. */
export interface Area {
  top: number;
  scroll: number;
  width: number;
  height: number;
  /** canvas pixels per CSS pixel */
  ratio: number;
}

export class Scanline {
  #image = new ImageData(1, 1);
  #pixels = new Uint32Array(this.#image.data.buffer);
  #sums = new Float32Array(4);

  /**
   * Draw layers over each other, from the left edge of the canvas on.
   *
   * Returns for each layer and row the slices that may have room for a name.
   */
  draw(
    target: CanvasRenderingContext2D,
    layers: readonly Layer[],
    rows: readonly Row[],
    view: View,
    area: Area,
    grounds: readonly Ground[],
    background: number,
  ): number[][][] {
    const { scroll, ratio } = area;
    const columns = Math.max(1, Math.round(area.width * ratio));
    const lines = Math.max(1, Math.round(area.height * ratio));
    this.#resize(columns, lines);
    const pixels = this.#pixels;
    const line = (y: number) => Math.min(Math.max(Math.round((y - scroll) * ratio), 0), lines);
    pixels.fill(background);
    for (const ground of grounds) {
      const bottom = line(ground.bottom);
      for (let at = line(ground.top); at < bottom; at++) pixels.set(ground.pixels, at * columns);
    }
    const wide = layers.map(() => rows.map((): number[] => []));
    const named = LEAST_NAMED * ratio;
    for (const [at, row] of rows.entries()) {
      const top = line(row.y);
      // A line between lanes, but not at the cost of lanes that are themselves lines.
      const bottom = line(row.y + (row.h > 4 ? row.h - 1 : row.h));
      if (bottom <= top) continue;
      const base = top * columns;
      layers.forEach(({ items, inks }, layer) => {
        const names = { least: named, found: (wide[layer] as number[][])[at] as number[] };
        rasterise(items, row.lane, view, inks, pixels, base, columns, this.#sums, names);
      });
      for (let next = top + 1; next < bottom; next++) pixels.copyWithin(next * columns, base, base + columns);
    }
    target.putImageData(this.#image, 0, Math.round(area.top * ratio));
    return wide;
  }

  #resize(columns: number, lines: number): void {
    if (this.#image.width === columns && this.#image.height === lines) return;
    this.#image = new ImageData(columns, lines);
    this.#pixels = new Uint32Array(this.#image.data.buffer);
    this.#sums = new Float32Array(4 * columns);
  }
}

/**
 * One lane onto `columns` opaque pixels from position `base` on; `sums` (4 per column) is zero before and after.
 *
 * Appends to `names.found` the slices of at least `names.least` columns.
 */
export function rasterise(
  items: Items,
  lane: number,
  view: View,
  inks: Inks,
  pixels: Uint32Array,
  base: number,
  columns: number,
  sums: Float32Array,
  names: { least: number; found: number[] },
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
    if (width >= names.least) names.found.push(i);
    const left = x < 0 ? 0 : Math.round(x);
    let right = x + width > columns ? columns : Math.round(x + width);
    if (right - left > 2) right--; // a gap, so that neighbours of one colour stay two
    const density = busy ? Math.min(1, (busy[i] as number) / (dur[i] as number)) : 1;
    const alpha = density > 0.95 ? 255 : Math.max(LEAST_ALPHA, Math.round(255 * density));
    const ink = inks.kinds[kind[i] as number] as number;
    if (alpha === 255) pixels.fill(ink, base + left, base + right);
    else
      for (let at = base + left; at < base + right; at++)
        pixels[at] = blended(
          ink & 255,
          (ink >>> 8) & 255,
          (ink >>> 16) & 255,
          alpha / 255,
          pixels[at] as number,
        );
  }
  for (let column = lowest; column <= highest; column++) {
    const s = 4 * column;
    const cover = sums[s + 3] as number;
    if (cover === 0) continue;
    pixels[base + column] = blended(
      (sums[s] as number) / cover, // a list of the three would be made anew for each pixel
      (sums[s + 1] as number) / cover,
      (sums[s + 2] as number) / cover,
      Math.min(1, cover),
      pixels[base + column] as number,
    );
    sums[s] = sums[s + 1] = sums[s + 2] = sums[s + 3] = 0;
  }
}

/** A colour as opaque as `alpha` over an opaque pixel. */
function blended(red: number, green: number, blue: number, alpha: number, below: number): number {
  const rest = 1 - alpha;
  const r = (red * alpha + (below & 255) * rest + 0.5) | 0;
  const g = (green * alpha + ((below >>> 8) & 255) * rest + 0.5) | 0;
  const b = (blue * alpha + ((below >>> 16) & 255) * rest + 0.5) | 0;
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}
