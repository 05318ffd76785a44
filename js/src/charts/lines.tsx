// Step functions of time, one strip each below a common time axis; a drag over them selects a window.
//
// Each strip has its own scale, printed beside it: a stream that holds 3 launches stays readable next to one
// that holds 900. The cursor and the drag are state of the browser alone; the selection changes at the end.

import { type Signal, signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { duration } from "../format";
import { consume } from "../page";
import { Axis } from "./axis";
import type { ChartProps } from "./chart";
import { fitted } from "./mark";
import { bisectRight, max } from "./numbers";
import { linear } from "./scale";
import { steps, unitOfTime } from "./time_ticks";
import { unitOf } from "./unit";

const AXIS = 20;
const LEFT = 72;
const HEAD = 16;
const CLICK = 3; // px: what moves less is no drag

export interface LinesChart {
  type: "lines";
  value: string;
  time_class: string;
  /** the column of a thin line beside the value, which is part of it */
  beside?: string;
  /** the value at the top of the axis; null: the greatest of the line */
  limit?: number | null;
}

interface Strip {
  label: string;
  times: Float64Array;
  values: Float64Array;
  /** empty where there is no second line */
  beside: Float64Array;
  /** until when each value holds; empty where that is until the next one */
  ends: Float64Array;
  /** of the line; undefined where there is none */
  mean: number | undefined;
  top: number;
}

export function Lines({ marks, chart, legend, extent, width, selecting }: ChartProps<LinesChart>) {
  const cursor = useMemo(() => signal<number | null>(null), []);
  const drag = useMemo(() => signal<[number, number] | null>(null), []);
  const [start, end] = [extent[0] ?? 0, extent[1] ?? 1];
  const inner = Math.max(80, width - LEFT - 8);
  const x = linear(start, end, inner);
  const unit = unitOfTime(start, end);
  const size = legend.length > 4 ? 30 : legend.length > 2 ? 64 : 96;
  const height = legend.length * (size + HEAD);
  const strips = useMemo(() => split(marks, legend, size), [marks, legend, size]);
  const value = (strip: Strip, time: number) => {
    const row = bisectRight(strip.times, time) - 1;
    const at = strip.values[row];
    if (at === undefined || (strip.ends[row] ?? time) < time) return "–";
    const whole = strip.beside[row];
    const text = unitOf(chart.value, [at]).text(at);
    return whole === undefined || Number.isNaN(whole)
      ? text
      : `${text} of ${unitOf(chart.value, [whole]).text(whole)}`;
  };
  const time = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    return Math.min(end, Math.max(start, x.invert(event.clientX - box.left)));
  };
  const select = (from: number, to: number) => {
    const window = [Math.round(Math.min(from, to)), Math.round(Math.max(from, to))] as [number, number];
    if (window[0] < window[1]) selecting.window.value = window;
  };

  const keys = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey) return; // Alt makes small steps
    const step = (end - start) / (event.altKey ? 500 : 50);
    const now = cursor.value ?? start;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const next = Math.min(end, Math.max(start, now + (event.key === "ArrowLeft" ? -step : step)));
      drag.value = event.shiftKey ? [drag.value?.[0] ?? now, next] : null;
      cursor.value = next;
    } else if (event.key === "Enter" && drag.value) {
      select(...drag.value);
      drag.value = null;
    } else if (event.key === "Escape" && (drag.value || selecting.window.value)) {
      if (!drag.value) selecting.window.value = null;
      drag.value = null;
    } else return;
    consume(event);
  };

  return (
    <div class="hta-chart">
      <svg class="hta-bars hta-lines" width={LEFT + inner + 8} height={height + AXIS}>
        <title>{`${chart.value.replaceAll("_", " ")} over time`}</title>
        <g transform={`translate(${LEFT} 0)`}>
          <Axis
            {...{ height, inner }}
            ticks={steps(start, end, unit, Math.max(2, Math.floor(inner / 110))).map(({ at, text }) => ({
              at: x(at),
              text,
            }))}
          />
          {strips.map((strip) => (
            <StripPath key={strip.label} {...{ strip, size, chart, x, end, inner }} />
          ))}
          <Cursor {...{ cursor, drag, strips, x, height, value, inner }} />
          <rect
            class="hta-brush"
            width={inner}
            height={height}
            role="slider"
            tabindex={0}
            aria-label="Time under the cursor. Arrows move it, Shift and arrows mark a window, Enter selects it, Escape shows all."
            aria-valuemin={start}
            aria-valuemax={end}
            aria-valuenow={start}
            onKeyDown={(event) => {
              keys(event);
              describe(event.currentTarget, cursor.value);
            }}
            onPointerDown={(event) => {
              if (event.button !== 0) return;
              event.currentTarget.setPointerCapture?.(event.pointerId);
              drag.value = [time(event), time(event)];
            }}
            onPointerMove={(event) => {
              cursor.value = time(event);
              if (drag.value && event.buttons & 1) drag.value = [drag.value[0], cursor.value];
            }}
            onPointerUp={() => {
              const window = drag.value;
              drag.value = null;
              if (window && Math.abs(x(window[1]) - x(window[0])) >= CLICK) select(...window);
            }}
            onPointerLeave={() => {
              cursor.value = null;
            }}
            onDblClick={() => {
              selecting.window.value = null;
            }}
          >
            <title>Drag to select a window of time; double-click for all time</title>
          </rect>
        </g>
      </svg>
    </div>
  );

  function describe(slider: Element, now: number | null): void {
    if (now === null) return;
    slider.setAttribute("aria-valuenow", String(Math.round(now)));
    const description = strips.map((strip) => `${strip.label} ${value(strip, now)}`);
    slider.setAttribute("aria-valuetext", `${duration(now)}: ${description.join(", ")}`);
  }
}

