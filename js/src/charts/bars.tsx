// Stacked horizontal bars, one per rank, all of the same whole so that lengths compare.

import { max } from "d3-array";
import { scaleLinear } from "d3-scale";
import type { Table } from "../columns";
import { duration, exact, significant, timeUnit } from "../format";
import { colour, type Series } from "./legend";

const ROW = 20;
const BAR = 14;
const AXIS = 20;
const LEFT = 56;
const RIGHT = 64;

export interface BarsProps {
  table: Table;
  series: readonly Series[];
  whole: string;
  width: number;
  selected: readonly number[];
  onPick(rank: number, event: MouseEvent | KeyboardEvent): void;
}

export function Bars({ table, series, whole, width, selected, onPick }: BarsProps) {
  const ranks = table.numbers("rank");
  const wholes = table.numbers(whole);
  const longest = max(wholes) ?? 0;
  const unit = timeUnit([longest]);
  const inner = Math.max(80, width - LEFT - RIGHT);
  const x = scaleLinear([0, longest / unit.scale || 1], [0, inner]);
  const height = ranks.length * ROW + AXIS;
  return (
    <svg class="hta-bars" width={LEFT + inner + RIGHT} height={height} aria-label="Time of each rank">
      <g transform={`translate(${LEFT} ${ranks.length * ROW})`}>
        {x.ticks(Math.max(2, Math.floor(inner / 96))).map((tick) => (
          <g key={tick} transform={`translate(${x(tick)} 0)`}>
            <line class="hta-grid" y1={-ranks.length * ROW} y2={0} />
            <text y={15} text-anchor="middle">
              {x.tickFormat()(tick)} {unit.name}
            </text>
          </g>
        ))}
      </g>
      {Array.from(ranks, (rank, row) => (
        <Bar
          key={rank}
          {...{ table, series, row, rank, selected, onPick }}
          whole={wholes[row] ?? 0}
          x={(ns) => x(ns / unit.scale)}
        />
      ))}
    </svg>
  );
}

interface BarProps {
  table: Table;
  series: readonly Series[];
  row: number;
  rank: number;
  whole: number;
  x(ns: number): number;
  selected: readonly number[];
  onPick: BarsProps["onPick"];
}

function Bar({ table, series, row, rank, whole, x, selected, onPick }: BarProps) {
  let start = 0;
  const parts = series.map((part) => {
    const value = table.numbers(part.column)[row] ?? 0;
    const from = start;
    start += value;
    return { part, value, from };
  });
  const share = (value: number) => (whole ? `${significant((100 * value) / whole)} %` : "no time");
  const text = parts
    .map(({ part, value }) => `${part.label} ${duration(value)} (${share(value)})`)
    .join(", ");
  const dim = selected.length > 0 && !selected.includes(rank);
  return (
    // biome-ignore lint/a11y/useSemanticElements: an svg holds no HTML button
    <g
      class="hta-bar-row"
      transform={`translate(0 ${row * ROW})`}
      opacity={dim ? 0.4 : 1}
      role="button"
      tabIndex={0}
      aria-label={`Rank ${rank}: ${text}. Select this rank.`}
      onClick={(event) => onPick(rank, event)}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        onPick(rank, event);
      }}
    >
      <rect class="hta-bar-hit" width="100%" height={ROW} />
      <text x={LEFT - 8} y={ROW - 6} text-anchor="end">
        rank {rank}
      </text>
      {parts.map(({ part, value, from }) => (
        <rect
          key={part.column}
          x={LEFT + x(from)}
          y={(ROW - BAR) / 2}
          width={Math.max(0, x(from + value) - x(from))}
          height={BAR}
          fill={colour(part)}
        >
          <title>{`Rank ${rank}, ${part.label}: ${share(value)}, ${exact(value, "ns")}`}</title>
        </rect>
      ))}
      <text x={LEFT + x(whole) + 6} y={ROW - 6}>
        {duration(whole)}
      </text>
    </g>
  );
}
