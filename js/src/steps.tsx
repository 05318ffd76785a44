// All steps of all ranks, aligned at their starts on one scale. What a step does more of than the median step is a line
// under it, in the colour of that. Two of them, chosen by clicks, are compared beside the list.

import type { Signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button";
import type { Selecting } from "./charts/select";
import { steps as ticksOf, unitOfTime } from "./charts/time_ticks";
import { decode, type EncodedTable, type Table } from "./columns";
import { Difference, type StepDifference } from "./difference";
import { duration, signed } from "./format";
import { type Model, trait } from "./model";
import { consume } from "./page";
import { combined } from "./shared";

type Step = [rank: number, iteration: number];

interface Strips {
  bins: number;
  span_ns: number;
  data: DataView | null;
}

export interface StepsState {
  table: Signal<EncodedTable | null>;
  strips: Signal<Strips>;
  pair: Signal<Step[]>;
  difference: Signal<Partial<StepDifference> & { pair?: Step[] }>;
}

interface Row {
  at: number;
  step: Step;
  label: string;
  ns: number;
  /** to the median step; NaN: there is none */
  change: number;
  /** what it takes more or less of than the median step, by class */
  parts: { timeClass: string; ns: number }[];
  /** the row of the median step; -1: it is not among them */
  median: number;
  note: string;
}

const BUSY = ["compute", "communication", "memory"] as const;
const CLASSES = [...BUSY, "idle"] as const;
const NAMES: Record<string, string> = {
  compute: "compute",
  communication: "exposed communication",
  memory: "exposed copies",
  idle: "idle",
};
const PARTS = new Map([
  ["compute", "compute_ns"],
  ["communication", "exposed_communication_ns"],
  ["memory", "exposed_memory_ns"],
]);
const NOTES = new Map([
  ["outlier", "unusually long"],
  ["partial", "cut by the recording"],
  ["start_up", "holds start-up"],
  ["open", "its end is not recorded"],
]);
const IDLE_ALPHA = 0.22;
/** From so many more parts of 255 on, a place of a step is marked as unlike the median step. */
const UNLIKE = 51;
const BAND = 2;
const TALL = { row: 44, strip: 28 };
const FLAT = { row: 18, strip: 11 };
const FEW = 8;

/** The traits of the panel of steps; null for any other. */
export function stepsOf(model: Model, signal: AbortSignal): StepsState | null {
  if (model.get("strips") === undefined) return null;
  return {
    table: trait(model, "steps", signal),
    strips: trait(model, "strips", signal),
    pair: trait(model, "pair", signal),
    difference: trait(model, "difference", signal),
  };
}

export function Steps({
  state,
  selecting,
  frozen,
}: {
  state: StepsState;
  selecting: Selecting;
  frozen: boolean;
}) {
  const [byDuration, sortByDuration] = useState(false);
  const list = useRef<HTMLDivElement>(null);
  const [current, setCurrent] = useState(0);
  const rows = rowsOf(decode(state.table.value));
  const { bins, span_ns: span, data } = state.strips.value;
  const shown = byDuration ? [...rows].sort((one, other) => other.ns - one.ns) : rows;
  const { difference } = state;
  const compared = difference.value.pair ?? [];
  const marked = state.pair.value.length ? state.pair.value : compared;
  const chosen = (step: Step) => marked.some((other) => same(other, step));
  const most = Math.max(1, ...rows.flatMap(({ parts }) => [reach(parts, 1), reach(parts, -1)]));
  const medians = new Set(rows.map(({ median }) => median));
  const median = medians.size === 1 ? rows[[...medians][0] as number] : undefined;
  const sizes = rows.length <= FEW ? TALL : FLAT;
  const ticks = ticksOf(0, span, unitOfTime(0, span), 6).filter(({ at }) => at < 0.97 * span);

  const choose = (step: Step) => {
    const before = state.pair.value;
    state.pair.value = before.some((other) => same(other, step))
      ? before.filter((other) => !same(other, step))
      : [...before.slice(-1), step];
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (combined(event)) return;
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) {
      const next = Math.max(0, Math.min(shown.length - 1, current + move));
      setCurrent(next);
      list.current?.querySelectorAll<HTMLElement>("[role=option]")[next]?.focus();
    } else if ((event.key === " " || event.key === "Enter") && !frozen) {
      const row = shown[current];
      if (row) choose(row.step);
    } else if (event.key === "Escape" && state.pair.value.length) state.pair.value = [];
    else return;
    consume(event);
  };
  const show = () => {
    selecting.ranks.value = [...new Set(compared.map(([rank]) => rank))].sort((a, b) => a - b);
    selecting.iterations.value = [...new Set(compared.map(([, number]) => number))].sort((a, b) => a - b);
  };

  return (
    <div class="hta-steps">
      <div class="hta-steps-main">
        <div class="hta-bar">
          {/* biome-ignore lint/a11y/useSemanticElements: a row of two buttons is no set of fields */}
          <span role="group" aria-label="Order of the steps" class="hta-steps-sort">
            <Button aria-pressed={!byDuration} onClick={() => sortByDuration(false)}>
              In order
            </Button>
            <Button aria-pressed={byDuration} onClick={() => sortByDuration(true)}>
              By duration
            </Button>
          </span>
          <span class="hta-grow" />
          <ul class="hta-legend" aria-label="Colours">
            {CLASSES.map((name) => (
              <li key={name}>
                <i class="hta-swatch" style={{ background: `var(--hta-${name})` }} />
                {NAMES[name]}
              </li>
            ))}
          </ul>
        </div>
        <div class="hta-steps-head hta-muted" aria-hidden="true">
          <span>aligned at the start</span>
          <span class="hta-steps-axis">
            {ticks.map(({ at, text }) => (
              <span key={text} style={{ left: `${(100 * at) / span}%` }}>
                {text}
              </span>
            ))}
          </span>
          <span>duration</span>
          <span class="hta-steps-more">less · more</span>
        </div>
        <div
          ref={list}
          class="hta-steps-list"
          role="listbox"
          aria-multiselectable="true"
          aria-label="Steps; choose two to compare them"
          tabIndex={-1}
          onKeyDown={onKeyDown}
        >
          {shown.map((row, place) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the list has the keys
            <div
              key={row.label}
              role="option"
              class="hta-steps-row"
              aria-label={describe(row)}
              aria-selected={chosen(row.step)}
              tabIndex={place === Math.min(current, shown.length - 1) ? 0 : -1}
              style={{ height: `${sizes.row}px` }}
              title={describe(row)}
              onFocus={() => setCurrent(place)}
              onClick={() => !frozen && choose(row.step)}
            >
              <span class="hta-cut">{row.label}</span>
              <Strip
                {...{ row, bins, data }}
                lasts={Math.ceil((bins * row.ns) / (span || 1))}
                height={sizes.strip}
              />
              <span class="hta-steps-time">
                {duration(row.ns)}
                {sizes === TALL && <span class="hta-muted">{changeOf(row)}</span>}
              </span>
              <Parts parts={row.parts} most={most} />
            </div>
          ))}
          {median && (
            <span
              class="hta-steps-median"
              aria-hidden="true"
              style={{ "--share": median.ns / span }}
              title={`median ${duration(median.ns)}`}
            />
          )}
        </div>
        <p class="hta-muted hta-small">
          {median
            ? `Dashed: the median step, ${median.label}, ${duration(median.ns)}. The line under a step has the colour of what it does more of there.`
            : "There is no median step here: it takes four complete steps of one kind."}
        </p>
      </div>
      <section class="hta-steps-beside" aria-label="Two steps compared" aria-live="polite">
        {difference.value.parts ? (
          <>
            <h4 class="hta-steps-title">{difference.value.title}</h4>
            <Difference found={difference.value as StepDifference} />
            {!frozen && (
              <Button title="Select these steps and ranks everywhere" onClick={show}>
                Select them
              </Button>
            )}
          </>
        ) : (
          <p class="hta-muted">
            {frozen
              ? "No two steps were compared when this report was made."
              : "Choose two steps to compare them."}
          </p>
        )}
      </section>
    </div>
  );
}

