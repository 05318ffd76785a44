// How many rows have a value of which magnitude.

import { grouped } from "../format";
import { Axis } from "./axis";
import type { ChartProps } from "./chart";
import { Mark } from "./mark";
import { max, ticks } from "./numbers";
import { Plot } from "./plot";
import { decades, linear, logarithmic } from "./scale";
import { inWords, unitOf } from "./unit";

const HEIGHT = 140;
const AXIS = 20;
const LEFT = 48;
const TOP = 8;

export interface HistogramChart {
  type: "histogram";
  value: string;
  time_class: string;
}

export function Histogram({ marks, chart, width }: ChartProps<HistogramChart>) {
  const lows = marks.numbers("low");
  const highs = marks.numbers("high");
  const counts = marks.numbers("count");
  const [low, high] = [lows[0] ?? 1, highs[highs.length - 1] ?? 10];
  const inner = Math.max(80, width - LEFT - 16);
  const x = logarithmic(low, high, inner);
  const most = max(counts) || 1;
  const up = linear(0, most, HEIGHT);
  const y = (count: number) => HEIGHT - up(count);
  const text = (value: number) => unitOf(chart.value, [value]).text(value);
  return (
    <Plot label={`Rows by ${inWords(chart.value)}`} width={LEFT + inner + 16} height={TOP + HEIGHT + AXIS}>
      <g transform={`translate(${LEFT} ${TOP})`}>
        <Axis
          height={HEIGHT}
          inner={inner}
          ticks={decades(low, high).map((at) => ({ at: x(at), text: text(at) }))}
        />
        {ticks(0, most, 3).map((tick) => (
          <g key={tick} transform={`translate(0 ${y(tick)})`}>
            <line class="hta-grid" x2={inner} />
            <text x={-8} y={4} text-anchor="end">
              {grouped(tick)}
            </text>
          </g>
        ))}
        {Array.from(counts, (count, bin) => {
          const [from, to] = [lows[bin] ?? low, highs[bin] ?? high];
          if (!count) return null;
          const description = `${text(from)} to ${text(to)}: ${grouped(count)}`;
          return (
            <Mark key={from} label={description} onPick={null} first={bin === 0}>
              <title>{description}</title>
              <rect
                x={x(from)}
                y={y(count)}
                width={Math.max(1, x(to) - x(from) - 1)}
                height={HEIGHT - y(count)}
                fill={`var(--hta-${chart.time_class})`}
              />
            </Mark>
          );
        })}
      </g>
    </Plot>
  );
}
