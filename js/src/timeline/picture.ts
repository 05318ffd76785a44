// Draws everything but what is marked: the gutter, and beside it bands, slices, names, the path, the axis, the minimap.

import { element } from "../page";
import type { Bands } from "./bands";
import { drawCounterNames, drawCounters } from "./counter_rows";
import type { Counters } from "./counters";
import { drawDoubtful } from "./doubtful";
import {
  drawAxis,
  drawBandsTitle,
  drawGutter,
  drawHeaders,
  FONT,
  MINIMAP_HEIGHT,
  type Place,
  TOP,
} from "./frame";
import type { Highlight } from "./highlight";
import { Labels } from "./labels";
import { type Layout, rowsBetween } from "./layout";
import type { Choice } from "./matches";
import { drawMinimap, drawMinimapFrame, drawMinimapTitle } from "./minimap";
import type { Palette } from "./palette";
import { drawPath } from "./pathline";
import { type Ground, type Layer, Scanline } from "./scanline";
import type { Source } from "./source";
import type { IterationInfo, Outline, View } from "./types";

export interface Scene {
  place: Place;
  layout: Layout;
  /** canvas pixels per CSS pixel */
  ratio: number;
  /** iterations on the axis, and the numbers of those that stand out */
  bands: Bands;
  iterations: readonly number[];
  highlight: Highlight;
}

export class Picture {
  #scanline = new Scanline();
  #labels: Labels;
  #minimap = element("canvas");
  #minimapOf: readonly unknown[] = [];

  constructor(
    private readonly outline: Outline,
    private readonly source: Source,
    private readonly counters: Counters,
    private readonly bands: ReadonlyMap<number, Bands>,
  ) {
    this.#labels = new Labels(outline);
  }

  drawGutter(context: CanvasRenderingContext2D, scene: Scene, palette: Palette): void {
    const { place, layout } = scene;
    drawGutter(context, place, layout, palette);
    drawCounterNames(context, place, layout, palette);
    drawHeaders(context, place, layout, palette);
    context.font = FONT;
    drawMinimapTitle(context, this.outline, palette);
    if (scene.bands.all.length > 0) drawBandsTitle(context, palette);
  }

  drawLanes(context: CanvasRenderingContext2D, scene: Scene, palette: Palette): void {
    const { place, layout, iterations, highlight } = scene;
    if (place.width <= place.gutter) return;
    this.#drawSlices(context, scene, palette);
    drawDoubtful(context, place, layout, this.outline.doubtful ?? [], palette);
    drawCounters(context, place, layout, this.counters, scene.ratio, palette);
    if (highlight.path) drawPath(context, place, layout, highlight.path, palette);
    drawHeaders(context, place, layout, palette);
    drawAxis(context, place, scene.bands, iterations, palette);
    this.#drawMinimap(context, scene, palette);
  }

  /** The whole trace changes rarely: its picture is kept. */
  #drawMinimap(context: CanvasRenderingContext2D, scene: Scene, palette: Palette): void {
    const { place, ratio } = scene;
    const { found } = scene.highlight;
    const of = [found, place.width, place.gutter, ratio, palette];
    const width = place.width - place.gutter;
    if (of.some((one, i) => one !== this.#minimapOf[i])) {
      this.#minimapOf = of;
      this.#minimap.width = Math.round(width * ratio);
      this.#minimap.height = Math.round(MINIMAP_HEIGHT * ratio);
      const kept = this.#minimap.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
      kept.setTransform(ratio, 0, 0, ratio, -place.gutter * ratio, 0);
      drawMinimap(kept, place, this.outline, found, palette);
    }
    context.drawImage(this.#minimap, place.gutter, 0, width, MINIMAP_HEIGHT);
    drawMinimapFrame(context, place, this.outline, palette);
  }

  #drawSlices(context: CanvasRenderingContext2D, scene: Scene, palette: Palette): void {
    const { place, layout, ratio } = scene;
    const { gutter, view, scroll } = place;
    const width = place.width - gutter;
    const height = place.height - TOP;
    const rows = rowsBetween(layout.rows, scroll, scroll + height);
    const lanes = rows.map((row) => row.lane);
    const items = rows.length > 0 ? this.source.items(view.t0, view.t1, width * ratio, lanes) : null;
    const { choice, path } = scene.highlight;
    const chosen = choice && this.source.matchItems();
    const onPath = path?.levels.at((view.t1 - view.t0) / (width * ratio));
    const bright = [chosen, onPath].filter((layer) => !!layer);
    const layers: Layer[] = items
      ? [
          { items, inks: bright.length > 0 ? palette.faded : palette },
          ...bright.map((layer) => ({ items: layer, inks: palette })),
        ]
      : [];
    const area = { top: TOP, scroll, width, height, ratio };
    const columns = Math.max(1, Math.round(width * ratio));
    const grounds = this.#grounds(scene, columns, palette);
    const wide = this.#scanline.draw(context, layers, rows, view, area, grounds, palette.grounds.plain);
    context.save();
    context.beginPath();
    context.rect(gutter, TOP, width, height);
    context.clip();
    const target = { x: gutter, y: TOP - scroll, width };
    layers.forEach((layer, at) => {
      // On the path only its own parts are named: two names would stand on one spot.
      if (onPath ? at === 0 : at > 0) return;
      const named = choice && !onPath ? colours(choice, palette) : palette.textOnKind;
      this.#labels.draw(context, layer.items, rows, wide[at] as number[][], view, named, target);
    });
    context.restore();
  }

  /** Behind the lanes of each rank every other iteration is tinted, and those that are chosen stand out. */
  #grounds(scene: Scene, columns: number, palette: Palette): Ground[] {
    const { plain, odd, chosen } = palette.grounds;
    const { view, scroll, height } = scene.place;
    const grounds: Ground[] = [];
    for (const { rank, y, bottom } of scene.layout.stretches) {
      const bands = this.bands.get(rank);
      if (!bands || bottom < scroll || y > scroll + height) continue;
      const pixels = new Uint32Array(columns).fill(plain);
      const [from, to] = bands.shown(view);
      for (let at = from; at < to; at++) {
        const band = bands.all[at] as IterationInfo;
        if (scene.iterations.includes(band.iteration)) tint(pixels, view, band, chosen);
        else if (at % 2) tint(pixels, view, band, odd);
      }
      grounds.push({ top: y, bottom, pixels });
    }
    return grounds;
  }
}

function tint(pixels: Uint32Array, view: View, band: IterationInfo, colour: number): void {
  const { length } = pixels;
  const columnOf = (t: number) => {
    const column = Math.round(((t - view.t0) * length) / (view.t1 - view.t0));
    return Math.min(Math.max(column, 0), length);
  };
  pixels.fill(colour, columnOf(band.start), columnOf(band.end));
}

/** Names on slices that are not chosen stay readable on their faded colour. */
function colours({ kinds }: Choice, palette: Palette): string[] {
  return palette.textOnKind.map((colour, kind) =>
    kinds[kind] ? colour : (palette.textOnFaded[kind] as string),
  );
}