interface StripProps {
  row: Row;
  /** how many bins the step lasts, of `bins` */
  lasts: number;
  bins: number;
  data: DataView | null;
  height: number;
}

/** What a step runs over its time, and under it where it is unlike the median step. */
function Strip({ row, lasts, bins, data, height }: StripProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { at, median } = row;
  useEffect(() => {
    const own = canvas.current;
    const pen = own?.getContext("2d");
    if (!own || !pen || !data) return;
    const paint = () => {
      const style = getComputedStyle(own);
      const colours = CLASSES.map((name) => style.getPropertyValue(`--hta-${name}`));
      const fill = (kind: number, alpha: number, bin: number, top: number, tall: number) => {
        pen.globalAlpha = alpha;
        pen.fillStyle = colours[kind] as string;
        pen.fillRect(bin, top, 1, tall);
      };
      pen.clearRect(0, 0, own.width, own.height);
      for (let bin = 0; bin < lasts; bin++) {
        const parts = partsOf(data, bins, at, bin);
        const busy = parts.slice(0, BUSY.length);
        fill(BUSY.length, IDLE_ALPHA, bin, 0, height);
        fill(greatest(busy), (255 - (parts[BUSY.length] as number)) / 255, bin, 0, height);
        if (median < 0 || median === at) continue;
        const usual = partsOf(data, bins, median, bin);
        const more = parts.map((part, kind) => part - (usual[kind] as number));
        const kind = greatest(more);
        if ((more[kind] as number) > UNLIKE) fill(kind, 1, bin, height + 1, BAND);
      }
    };
    paint();
    const themed = own.closest("[data-theme]");
    const observer = new MutationObserver(paint);
    if (themed) observer.observe(themed, { attributeFilter: ["data-theme"] });
    return () => observer.disconnect();
  }, [at, median, lasts, bins, data, height]);
  const tall = height + 1 + BAND;
  return (
    <span aria-hidden="true">
      <canvas ref={canvas} width={bins} height={tall} style={{ height: `${tall}px` }} />
    </span>
  );
}

