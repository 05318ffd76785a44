// Draws counters: an area up to the least value that a pixel shows, and a lighter one up to the greatest.

import { visible } from "../visible";
import { type Counters, valuesIn, valueText } from "./counters";
import { FONT, type Place, shortened, TOP, timeAt } from "./frame";
import type { CounterRow, Layout } from "./layout";
import type { Palette } from "./palette";
import type { Facts } from "./tooltip";

const SURE = 0.8;
const SOMEWHERE = 0.4;
/** Room that is left above the greatest value. */
const HEADROOM = 3;

export function drawCounters(
  context: CanvasRenderingContext2D,
  place: Place,
  layout: Layout,
  counters: Counters,
  ratio: number,
  palette: Palette,
): void {
  const rows = shown(place, layout);
  const width = place.width - place.gutter;
  const loaded = counters.at(
    place.view,
    width * ratio,
    rows.map((row) => row.counter),
  );
  if (rows.length === 0) return;
  context.save();
  context.beginPath();
  context.rect(place.gutter, TOP, width, place.height - TOP);
  context.clip();
  const edges = Float64Array.from({ length: Math.ceil(width) + 1 }, (_, x) =>
    timeAt(place, place.gutter + x),
  );
  for (const row of rows) {
    const { bottom, top } = row.counter;
    const height = row.h - HEADROOM;
    const base = TOP + row.y - place.scroll + row.h;
    const heightOf = (value: number) => (height * (value - bottom)) / (top - bottom || 1);
    const zero = base - heightOf(0);
    context.fillStyle = palette.line;
    context.fillRect(place.gutter, Math.round(zero) - 0.5, width, 1);
    if (!loaded) continue;
    const sure = new Path2D();
    const somewhere = new Path2D();
    /** one bar for neighbours of one height */
    let run: [x: number, low: number, high: number] | null = null;
    const close = (x: number) => {
      if (!run) return;
      const [from, low, high] = run;
      const near = Math.sign(low) === Math.sign(high) ? (low >= 0 ? low : high) : 0;
      bar(sure, from, x, zero, base - heightOf(near));
      for (const far of [low, high])
        if (far !== near) bar(somewhere, from, x, base - heightOf(near), base - heightOf(far));
    };
    for (let i = 0; i + 1 < edges.length; i++) {
      const x = place.gutter + i;
      const found = valuesIn(loaded, row.counter, edges[i] as number, edges[i + 1] as number);
      if (run && found && run[1] === found[0] && run[2] === found[1]) continue;
      close(x);
      run = found && [x, ...found];
    }
    close(place.width);
    context.fillStyle = palette.muted;
    context.globalAlpha = SURE;
    context.fill(sure);
    context.globalAlpha = SOMEWHERE;
    context.fill(somewhere);
    context.globalAlpha = 1;
  }
  context.restore();
}

/** Names of counters, and how high their scale goes. */
export function drawCounterNames(
  context: CanvasRenderingContext2D,
  place: Place,
  layout: Layout,
  palette: Palette,
): void {
  context.save();
  context.beginPath();
  context.rect(0, TOP, place.gutter - 1, place.height - TOP);
  context.clip();
  context.font = FONT;
  const put = (text: string, y: number) =>
    context.fillText(shortened(context, visible(text), place.gutter - 32), 24, y);
  for (const { counter, y } of shown(place, layout)) {
    const top = TOP + y - place.scroll;
    const most = `up to ${valueText(counter, counter.most)}`;
    context.fillStyle = palette.text;
    put(counter.name, top + 9);
    context.fillStyle = palette.muted;
    put(counter.lane < 0 ? `${counter.key} · ${most}` : most, top + 22);
  }
  context.restore();
}

/** The row of a counter at a height of the layout. */
export function counterAt(layout: Layout, y: number): CounterRow | null {
  return layout.counters.find((row) => y >= row.y && y < row.y + row.h) ?? null;
}

/** What a counter counts; at a point of its row: its value there. */
export function describeCounter(
  place: Place,
  row: CounterRow,
  counters: Counters,
  ratio: number,
  x: number,
): Facts {
  const { counter } = row;
  const range = `from ${valueText(counter, counter.least)} to ${valueText(counter, counter.most)} in the recording`;
  const name = `${counter.name} · ${counter.key}`;
  if (x < place.gutter) return { name, lines: [range] };
  const width = place.width - place.gutter;
  const loaded = counters.at(place.view, width * ratio, [counter]);
  const left = Math.floor(x);
  const found = loaded && valuesIn(loaded, counter, timeAt(place, left), timeAt(place, left + 1));
  const [low, high] = found ?? [];
  const here =
    low === undefined || high === undefined
      ? "not known yet"
      : low === high
        ? valueText(counter, low)
        : `${valueText(counter, low)} to ${valueText(counter, high)}: zoom in to see each`;
  return { name, lines: [here, range] };
}

function shown({ scroll, height }: Place, layout: Layout): CounterRow[] {
  return layout.counters.filter(({ y, h }) => y + h > scroll && y < scroll + height - TOP);
}

function bar(path: Path2D, from: number, to: number, a: number, b: number): void {
  path.rect(from, Math.min(a, b), to - from, Math.abs(a - b));
}
