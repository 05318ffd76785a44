// What two fingers do: spreading them zooms around the place between them, moving them moves the view along.

export interface Point {
  x: number;
  y: number;
}

export interface Pinch {
  /** the view gets this many times as wide */
  factor: number;
  /** between the fingers, before and now */
  from: Point;
  to: Point;
}

/** Fingers closer together than this, in pixels, say nothing about a zoom. */
const CLOSEST = 16;

export function pinch(before: readonly [Point, Point], now: readonly [Point, Point]): Pinch {
  const spread = ([a, b]: readonly [Point, Point]) => Math.max(Math.hypot(a.x - b.x, a.y - b.y), CLOSEST);
  const middle = ([a, b]: readonly [Point, Point]) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
  return { factor: spread(before) / spread(now), from: middle(before), to: middle(now) };
}