/** What a step takes less of than the median step left of the middle, more of it to the right. */
function Parts({ parts, most }: { parts: Row["parts"]; most: number }) {
  let [less, more] = [50, 50];
  return (
    <span class="hta-steps-parts" aria-hidden="true">
      {parts.map(({ timeClass, ns }) => {
        const width = (50 * Math.abs(ns)) / most;
        const left = ns < 0 ? less - width : more;
        if (ns < 0) less -= width;
        else more += width;
        const style = { left: `${left}%`, width: `${width}%`, background: `var(--hta-${timeClass})` };
        return <i key={timeClass} style={style} />;
      })}
    </span>
  );
}

/** The parts of 255 of a bin, by class. */
function partsOf(data: DataView, bins: number, row: number, bin: number): number[] {
  const busy = BUSY.map((_, kind) => data.getUint8((row * BUSY.length + kind) * bins + bin));
  return [...busy, Math.max(0, 255 - busy.reduce((sum, part) => sum + part, 0))];
}

function greatest(values: readonly number[]): number {
  return values.indexOf(Math.max(...values));
}

function reach(parts: Row["parts"], sign: number): number {
  return parts.reduce((sum, { ns }) => sum + Math.max(0, sign * ns), 0);
}

function same([rank, iteration]: Step, other: Step): boolean {
  return rank === other[0] && iteration === other[1];
}

function changeOf({ change }: Row): string {
  if (Number.isNaN(change)) return "";
  return change === 0 ? "median" : signed(change, duration(change));
}

function describe(row: Row): string {
  const change = Number.isNaN(row.change) ? "" : `, ${changeOf(row)}${row.change ? " to the median" : ""}`;
  const parts = row.parts
    .filter(({ ns }) => ns !== 0)
    .map(({ timeClass, ns }) => `${NAMES[timeClass]} ${signed(ns, duration(ns))}`);
  return [`${row.label}: ${duration(row.ns)}${change}`, ...parts, row.note].filter(Boolean).join("; ");
}

function rowsOf(table: Table): Row[] {
  const column = (name: string) => table.numbers(name);
  const number = (name: string, row: number) => column(name)[row] as number;
  const several = new Set(column("rank")).size > 1;
  const of = Object.fromEntries(
    Array.from({ length: table.rows }, (_, row) => [
      `${number("rank", row)} ${number("iteration", row)}`,
      row,
    ]),
  );
  return Array.from({ length: table.rows }, (_, at): Row => {
    const [rank, iteration, ns] = [number("rank", at), number("iteration", at), number("dur_ns", at)];
    const median = of[`${number("median_rank", at)} ${number("median_iteration", at)}`] ?? -1;
    const busy = [...PARTS].map(([timeClass, name]) => ({
      timeClass,
      ns: median < 0 ? 0 : number(name, at) - number(name, median),
    }));
    const change = number("change_ns", at);
    const rest = change - busy.reduce((sum, part) => sum + part.ns, 0);
    const notes = [...NOTES].flatMap(([name, words]) => (number(name, at) ? [words] : []));
    return {
      at,
      step: [rank, iteration],
      label: several ? `step ${iteration} · rank ${rank}` : `step ${iteration}`,
      ns,
      change,
      parts: median < 0 ? [] : [...busy, { timeClass: "idle", ns: rest }],
      median,
      note: notes.join(", "),
    };
  });
}
