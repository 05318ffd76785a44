// A grid of cells, fuller the greater their value: which rank, and when or with which other rank.

import type { ChartProps } from "./chart";
import { Mark } from "./mark";
import { max, min } from "./numbers";
import { Plot } from "./plot";
import { inWords, unitOf } from "./unit";

const ROW = 20;
const LEFT = 64;
const AXIS = 20;
const SCALE = 96;

export interface HeatChart {
  type: "heat";
  x: string;
  y: string;
  value: string;
  time_class: string;
  measure?: string;
  /** the scale begins at the least value */
  contrast?: boolean;
}

/** With contrast, the scale spans at least this share of the least value: less is noise. */
const LEAST_SPAN = 0.1;

export function Heat({ marks, chart, legend, width, selecting }: ChartProps<HeatChart>) {
  const xs = marks.numbers("x");
  const ys = marks.numbers("y");
  const values = marks.numbers("value");
  const columns = distinct(xs);
  const rows = distinct(ys);
  const unit = unitOf(chart.value, values);
  const least = (chart.contrast && min(values)) || 0;
  const most = max(values) || 0;
  const span = Math.max(most, least * (1 + LEAST_SPAN)) - least || 1;
  const column = Math.max(4, Math.min(72, (width - LEFT - 8) / Math.max(1, columns.length)));
  const fill = `var(--hta-${chart.time_class})`;
  const height = rows.length * ROW;
  const every = Math.max(1, Math.ceil(36 / column));
  const tickLabel = (value: number | undefined) => {
    if (value === undefined || Number.isNaN(value)) return "none";
    return value < 0 ? "unknown" : String(value);
  };
  // of many ranks neighbours are one row; selecting them shows each by itself
  const bands = new Map(
    legend.map((text): [number, number[]] => {
      const ranks: number[] = JSON.parse(text);
      return [ranks[0] as number, ranks];
    }),
  );
  if (bands.size) rows.sort((a, b) => Number(bands.has(a)) - Number(bands.has(b))); // what stands out first
  // above rows that are too many to see the lower edge
  const top = bands.size ? AXIS : 0;
  const rowLabel = (y: number) => {
    const band = bands.get(y);
    return band ? `${tickLabel(y)}–${band.at(-1)}` : tickLabel(y);
  };
  const overTime = chart.x === "iteration";
  const { ranks, iterations } = selecting;
  const are = (signal: { value: number[] }, ...values: number[]) =>
    signal.value.length === values.length && values.every((value) => signal.value.includes(value));
  return (
    <>
      <p class="hta-legend">
        {chart.measure && <strong>{chart.measure}</strong>}
        <span>{least ? unit.text(least) : 0}</span>
        <svg width={SCALE} height={10} aria-hidden="true">
          {Array.from({ length: 16 }, (_, step) => (
            <rect
              key={step}
              x={(step * SCALE) / 16}
              width={SCALE / 16 + 0.5}
              height={10}
              fill={fill}
              fill-opacity={shade(((step / 15) * (most - least)) / span)}
            />
          ))}
        </svg>
        {most > least && <span>{unit.text(most)}</span>}
      </p>
      <Plot
        label={`${inWords(chart.value)} by ${chart.y} and ${chart.x}`}
        width={LEFT + column * columns.length + 8}
        height={height + AXIS}
      >
        {rows.map((y, row) => (
          <text key={y} x={LEFT - 8} y={top + row * ROW + ROW - 6} text-anchor="end">
            {bands.size ? "" : `${chart.y} `}
            {rowLabel(y)}
          </text>
        ))}
        {columns.map(
          (x, number) =>
            number % every === 0 && (
              <text
                key={x}
                x={LEFT + column * (number + 0.5)}
                y={top ? AXIS - 6 : height + 15}
                text-anchor="middle"
              >
                {tickLabel(x)}
              </text>
            ),
        )}
        {Array.from(values, (value, i) => {
          const [x, y] = [xs[i] ?? Number.NaN, ys[i] ?? Number.NaN];
          const band = bands.get(y);
          const pair = band ? band : overTime ? [y] : [...new Set([y, x])].filter((rank) => rank >= 0);
          const chosen = are(ranks, ...pair) && (!overTime || Number.isNaN(x) || are(iterations, x));
          const text = `${chart.y} ${rowLabel(y)}, ${chart.x} ${tickLabel(x)}: ${unit.text(value)}${band ? " on average" : ""}`;
          return (
            <Mark
              key={`${x} ${y}`}
              label={`${text}. Select ${band ? "these ranks" : "both"}.`}
              first={i === 0}
              pressed={chosen}
              onPick={() => {
                ranks.value = chosen ? [] : pair;
                if (overTime && !Number.isNaN(x)) iterations.value = chosen ? [] : [x];
              }}
            >
              <title>{`${text} (${unit.exact(value)})`}</title>
              <rect
                class="hta-cell"
                x={LEFT + column * index(columns, x) + 0.5}
                y={top + row(rows, y) + 0.5}
                width={column - 1}
                height={ROW - 1}
                fill={fill}
                fill-opacity={shade((value - least) / span)}
              />
            </Mark>
          );
        })}
      </Plot>
    </>
  );
}

const shade = (share: number) => 0.05 + 0.95 * Math.max(0, share || 0);
const index = (all: readonly number[], value: number) => all.findIndex((item) => Object.is(item, value));
const row = (all: readonly number[], value: number) => ROW * index(all, value);

/** Distinct numbers, ascending; NaN, where there is no number, last. */
function distinct(values: Iterable<number>): number[] {
  return [...new Set(values)].sort((a, b) => (Number.isNaN(a) ? 1 : Number.isNaN(b) ? -1 : a - b));
}
