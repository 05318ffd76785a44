// How the ranks of a large job share out the parts of their time: a strip for each part, and marks for some ranks.

import { duration, exact, timeUnit } from "../format";
import { Axis } from "./axis";
import type { Series } from "./legend";
import { Mark } from "./mark";
import { max, min, ticks } from "./numbers";
import { Plot } from "./plot";
import { linear } from "./scale";

const ROW = 30;
const STRIP = 14;
const AXIS = 20;
const LEFT = 150;
const BINS = 96;

export interface DistributionProps {
  series: readonly Series[];
  values(column: string): ArrayLike<number>;
  ranks: readonly number[];
  label(row: number): string;
  /** rows that have a mark of their own */
  marked: readonly number[];
  selected: readonly number[];
  pick(rank: number, event: MouseEvent | KeyboardEvent): void;
  width: number;
}

export function Distribution(props: DistributionProps) {
  const { series, ranks, label, marked, selected, pick, width } = props;
  const columns = series.map((part) => Array.from(props.values(part.column)));
  const most = max(columns.flat()) || 1;
  const unit = timeUnit([most]);
  const inner = Math.max(80, width - LEFT - 16);
  const x = linear(0, most / unit.scale, inner);
  const at = (ns: number) => LEFT + x(ns / unit.scale);
  const round = ticks(0, most / unit.scale, Math.max(2, Math.floor(inner / 96)));
  const height = series.length * ROW;
  return (
    <>
      <p class="hta-legend">
        {`Each strip: ${ranks.length.toLocaleString("en-US")} ranks, darker where more are; a line at the median.`}
        {marked.length > 0 && " Diamonds: the ranks with bars below, and those selected."}
      </p>
      <Plot label="How ranks share out the parts of their time" width={width} height={height + AXIS}>
        <g transform={`translate(${LEFT} 0)`}>
          <Axis
            {...{ height, inner }}
            ticks={round.map((tick) => ({ at: x(tick), text: exact(tick, unit.name) }))}
          />
        </g>
        {series.map((part, row) => {
          const values = columns[row] ?? [];
          const counts = binned(values, most);
          const fullest = max(counts) || 1;
          const median = middle(values);
          const fill = `var(--hta-${part.time_class})`;
          const [least, top] = [min(values) ?? 0, max(values) ?? 0];
          const said = `${part.label} of ${ranks.length} ranks: ${duration(least)} to ${duration(top)}, median ${duration(median)}`;
          return (
            <g key={part.column} transform={`translate(0 ${row * ROW})`}>
              <Mark label={said} first={row === 0} onPick={null}>
                <title>{said}</title>
                <rect class="hta-bar-hit" width={LEFT} height={ROW} />
                <text x={LEFT - 8} y={ROW / 2 + 4} text-anchor="end">
                  {part.label}
                </text>
                {counts.map(
                  (count, bin) =>
                    count > 0 && (
                      <rect
                        key={bin}
                        x={at((most * bin) / BINS)}
                        y={(ROW - STRIP) / 2}
                        width={inner / BINS + 0.5}
                        height={STRIP}
                        fill={fill}
                        fill-opacity={0.15 + 0.85 * Math.sqrt(count / fullest)}
                      />
                    ),
                )}
                <path class="hta-range" d={`M${at(median)} ${ROW / 2 - 11}v22`} stroke="var(--hta-text)" />
              </Mark>
              {marked.map((index) => {
                const rank = ranks[index] ?? 0;
                const value = values[index] ?? 0;
                const text = `${label(index)}, ${part.label}: ${duration(value)}, median ${duration(median)}`;
                return (
                  <Mark
                    key={rank}
                    label={`${text}. Select this rank.`}
                    first={false}
                    pressed={selected.includes(rank)}
                    onPick={(event) => pick(rank, event)}
                  >
                    <title>{text}</title>
                    <path
                      class="hta-distribution-mark"
                      d={`M${at(value)} ${ROW / 2 - 6}l5 6l-5 6l-5 -6z`}
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
}

/** How many values lie in each of equal parts from 0 to the most. */
export function binned(values: readonly number[], most: number): number[] {
  const counts = new Array<number>(BINS).fill(0);
  for (const value of values) {
    const bin = Math.min(BINS - 1, Math.max(0, Math.floor((value / most) * BINS)));
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  return counts;
}

export function middle(values: readonly number[]): number {
  const inOrder = [...values].sort((a, b) => a - b);
  const half = inOrder.length / 2;
  return ((inOrder[Math.ceil(half) - 1] ?? 0) + (inOrder[Math.floor(half)] ?? 0)) / 2;
}
