// A line through the steps with a band around it, and a numbered dot at each outlier; a click selects the step.

import type { ChartProps } from "./chart";
import { Mark } from "./mark";
import { max, min, ticks } from "./numbers";
import { textWidth } from "./place";
import { Plot } from "./plot";
import { linear } from "./scale";
import { inWords, unitOf } from "./unit";

const LEFT = 72;
const TOP = 20; // room for the number of an outlier
const HEIGHT = 112;
const BASE = TOP + HEIGHT;
const AXIS = 24;
const LEAST_SPAN = 0.1; // of the least value: less is noise

export interface TrendChart {
  type: "trend";
  x: string;
  value: string;
  time_class: string;
  measure?: string;
}

export function Trend({ marks, chart, legend, width, selecting }: ChartProps<TrendChart>) {
  const numbers = (name: string) => Array.from(marks.numbers(name));
  const [steps, mids, lows, highs] = [numbers("x"), numbers("mid"), numbers("low"), numbers("high")];
  const [mosts, ranks, outliers] = [numbers("most"), numbers("rank"), numbers("outlier")];
  if (steps.length < 2) return null; // a sentence says as much
  const asides = marks.texts("aside");
  const reasons = [...new Set(asides)].filter(Boolean).join(", ");
  const all = [...lows, ...highs, ...mosts].filter((value) => value >= 0);
  const least = min(all) ?? 0;
  const most = Math.max(max(all) ?? 0, least * (1 + LEAST_SPAN));
  const scale = linear(least, most, HEIGHT);
  const y = (value = 0) => Math.round(BASE - scale(value));
  const column = Math.max(2, (width - LEFT - 16) / steps.length);
  const x = (i: number) => LEFT + Math.round(10 * column * (i + 0.5)) / 10;
  const right = LEFT + column * steps.length;
  const every = Math.ceil(36 / column);
  const unit = unitOf(chart.value, all);
  const stroke = `var(--hta-${chart.time_class})`;
  const { iterations } = selecting;
  let free = 0; // px: from where on there is room for the number of an outlier
  return (
    <>
      <p class="hta-legend">
        <strong>{chart.measure}</strong>
        <span>Line: {legend[0]}.</span>
        <span>Band: {legend[1]}.</span>
        {outliers.some(Boolean) && <span>Dot: unusually long.</span>}
        {reasons && <span>Ring, not counted: {reasons}.</span>}
      </p>
      <Plot label={`${inWords(chart.value)} by ${chart.x}`} width={right + 16} height={BASE + AXIS}>
        {ticks(least, most, 3).map((value) => (
          <g key={value}>
            <line class="hta-grid" x1={LEFT} x2={right} y1={y(value)} y2={y(value)} />
            <text x={LEFT - 8} y={y(value) + 4} text-anchor="end">
              {unit.text(value)}
            </text>
          </g>
        ))}
        {runs(mids).map((run) => {
          const along = (values: number[]) => run.map((i) => `${x(i)} ${y(values[i])}`);
          return (
            <g key={run[0]} stroke={stroke} stroke-linecap="round">
              <path
                d={`M${[...along(highs), ...along(lows).reverse()].join("L")}Z`}
                fill={stroke}
                opacity={0.25}
              />
              <path class="hta-line" d={`M${along(mids).join("L")}h.1`} />
            </g>
          );
        })}
        {steps.map((step, i) => {
          const [mid, value, odd, aside] = [mids[i], mosts[i] ?? 0, Boolean(outliers[i]), asides[i]];
          const chosen = iterations.value.length === 1 && iterations.value[0] === step;
          let text = `${chart.x} ${step}: `;
          if (aside) text += `${unit.text(value)}, ${aside}`;
          else text += `${unit.text(mid ?? 0)}`;
          if (!aside && value !== mid) text += `, up to ${unit.text(value)} on rank ${ranks[i]}`;
          if (odd) text += ", unusually long";
          const half = textWidth(`${step}`) / 2 + 2;
          const numbered = odd && x(i) - half >= free;
          if (numbered) free = x(i) + half;
          return (
            <Mark
              key={step}
              label={`${text}. Select this ${chart.x}.`}
              first={i === 0}
              pressed={chosen}
              onPick={() => {
                iterations.value = chosen ? [] : [step];
              }}
            >
              <title>{`${text} (${unit.exact(value)})`}</title>
              <rect class="hta-bar-hit" x={x(i) - column / 2} width={column} height={BASE} />
              {(odd || aside) && (
                <circle
                  class={odd ? "hta-dot-mark" : "hta-line"}
                  cx={x(i)}
                  cy={y(value)}
                  r={4}
                  fill="var(--hta-warning)"
                  stroke={stroke}
                />
              )}
              {numbered && (
                <text class="hta-value" x={x(i)} y={y(value) - 8} text-anchor="middle">
                  {step}
                </text>
              )}
              {i % every === 0 && (
                <text x={x(i)} y={BASE + 16} text-anchor="middle">
                  {step}
                </text>
              )}
            </Mark>
          );
        })}
      </Plot>
    </>
  );
}

/** The places of the numbers that are known, in stretches without a gap. */
function runs(values: readonly number[]): number[][] {
  const found: number[][] = [];
  for (const [i, value] of values.entries()) {
    if (Number.isNaN(value)) continue;
    const last = found.at(-1);
    if (last?.at(-1) === i - 1) last.push(i);
    else found.push([i]);
  }
  return found;
}
