// How the ranks of a large job share out the parts of their time: a strip for each part, and marks for some ranks.

import { duration, exact, timeUnit } from "../format";
import { Axis } from "./axis";
import type { Series } from "./legend";
import { Mark } from "./mark";
import { max, ticks } from "./numbers";
import { Plot } from "./plot";
import { linear } from "./scale";

const ROW = 30;
const STRIP = 14;
const AXIS = 20;
const LEFT = 150;

/** How the ranks' times in a part lie between nothing and the most of all parts (hta_widgets/charts/rank_strips.py). */
export interface Strip {
  column: string;
  counts: number[];
  least: number;
  median: number;
  most: number;
  /** the most of what the parts add up to */
  longest: number;
  ranks: number;
}

export interface DistributionProps {
  series: readonly Series[];
  strips: readonly Strip[];
  /** the ranks that have a mark of their own, and their times */
  ranks: readonly number[];
  values(column: string): ArrayLike<number>;
  label(row: number): string;
  selected: readonly number[];
  pick(rank: number, event: MouseEvent | KeyboardEvent): void;
  width: number;
}

export function Distribution(props: DistributionProps) {
  const { series, strips, ranks, label, selected, pick, width } = props;
  const most = max(strips.map((strip) => strip.most)) || 1;
  const unit = timeUnit(most);
  const inner = Math.max(80, width - LEFT - 16);
  const x = linear(0, most / unit.scale, inner);
  const at = (ns: number) => LEFT + x(ns / unit.scale);
  const round = ticks(0, most / unit.scale, Math.max(2, Math.floor(inner / 96)));
  const height = series.length * ROW;
  return (
    <>
      <p class="hta-legend">
        {`Each strip: ${(strips[0]?.ranks ?? 0).toLocaleString("en-US")} ranks, darker where more are; a line at the median.`}
        {ranks.length > 0 && " Diamonds: the ranks with bars below."}
      </p>
      <Plot label="How ranks share out the parts of their time" width={width} height={height + AXIS}>
        <g transform={`translate(${LEFT} 0)`}>
          <Axis
            {...{ height, inner }}
            ticks={round.map((tick) => ({ at: x(tick), text: exact(tick, unit.name) }))}
          />
        </g>
        {series.map((part, row) => {
          const strip = strips.find(({ column }) => column === part.column);
          if (!strip) return null;
          const { counts, median } = strip;
          const values = props.values(part.column);
          const fullest = max(counts) || 1;
          const fill = `var(--hta-${part.time_class})`;
          const said = `${part.label} of ${strip.ranks} ranks: ${duration(strip.least)} to ${duration(strip.most)}, median ${duration(median)}`;
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
                        x={at((most * bin) / counts.length)}
                        y={(ROW - STRIP) / 2}
                        width={inner / counts.length + 0.5}
                        height={STRIP}
                        fill={fill}
                        fill-opacity={0.15 + 0.85 * Math.sqrt(count / fullest)}
                      />
                    ),
                )}
                <path class="hta-range" d={`M${at(median)} ${ROW / 2 - 11}v22`} stroke="var(--hta-text)" />
              </Mark>
              {ranks.map((rank, index) => {
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
