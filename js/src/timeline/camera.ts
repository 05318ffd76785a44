// Which part of time is visible. Pure functions: a view goes in, a new view comes out.

import type { View } from "./types";

/** Zooming in ends here: below, pixels are finer than the nanoseconds of the data. */
export const NARROWEST_NS = 100;
/** How far one may look past either end, as a share of the visible width. */
const OVERSHOOT = 0.02;

export function clampView(view: View, extent: readonly [number, number]): View {
  const span = Math.max(extent[1] - extent[0], NARROWEST_NS);
  const width = Math.min(Math.max(view.t1 - view.t0, NARROWEST_NS), span * (1 + 2 * OVERSHOOT));
  const room = width * OVERSHOOT;
  const centre = (view.t0 + view.t1) / 2;
  const latest = Math.max(extent[0] - room, extent[1] + room - width);
  const t0 = Math.min(Math.max(centre - width / 2, extent[0] - room), latest);
  return { t0, t1: t0 + width };
}

/** Make the view `factor` times as wide; `at` keeps its place on the screen. */
export function zoomAt(view: View, factor: number, at: number, extent: readonly [number, number]): View {
  const width = view.t1 - view.t0;
  const wanted = Math.max(width * factor, NARROWEST_NS);
  const share = (at - view.t0) / width;
  const t0 = at - share * wanted;
  return clampView({ t0, t1: t0 + wanted }, extent);
}

export function panBy(view: View, ns: number, extent: readonly [number, number]): View {
  return clampView({ t0: view.t0 + ns, t1: view.t1 + ns }, extent);
}

/** Show [start, end] with a margin on both sides, as a share of its length. */
export function frameAround(
  start: number,
  end: number,
  margin: number,
  extent: readonly [number, number],
): View {
  const room = Math.max((end - start) * margin, NARROWEST_NS / 2);
  return clampView({ t0: start - room, t1: end + room }, extent);
}

/** The view moved or widened no more than needed for [start, end] to be readable in it. */
export function reveal(
  view: View,
  start: number,
  end: number,
  extent: readonly [number, number],
  margin = 0.15,
): View {
  const inside = start >= view.t0 && end <= view.t1;
  const legible = end - start >= (view.t1 - view.t0) * 0.02;
  return inside && legible ? view : frameAround(start, end, margin, extent);
}