interface PathProps {
  strip: Strip;
  size: number;
  chart: LinesChart;
  x: (ns: number) => number;
  end: number;
  inner: number;
}

function StripPath({ strip, size, chart, x, end, inner }: PathProps) {
  const peak = chart.limit ?? (max([...strip.values, ...strip.beside]) || 1);
  const unit = unitOf(chart.value, [peak]);
  const base = strip.top + HEAD + size;
  const y = (value: number) => base - ((size - 4) * value) / peak;
  const round = (value: number) => Math.round(value * 10) / 10;
  const left = (ns: number) => round(Math.min(inner, Math.max(0, x(ns))));
  // `close` ends each run of values that follow each other, where the next one begins later
  const stairs = (values: Float64Array, close: (from: number) => string = () => "") => {
    let [line, from] = ["", 0];
    for (const [i, ns] of strip.times.entries()) {
      const at = left(ns);
      const value = round(y(values[i] || 0));
      const until = strip.ends[i - 1] ?? ns;
      if (i > 0 && until >= ns) line += `H${at}V${value}`;
      else {
        if (i > 0) line += `H${left(until)}${close(from)}`;
        line += `M${at} ${value}`;
        from = at;
      }
    }
    return `${line}H${left(strip.ends.at(-1) ?? end)}${close(from)}`;
  };
  const colour = `var(--hta-${chart.time_class})`;
  const dashed = (d: string) => <path class="hta-line hta-beside" d={d} stroke={colour} />;
  const { label, mean } = strip;
  const heading =
    mean !== undefined
      ? `${label}; dashed: mean `
      : strip.beside.length > 0
        ? `${label}; dashed: ${words(chart.beside ?? "")}`
        : label;
  return (
    <g>
      <text x={0} y={strip.top + 12}>
        {fitted(heading, inner - 80)}
        {mean !== undefined && <tspan class="hta-bar-name">{unit.text(mean)}</tspan>}
      </text>
      <line class="hta-grid" x2={inner} y1={base} y2={base} />
      <text x={-8} y={y(peak) + 6} text-anchor="end">
        {unit.text(peak)}
      </text>
      <text x={-8} y={base} text-anchor="end">
        0
      </text>
      <path d={stairs(strip.values, (from) => `V${base}H${from}Z`)} fill={colour} fill-opacity={0.2} />
      <path class="hta-line" d={stairs(strip.values)} stroke={colour} />
      {mean !== undefined &&
        dashed(`M${left(strip.times[0] ?? 0)} ${round(y(mean))}H${left(strip.ends.at(-1) ?? end)}`)}
      {strip.beside.length > 0 && (
        <>
          {dashed(stairs(strip.beside))}
          <Peak {...{ strip, chart, left, y, inner }} />
        </>
      )}
    </g>
  );
}

interface PeakProps {
  strip: Strip;
  chart: LinesChart;
  left: (ns: number) => number;
  y: (value: number) => number;
  inner: number;
}

/** A dot and a text where the value is greatest. */
function Peak({ strip, chart, left, y, inner }: PeakProps) {
  const peak = max(strip.values) ?? 0;
  const at = left(strip.times[strip.values.indexOf(peak)] ?? 0);
  const before = at > inner / 2;
  return (
    <g class="hta-peak">
      <circle cx={at} cy={y(peak)} r={3.5} fill={`var(--hta-${chart.time_class})`} />
      <text x={before ? at - 7 : at + 7} y={y(peak) + 12} text-anchor={before ? "end" : "start"}>
        {`peak ${unitOf(chart.value, [peak]).text(peak)}`}
      </text>
    </g>
  );
}

/** `reserved_bytes` -> `reserved`. */
function words(column: string): string {
  return column.replace(/_bytes$/, "").replaceAll("_", " ");
}

interface CursorProps {
  cursor: Signal<number | null>;
  drag: Signal<[number, number] | null>;
  strips: readonly Strip[];
  x: (ns: number) => number;
  height: number;
  inner: number;
  value(strip: Strip, time: number): string;
}

function Cursor({ cursor, drag, strips, x, height, inner, value }: CursorProps) {
  const now = cursor.value;
  const window = drag.value?.map(x).sort((a, b) => a - b);
  return (
    <g>
      {window && (
        <rect
          class="hta-bar-hit hta-brushed"
          x={window[0]}
          width={Math.max(1, (window[1] ?? 0) - (window[0] ?? 0))}
          height={height}
        />
      )}
      {now !== null && (
        <>
          <line class="hta-cursor" x1={x(now)} x2={x(now)} y2={height} />
          {strips.map((strip) => (
            <text key={strip.label} class="hta-readout" x={inner} y={strip.top + 12} text-anchor="end">
              {value(strip, now)}
            </text>
          ))}
        </>
      )}
    </g>
  );
}

/** The points of each line, which lie one after the other in the table. */
function split(marks: ChartProps<LinesChart>["marks"], legend: readonly string[], size: number): Strip[] {
  const [lines, times, values] = [marks.numbers("line"), marks.numbers("time"), marks.numbers("value")];
  const [beside, ends, means] = [marks.numbers("beside"), marks.numbers("end"), marks.numbers("mean")];
  return legend.map((label, number) => {
    const first = lines.indexOf(number);
    const after = bisectRight(lines, number);
    return {
      label,
      top: number * (size + HEAD),
      times: times.subarray(Math.max(0, first), after),
      values: values.subarray(Math.max(0, first), after),
      beside: beside.subarray(Math.max(0, first), after),
      ends: ends.subarray(Math.max(0, first), after),
      mean: means[first],
    };
  });
}
