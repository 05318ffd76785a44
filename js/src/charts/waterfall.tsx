// A change in parts that add up: each bar begins where the one above it ends, the last one is the whole.

import type { Table } from "../columns";
import { duration, exact, signed } from "../format";
import { Axis } from "./axis";
import type { ChartProps } from "./chart";
import { pattern } from "./fills";
import { fitted, labelWidth, Mark } from "./mark";
import { max, min } from "./numbers";
import { Plot } from "./plot";
import { linear } from "./scale";
import { steps, unitOfTime } from "./time_ticks";

const ROW = 20;
const BAR = 12;
const HEAD = 24;
const AXIS = 20;
const VALUE = 72;
const NOISE = 92;
/** What is narrower than this share of the chart is named, not drawn. */
const VISIBLE = 1 / 2000;

export interface WaterfallChart {
  type: "waterfall";
}

const NUMBERS = [
  "run",
  "value",
  "start",
  "end",
  "low",
  "high",
  "significant",
  "whole",
  "before",
  "after",
] as const;

type Numbers = Record<(typeof NUMBERS)[number], number>;
type Part = Numbers & { label: string; timeClass: string; verdict: string };

export function Waterfall({ marks, legend, width }: ChartProps<WaterfallChart>) {
  const all = partsOf(marks);
  const labels = all.map((part) => part.label);
  const left = labelWidth(labels, width * 0.4);
  const noise = all.some((part) => !part.significant) ? NOISE : 0;
  const inner = Math.max(120, width - left - VALUE - noise - 8);
  const [low, high] = reach(all);
  const x = linear(low, high, inner);
  const visible = (part: Part) => part.whole || Math.abs(part.value) > (high - low) * VISIBLE;
  let y = 0;
  const groups = legend.map((name, run) => {
    const top = y;
    const own = all.filter((part) => part.run === run);
    const drawn = own.filter(visible);
    y += HEAD + drawn.length * ROW;
    return { name, top, drawn, folded: own.filter((part) => !visible(part)) };
  });
  const ticks = steps(low, high, unitOfTime(low, high), Math.max(2, Math.floor(inner / 96)));
  return (
    <>
      <p class="hta-legend">
        Change per step. Each bar begins where the one above ends. Line: 95 % interval. Hollow: not
        significant, for the reason named.
      </p>
      <Plot label="What the change is made of" width={left + inner + VALUE + noise + 8} height={y + AXIS}>
        <g transform={`translate(${left} 0)`}>
          <Axis {...{ inner }} height={y} ticks={ticks.map(({ at, text }) => ({ at: x(at), text }))} />
          <path class="hta-zero" d={`M${x(0)} 0V${y}`} />
        </g>
        {groups.map(({ name, drawn, top }, run) => (
          <g key={name} transform={`translate(0 ${top})`}>
            <text class="hta-bar-name hta-bar-head" x={4} y={HEAD - 8}>
              {fitted(name, left + inner)}
            </text>
            {drawn.map((part, row) => (
              <PartRow
                key={part.label}
                {...{ part, x, left, noise }}
                run={name}
                y={HEAD + row * ROW}
                right={left + inner + VALUE}
                first={run === 0 && row === 0}
                last={row === drawn.length - 1}
              />
            ))}
          </g>
        ))}
      </Plot>
      {groups.map(
        ({ name, folded }) =>
          folded.length > 0 && (
            <p key={name} class="hta-muted">
              {legend.length > 1 && `${fitted(name, width / 2)}: `}too small to draw:{" "}
              {folded.map(({ label, value }) => `${label} ${signedTime(value)}`).join(", ")}
            </p>
          ),
      )}
    </>
  );
}

interface PartRowProps {
  part: Part;
  run: string;
  x(ns: number): number;
  left: number;
  right: number;
  y: number;
  noise: number;
  first: boolean;
  last: boolean;
}

function PartRow({ part, run, x, left, right, y, noise, first, last }: PartRowProps) {
  const { label, value, start, end, low, high, significant, verdict, whole } = part;
  const known = Number.isFinite(low + high);
  const description = `${run}, ${label}: ${signedTime(value)}${
    known ? `, 95 % interval ${signedTime(low)} to ${signedTime(high)}` : ""
  }; ${duration(part.before)} before, ${duration(part.after)} now${significant ? "" : `; ${verdict}`}`;
  const from = left + x(Math.min(start, end));
  const width = Math.max(1, left + x(Math.max(start, end)) - from);
  const top = (ROW - BAR) / 2;
  const colour = whole ? "var(--hta-text)" : `var(--hta-${part.timeClass}, var(--hta-idle))`;
  const [begin, stop] = [low, high].map((ns) =>
    Math.min(Math.max(left + x(start + ns), left), right - VALUE),
  );
  const whisker = `M${begin} ${ROW / 2}H${stop}M${begin} ${ROW / 2 - 3}v6M${stop} ${ROW / 2 - 3}v6`;
  return (
    <g class={whole ? "hta-bar-head" : undefined} transform={`translate(0 ${y})`}>
      <Mark label={description} onPick={null} first={first}>
        <title>{`${description}\n${exact(value, "ns")}`}</title>
        <rect class="hta-bar-hit" width={right + noise} height={ROW} />
        <text class="hta-bar-name" x={4} y={ROW - 6}>
          {fitted(label, left - 8)}
        </text>
        <rect
          class={significant ? undefined : "hta-hollow"}
          x={from}
          y={top}
          width={width}
          height={BAR}
          fill={colour}
          stroke={significant ? undefined : colour}
        />
        {!significant && <path class="hta-pattern" d={pattern("/", from, top, width, BAR)} stroke={colour} />}
        {!last && <path class="hta-joint" d={`M${left + x(end)} ${top + BAR}V${ROW + top}`} />}
        {known && <path class="hta-whisker hta-halo" d={whisker} />}
        {known && <path class="hta-whisker" d={whisker} />}
        <text class="hta-bar-name" x={right} y={ROW - 6} text-anchor="end">
          {signedTime(value)}
        </text>
        {!significant && (
          <text x={right + noise} y={ROW - 6} text-anchor="end">
            {verdict}
          </text>
        )}
      </Mark>
    </g>
  );
}

function partsOf(marks: Table): Part[] {
  const [classes, verdicts] = [marks.texts("time_class"), marks.texts("verdict")];
  const columns = NUMBERS.map((name) => [name, marks.numbers(name)] as const);
  return marks.texts("label").map((label, row) => {
    const numbers = Object.fromEntries(columns.map(([name, values]) => [name, values[row] as number]));
    return { ...(numbers as Numbers), label, timeClass: classes[row] ?? "", verdict: verdicts[row] ?? "" };
  });
}

/** The time that the chart shows: all bars, and of their intervals what is not far outside. */
function reach(parts: readonly Part[]): [number, number] {
  const bars = parts.flatMap(({ start, end }) => [start, end]);
  const least = Math.min(0, min(bars) ?? 0);
  const most = Math.max(0, max(bars) ?? 0);
  const room = (most - least || 1) / 3;
  const known = parts.filter(({ low, high }) => Number.isFinite(low + high));
  return [
    Math.max(least - room, Math.min(least, min(known.map(({ start, low }) => start + low)) ?? 0)),
    Math.min(most + room, Math.max(most, max(known.map(({ start, high }) => start + high)) ?? 0)),
  ];
}

function signedTime(ns: number): string {
  return signed(ns, duration(ns));
}
