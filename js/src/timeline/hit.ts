// What is under a point: the minimap, a header, a fold, an edge of the brushed window, or a row.

import { MINIMAP_HEIGHT, type Place, TOP, xOf } from "./frame";
import { HEADER_HEIGHT, headerTop, type Layout, type Row, rowAt } from "./layout";

const EDGE_REACH = 5;

export type Hit =
  | { on: "minimap" }
  | { on: "header"; group: string }
  | { on: "fold"; lane: number }
  | { on: "edge"; edge: 0 | 1 }
  | { on: "axis" }
  | { on: "lanes"; row: Row | null }
  | { on: "gutter" };

export function hit(
  place: Place,
  layout: Layout,
  window: readonly [number, number] | null,
  x: number,
  y: number,
): Hit {
  if (y < MINIMAP_HEIGHT) return { on: "minimap" };
  const height = y - TOP + place.scroll;
  if (y >= TOP) {
    const below = y - TOP;
    const header = layout.headers.find((each) => {
      const top = headerTop(layout, each, place.scroll);
      return top !== null && below >= Math.max(top, layout.pinned) && below < top + HEADER_HEIGHT;
    });
    if (header) return { on: "header", group: header.text };
  }
  if (x < place.gutter) {
    const label = layout.tracks.find((t) => t.foldable > 0 && height >= t.y && height < t.y + t.h);
    return label && y >= TOP ? { on: "fold", lane: label.track.first } : { on: "gutter" };
  }
  if (window) {
    const reach = window.map((t) => Math.abs(xOf(place, t) - x)) as [number, number];
    const edge = reach[0] <= reach[1] ? 0 : 1;
    if (reach[edge] <= EDGE_REACH) return { on: "edge", edge };
  }
  return y < TOP ? { on: "axis" } : { on: "lanes", row: rowAt(layout.rows, height) };
}
