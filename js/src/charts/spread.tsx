// For each label the range of its values, with a dot at each rank's mean: how much the ranks differ.

import { Axis } from "./axis";
import type { ChartProps } from "./chart";
import { fittedNames, Mark } from "./mark";
import { max, min, ticks } from "./numbers";
import { Plot } from "./plot";
import { decades, linear, logarithmic } from "./scale";
import { pickRank, toggled } from "./select";
import { inWords, unitOf } from "./unit";

const ROW = 22;
const AXIS = 20;

export interface SpreadChart {
  type: "spread";
  mid: string;
  label: string;
  /** what a line is the range of, and what a dot is of them */
  item: string;
  centre: string;
  scale: "log" | "linear";
  measure?: string;
}

export function Spread({ marks, chart, legend, width, selecting }: ChartProps<SpreadChart>) {
  const lines = marks.numbers("line");
  const ranks = marks.numbers("rank");
  const mids = marks.numbers("mid");
  const log = chart.scale === "log";
  const least = log ? 1 : Number.NEGATIVE_INFINITY; // no zero on a logarithmic axis
  const lows = marks.numbers("low").map((value) => Math.max(least, value));
  const highs = marks.numbers("high").map((value) => Math.max(least, value));
  const classes = marks.texts("time_class");
  const name = Math.round(width * 0.4);
  const inner = Math.max(80, width - name - 24);
  const top = max(highs) ?? 10;
  const lowest = log ? (min(lows) ?? 1) : Math.min(0, min(lows) ?? 0);
  const highest = log ? Math.max(top, lowest * 1.01) : top;
  const x = (log ? logarithmic : linear)(lowest, highest, inner);
  const at = log ? decades(lowest, top) : ticks(lowest, highest, Math.max(2, Math.floor(inner / 96)));
  const height = legend.length * ROW;
  const all = [...new Set(ranks)];
  const short = new Map(marks.texts("short").map((text, i) => [lines[i], text]));
  const shown = fittedNames(
    legend.map((label, line) => short.get(line) ?? label),
    name - 12,
  );
  const chosen = selecting.names.value;
  const any = legend.some((label) => chosen.includes(label));
  return (
    <>
      <p class="hta-legend">
        Line: least to greatest {chart.item} of all ranks. Dot: a rank's {chart.centre}.
      </p>
      <Plot
        label={`${chart.measure || inWords(chart.mid)} by ${inWords(chart.label)} and rank`}
        width={name + inner + 24}
        height={height + AXIS}
      >
        <g transform={`translate(${name} 0)`}>
          <Axis {...{ height, inner }} ticks={at.map((value) => ({ at: x(value), text: text(value) }))} />
        </g>
        {legend.map((label, line) => {
          const rows = Array.from(lines.keys()).filter((i) => lines[i] === line);
          const low = min(rows.map((i) => lows[i])) ?? 1;
          const high = max(rows.map((i) => highs[i])) ?? 1;
          const means = rows.map((i) => mids[i]);
          const fill = `var(--hta-${classes[rows[0] ?? 0]})`;
          const middle = ROW / 2;
          return (
            <g key={label} transform={`translate(0 ${line * ROW})`}>
              <Mark
                label={`${label}: ${text(low)} to ${text(high)}, ${chart.centre}s ${text(min(means) ?? 0)} to ${text(max(means) ?? 0)}. Choose its events.`}
                first={line === 0}
                pressed={chosen.includes(label)}
                dim={any && !chosen.includes(label)}
                onPick={() => {
                  selecting.names.value = toggled(chosen, [label]);
                }}
              >
                <title>{`${label}: ${exact(low)} to ${exact(high)}`}</title>
                <rect class="hta-bar-hit" width="100%" height={ROW} />
                <text class="hta-bar-name" x={4} y={ROW - 7}>
                  {shown[line]}
                </text>
                <path
                  class="hta-range"
                  d={`M${name + x(low)} ${middle}H${name + x(high)}M${name + x(low)} ${middle - 4}v8M${name + x(high)} ${middle - 4}v8`}
                  stroke={fill}
                />
              </Mark>
              {rows.map((i) => {
                const [rank, mid] = [ranks[i] ?? 0, mids[i] ?? 0];
                const description = `rank ${rank}: ${chart.centre} ${text(mid)}, ${text(lows[i] ?? 0)} to ${text(highs[i] ?? 0)}`;
                return (
                  <Mark
                    key={rank}
                    label={`${label}, ${description}. Select this rank.`}
                    first={false}
                    pressed={selecting.ranks.value.includes(rank)}
                    onPick={(event) => pickRank(selecting, all, rank, event)}
                  >
                    <title>{`${description} (${exact(mid)})`}</title>
                    <circle
                      class="hta-dot-mark"
                      cx={name + x(Math.max(lowest, mid))}
                      cy={middle}
                      r={4}
                      fill={fill}
                    />
                  </Mark>
                );
              })}
            </g>
          );
        })}
      </Plot>
    </>
  );

  function text(value: number): string {
    return unitOf(chart.mid, [value]).text(value);
  }
  function exact(value: number): string {
    return unitOf(chart.mid, [value]).exact(value);
  }
}
