// Draws everything but what follows the pointer: bands, slices, names, the path, the gutter, the axis and the minimap.

import { drawAxis, drawBands, drawGutter, type Place, TOP } from "./frame";
import type { Highlight } from "./highlight";
import { Labels } from "./labels";
import { type Layout, rowsBetween } from "./layout";
import type { Choice } from "./matches";
import { drawMinimap } from "./minimap";
import type { Palette } from "./palette";
import { drawPath } from "./pathline";
import { type Layer, Scanline } from "./scanline";
import type { Source } from "./source";
import type { Items, IterationInfo, Outline } from "./types";

export interface Scene {
  place: Place;
  layout: Layout;
  /** canvas pixels per CSS pixel */
  ratio: number;
  /** iterations on the axis, and the numbers of those that stand out */
  bands: readonly IterationInfo[];
  iterations: readonly number[];
  highlight: Highlight;
}

export class Picture {
  #scanline = new Scanline();
  #labels: Labels;

  constructor(
    private readonly outline: Outline,
    private readonly source: Source,
  ) {
    this.#labels = new Labels(outline);
  }

  draw(context: CanvasRenderingContext2D, scene: Scene, palette: Palette): void {
    const { place, layout, iterations, highlight } = scene;
    if (place.width <= place.gutter) return;
    context.fillStyle = palette.background;
    context.fillRect(0, 0, place.width, place.height);
    drawBands(context, place, layout, this.outline.iterations, iterations, palette);
    this.#drawSlices(context, scene, palette);
    if (highlight.path) drawPath(context, place, layout, highlight.path, palette);
    drawGutter(context, place, layout, palette);
    drawAxis(context, place, scene.bands, iterations, palette);
    drawMinimap(context, place, this.outline, highlight.found, palette);
  }

  #drawSlices(context: CanvasRenderingContext2D, scene: Scene, palette: Palette): void {
    const { place, layout, ratio } = scene;
    const { gutter, view } = place;
    const rows = rowsBetween(layout.rows, place.scroll, place.scroll + place.height - TOP);
    if (rows.length === 0) return;
    const width = place.width - gutter;
    const lanes = rows.map((row) => row.lane);
    const items = this.source.items(view.t0, view.t1, width * ratio, lanes);
    if (!items) return;
    const { choice, path } = scene.highlight;
    const chosen = choice && this.source.matchItems();
    const onPath = path?.levels.at((view.t1 - view.t0) / (width * ratio));
    const bright = [chosen, onPath].filter((layer) => !!layer);
    const layers: Layer[] = [
      { items, inks: bright.length > 0 ? palette.faded : palette },
      ...bright.map((layer) => ({ items: layer, inks: palette })),
    ];
    const target = { x: gutter, y: TOP - place.scroll, width, ratio };
    context.save();
    context.beginPath();
    context.rect(gutter, TOP, width, place.height - TOP);
    context.clip();
    this.#scanline.draw(context, layers, rows, view, target);
    const name = (named: Items, colours: readonly string[]) =>
      this.#labels.draw(context, named, rows, view, colours, target);
    // On the path only its own parts are named: two names would stand on one spot.
    if (onPath) for (const layer of bright) name(layer, palette.textOnKind);
    else name(items, choice ? colours(choice, palette) : palette.textOnKind);
    context.restore();
  }
}

/** Names on slices that are not chosen stay readable on their faded colour. */
function colours({ kinds }: Choice, palette: Palette): string[] {
  return palette.textOnKind.map((colour, kind) => (kinds[kind] ? colour : palette.muted));
}
