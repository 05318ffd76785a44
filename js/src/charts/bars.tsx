// Stacked horizontal bars, one per rank or stretch of time, all of the same whole so that lengths compare.

import { duration, exact, percent, timeUnit } from "../format";
import { Axis } from "./axis";
import type { ChartProps } from "./chart";
import { Distribution, type Strip } from "./distribution";
import { Fill } from "./fills";
import { Legend, type Series } from "./legend";
import { fitted, labelWidth, Mark } from "./mark";
import { max, ticks as roundTicks } from "./numbers";
import { Plot } from "./plot";
import { linear } from "./scale";
import { pickRank, pickWindow } from "./select";

const ROW = 20;
const BAR = 14;
const AXIS = 20;
const RIGHT = 64;

export interface StackChart {
  type: "stack";
  series: Series[];
  whole: string;
}

export function Bars({ marks, chart, legend, width, selecting }: ChartProps<StackChart>) {
  const ranks = [...marks.numbers("rank")];
  const steps = [...marks.numbers("iteration")];
  const labels = marks.texts("label");
  const wholes = marks.numbers(chart.whole);
  const [starts, ends] = [marks.numbers("start"), marks.numbers("end")];
  const now = selecting.window.value;
  const isNow = (row: number) => now !== null && starts[row] === now[0] && ends[row] === now[1];
  const left = labelWidth(labels, width * 0.4);
  // of many ranks some have bars, and all are in the strips
  const strips = legend.map((text): Strip => JSON.parse(text));
  const longest = max([...wholes, ...strips.map((strip) => strip.longest)]) ?? 0;
  const unit = timeUnit(longest);
  const inner = Math.max(80, width - left - RIGHT);
  const x = linear(0, longest / unit.scale || 1, inner);
  const ticks = roundTicks(0, longest / unit.scale || 1, Math.max(2, Math.floor(inner / 96)));
  const drawn = [...labels.keys()];
  const height = drawn.length * ROW;
  const used = chart.series.filter(({ column }) =>
    strips.length
      ? strips.some((strip) => strip.column === column)
      : marks.numbers(column).some((value) => value > 0),
  );
  const all = [...new Set(ranks)];
  return (
    <>
      <Legend series={used.length ? used : chart.series} />
      {strips.length > 0 && (
        <Distribution
          series={used}
          values={(column) => marks.numbers(column)}
          label={(row) => (labels[row] ?? "").replace(/^r/, "R")}
          selected={selecting.ranks.value}
          pick={(rank, event) => pickRank(selecting, all, rank, event)}
          {...{ strips, ranks, width }}
        />
      )}
      {strips.length > 0 && drawn.length > 0 && <p class="hta-muted">Ranks that stand out:</p>}
      {drawn.length > 0 && (
        <Plot label="Time split into parts" width={left + inner + RIGHT} height={height + AXIS}>
          <g transform={`translate(${left} 0)`}>
            <Axis
              {...{ height, inner }}
              ticks={ticks.map((tick) => ({ at: x(tick), text: exact(tick, unit.name) }))}
            />
          </g>
          {drawn.map((row, line) => {
            const label = labels[row] ?? "";
            const rank = ranks[row]; // none: the bar is of a whole run
            const whole = wholes[row] ?? 0;
            const share = (value: number) => (whole ? percent((100 * value) / whole) : "no time");
            let start = 0;
            const parts = used.map((part) => {
              const value = marks.numbers(part.column)[row] || 0; // unknown: not drawn
              const from = start;
              start += value;
              return { part, value, from };
            });
            const text = parts.map(({ part, value }) => `${part.label} ${duration(value)} (${share(value)})`);
            const [begin, end] = [starts[row] ?? Number.NaN, ends[row] ?? Number.NaN];
            const timed = begin < end;
            const chosen = timed ? isNow(row) : rank !== undefined && selecting.ranks.value.includes(rank);
            const any = timed ? drawn.some(isNow) : selecting.ranks.value.length > 0;
            const invites = rank === undefined ? "" : ` Select this ${timed ? "stretch of time" : "rank"}.`;
            const place = rank === undefined ? label : label.replace(/^r/, "R");
            const at = (ns: number) => left + x(ns / unit.scale);
            return (
              <Mark
                key={label}
                label={`${place}: ${text.join(", ") || "no time"}; ${duration(whole)} in all.${invites}`}
                transform={`translate(0 ${line * ROW})`}
                first={line === 0}
                dim={rank !== undefined && any && !chosen}
                pressed={chosen}
                onPick={
                  rank === undefined
                    ? null
                    : (event) => {
                        if (timed) return pickWindow(selecting, begin, end);
                        pickRank(selecting, all, rank, event);
                        if (steps.length && chosen) selecting.iterations.value = [];
                      }
                }
              >
                <rect class="hta-bar-hit" width="100%" height={ROW} />
                <text x={left - 8} y={ROW - 6} text-anchor="end">
                  {fitted(label, left - 12)}
                </text>
                {parts.map(({ part, value, from }) => (
                  <Fill
                    key={part.column}
                    series={part}
                    x={at(from)}
                    y={(ROW - BAR) / 2}
                    width={Math.max(0, at(from + value) - at(from))}
                    height={BAR}
                  >
                    <title>{`${place}, ${part.label}: ${share(value)}, ${exact(value, "ns")}`}</title>
                  </Fill>
                ))}
                <text class="hta-value" x={at(whole) + 6} y={ROW - 6}>
                  {duration(whole)}
                </text>
              </Mark>
            );
          })}
        </Plot>
      )}
    </>
  );
}
