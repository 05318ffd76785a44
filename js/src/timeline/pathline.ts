// Draws the critical path: an outline around each slice on it, a thin line where it waits or nothing is recorded, and
// thinner steps between lanes.
//
// All of it is upright rectangles, the cheapest there is to draw, and what falls on one pixel column becomes one step:
// no more of them than pixels, however many segments there are.

import { type Place, TOP } from "./frame";
import type { Layout } from "./layout";
import type { Palette } from "./palette";
import type { CriticalPath } from "./path";
import { lowerBound } from "./pyramid";

const OUTLINED = 5;
const THICK = 2;
const STEP_ALPHA = 0.55;

export function drawPath(
  context: CanvasRenderingContext2D,
  place: Place,
  layout: Layout,
  shown: CriticalPath,
  palette: Palette,
): void {
  const { start, end, n } = shown.path;
  context.save();
  context.beginPath();
  context.rect(place.gutter, TOP, place.width - place.gutter, place.height - TOP);
  context.clip();
  context.fillStyle = palette.text;
  const rows = rowsByLane(layout);
  // The path of a rank and window has no gaps: another one begins where the time is another one.
  for (let from = 0; from < n; ) {
    let to = from + 1;
    while (to < n && start[to] === end[to - 1]) to++;
    const first = Math.max(from, lowerBound(start, from, to, place.view.t0) - 1);
    drawOne(context, place, rows, shown, first, lowerBound(start, first, to, place.view.t1));
    from = to;
  }
  context.restore();
}

interface Rows {
  /** per lane: the middle of its row, NaN where it has none, and the row's height */
  y: Float64Array;
  h: Float64Array;
}

function rowsByLane({ rows }: Layout): Rows {
  const lanes = rows.reduce((most, row) => Math.max(most, row.lane + 1), 0);
  const found = { y: new Float64Array(lanes).fill(Number.NaN), h: new Float64Array(lanes) };
  for (const row of rows) {
    found.y[row.lane] = row.y + row.h / 2;
    found.h[row.lane] = row.h;
  }
  return found;
}

function drawOne(
  context: CanvasRenderingContext2D,
  place: Place,
  rows: Rows,
  shown: CriticalPath,
  from: number,
  to: number,
): void {
  const { start, end, lane } = shown.path;
  const { t0, t1 } = place.view;
  const scale = (place.width - place.gutter) / (t1 - t0);
  const origin = place.gutter - t0 * scale;
  const down = TOP - place.scroll;
  let before = Number.NaN;
  let column = Number.NaN;
  let [top, bottom] = [0, 0];
  const drawStep = () => {
    context.globalAlpha = STEP_ALPHA;
    if (bottom > top) context.fillRect(column, top, 1, bottom - top);
    context.globalAlpha = 1;
  };
  for (let i = from; i < to; i++) {
    const y = down + (rows.y[lane[i] as number] ?? Number.NaN);
    const x = origin + (start[i] as number) * scale;
    // A row that is not on display has no place: no step leads there.
    if (y !== before && !Number.isNaN(y + before)) {
      const at = Math.floor(x);
      if (at !== column) {
        drawStep();
        column = at;
        top = bottom = before;
      }
      top = Math.min(top, before, y);
      bottom = Math.max(bottom, before, y);
    }
    before = y;
    const right = origin + (end[i] as number) * scale;
    if (right - x < 1 || Number.isNaN(y)) continue;
    const [a, b] = [Math.max(x, place.gutter - 10), Math.min(right, place.width + 10)];
    const h = rows.h[lane[i] as number] as number;
    if (shown.bare(i)) context.fillRect(a, Math.round(y) - 0.5, b - a, 1);
    else if (b - a < OUTLINED || h < OUTLINED) context.fillRect(a, y - THICK / 2, b - a, THICK);
    else drawFrame(context, a, y - h / 2 - 1, b - a, h + 1); // half outside the row: its name needs the room
  }
  drawStep();
}

function drawFrame(context: CanvasRenderingContext2D, x: number, y: number, w: number, h: number): void {
  context.fillRect(x, y, w, THICK);
  context.fillRect(x, y + h - THICK, w, THICK);
  context.fillRect(x, y + THICK, THICK, h - 2 * THICK);
  context.fillRect(x + w - THICK, y + THICK, THICK, h - 2 * THICK);
}
