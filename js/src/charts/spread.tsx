// For each kernel the range of its durations, with a dot at each rank's mean: how evenly the ranks run it.

import { Axis } from "./axis";
import type { ChartProps } from "./chart";
import { fittedNames, Mark } from "./mark";
import { max, min } from "./numbers";
import { Plot } from "./plot";
import { decades, logarithmic } from "./scale";
import { pickRank, toggled } from "./select";
import { unitOf } from "./unit";

const ROW = 22;
const AXIS = 20;

export interface SpreadChart {
  type: "spread";
  mid: string;
  label: string;
}

export function Spread({ marks, chart, legend, width, selecting }: ChartProps<SpreadChart>) {
  const lines = marks.numbers("line");
  const ranks = marks.numbers("rank");
  const mids = marks.numbers("mid");
  const lows = marks.numbers("low").map((value) => Math.max(1, value));
  const highs = marks.numbers("high").map((value) => Math.max(1, value));
  const classes = marks.texts("time_class");
  const name = Math.round(width * 0.4);
  const inner = Math.max(80, width - name - 24);
  const [lowest, highest] = [min(lows) ?? 1, max(highs) ?? 10];
  const x = logarithmic(lowest, Math.max(highest, lowest * 1.01), inner);
  const height = legend.length * ROW;
  const all = [...new Set(ranks)];
  const shown = fittedNames(legend, name - 12);
  const chosen = selecting.names.value;
  const any = legend.some((label) => chosen.includes(label));
  return (
    <>
      <p class="hta-legend">Line: shortest to longest launch of all ranks. Dot: a rank's mean.</p>
      <Plot label="Durations of kernels by rank" width={name + inner + 24} height={height + AXIS}>
        <g transform={`translate(${name} 0)`}>
          <Axis
            {...{ height, inner }}
            ticks={decades(lowest, highest).map((at) => ({ at: x(at), text: text(at) }))}
          />
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
                label={`${label}: ${text(low)} to ${text(high)}, means ${text(min(means) ?? 0)} to ${text(max(means) ?? 0)}. Choose its events.`}
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
                const told = `rank ${rank}: mean ${text(mid)}, ${text(lows[i] ?? 0)} to ${text(highs[i] ?? 0)}`;
                return (
                  <Mark
                    key={rank}
                    label={`${label}, ${told}. Select this rank.`}
                    first={false}
                    pressed={selecting.ranks.value.includes(rank)}
                    onPick={(event) => pickRank(selecting, all, rank, event)}
                  >
                    <title>{`${told} (${exact(mid)})`}</title>
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
