// A grid of cells that is brushed: a click takes one cell, a drag or Shift with the arrows a rectangle of them.

import { useSignal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import { Plot } from "../charts/plot";
import { consume } from "../page";
import { combined } from "../shared";
import { type Shading, tint } from "./ranks";

export interface Head {
  key: string;
  label: string;
  /** stands above the others */
  pinned?: boolean;
}

export interface Shown {
  value: number;
  /** of the one rank that differs most from the mean, where several are one cell */
  most: number;
  text: string;
}

/** Rows and columns from and to, both included. */
export interface Area {
  rows: [number, number];
  columns: [number, number];
}

export interface MatrixProps {
  label: string;
  rows: readonly Head[];
  columns: readonly Head[];
  /** what the numbers of columns count */
  axis: string;
  cell(row: number, column: number): Shown | null;
  hue: string;
  shades: Shading;
  width: number;
  pressed(row: number, column: number): boolean;
  pick(area: Area): void;
  /** goes into a row of several ranks; null for others */
  zoom(row: number): (() => void) | null;
  hint: string;
}

const LEFT = 84;
const AXIS = 34;
const GAP = 6; // between pinned rows and the others
const TEXT = 7; // px of a character
const LINE = 13; // px that a label needs
const STANDS_OUT = 0.25; // of the scale

type At = readonly [number, number];

export function Matrix(props: MatrixProps) {
  const { rows, columns, cell, hue, shades, pressed, pick, zoom } = props;
  const high = rows.length <= 16 ? 20 : rows.length <= 48 ? 13 : 10;
  const wide = Math.max(4, Math.min(72, (props.width - LEFT - 8) / Math.max(1, columns.length)));
  const pinned = rows.filter((row) => row.pinned).length;
  const top = (row: number) => row * high + (pinned && row >= pinned ? GAP : 0);
  const height = top(rows.length);
  const left = (column: number) => LEFT + column * wide;
  const labelled = withRoom(columns, wide);

  const root = useRef<HTMLDivElement>(null);
  const [current, setCurrent] = useState<At>([0, 0]);
  const told = useSignal<At | null>(null);
  const anchor = useRef<At>([0, 0]);
  const brush = useSignal<Area | null>(null);

  const at = (event: PointerEvent): At => {
    const box = (event.currentTarget as SVGElement).ownerSVGElement?.getBoundingClientRect() ?? new DOMRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const row = y >= pinned * high + GAP || !pinned ? (y - (pinned ? GAP : 0)) / high : y / high;
    return [within(row, rows.length), within((x - LEFT) / wide, columns.length)];
  };
  const focus = ([row, column]: At) => {
    setCurrent([row, column]);
    root.current?.querySelector<SVGElement>(`[data-at="${row} ${column}"]`)?.focus();
  };
  const shown: { row: number; column: number; what: Shown }[] = [];
  rows.forEach((_, row) => {
    columns.forEach((__, column) => {
      const what = cell(row, column);
      if (what) shown.push({ row, column, what });
    });
  });
  const [first] = shown;
  const stop = shown.some((one) => one.row === current[0] && one.column === current[1])
    ? current
    : [first?.row ?? 0, first?.column ?? 0];

  const keys = (event: KeyboardEvent) => {
    const from = place(event.target);
    if (!from || combined(event)) return;
    const to = next(event.key, from, shown);
    if (to) {
      if (!event.shiftKey) anchor.current = to;
      focus(to);
      if (event.shiftKey) pick(area(anchor.current, to));
    } else if (event.key === "Enter" || event.key === " ") {
      anchor.current = from;
      pick(area(from, from));
    } else if (event.key === "+") zoom(from[0])?.();
    else return;
    consume(event);
  };

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: its cells are the buttons
    <div
      ref={root}
      class="hta-job-matrix"
      onKeyDown={keys}
      onFocusIn={(event) => {
        told.value = place(event.target);
      }}
      onPointerLeave={() => {
        told.value = null;
      }}
    >
      <Plot label={props.label} width={left(columns.length) + 8} height={height + AXIS}>
        {/* biome-ignore lint/a11y/noStaticElementInteractions: its cells are the buttons */}
        <g
          onPointerDown={(event) => {
            if (event.button !== 0) return;
            (event.currentTarget as Element).setPointerCapture?.(event.pointerId);
            anchor.current = at(event);
            brush.value = area(anchor.current, anchor.current);
          }}
          onPointerMove={(event) => {
            const here = at(event);
            if (String(told.peek()) !== String(here)) told.value = here;
            if (brush.value) brush.value = area(anchor.current, here);
          }}
          onPointerUp={(event) => {
            const brushed = brush.value;
            brush.value = null;
            if (!brushed) return;
            pick(brushed);
            focus(at(event));
          }}
          onPointerCancel={() => {
            brush.value = null;
          }}
          onDblClick={() => zoom(anchor.current[0])?.()}
        >
          <rect class="hta-job-ground" x={0} y={0} width={left(columns.length)} height={height} />
          {rows.map(
            ({ key, label }, row) =>
              (high >= LINE || row % 2 === 0) && (
                <text key={key} x={LEFT - 8} y={top(row) + high / 2 + 4} text-anchor="end">
                  {label}
                </text>
              ),
          )}
          {shown.map(({ row, column, what }) => {
            const key = `${row} ${column}`;
            const beyond = shades.of(what.most) - shades.of(what.value) > STANDS_OUT;
            const [x, y] = [left(column) + 0.5, top(row) + 0.5];
            const size = Math.min(7, wide - 1, high - 1);
            return (
              // biome-ignore lint/a11y/useSemanticElements: an svg holds no HTML button
              <g
                key={key}
                class="hta-bar-row"
                role="button"
                data-at={key}
                tabindex={row === stop[0] && column === stop[1] ? 0 : -1}
                aria-label={what.text}
                aria-pressed={pressed(row, column)}
                onClick={(event) => {
                  if (event.detail === 0) pick(area([row, column], [row, column])); // not by pointer
                }}
              >
                <rect
                  class="hta-job-cell"
                  x={x}
                  y={y}
                  width={wide - 1}
                  height={high - 1}
                  fill={tint(hue, shades.of(what.value))}
                />
                {beyond && (
                  <path
                    class="hta-job-beyond"
                    d={`M${x + wide - 1 - size} ${y}h${size}v${size}z`}
                    fill={tint(hue, shades.of(what.most))}
                  />
                )}
              </g>
            );
          })}
        </g>
        {columns.map(
          ({ key, label }, column) =>
            labelled.has(column) && (
              <text key={key} x={left(column) + wide / 2} y={height + 14} text-anchor="middle">
                {label}
              </text>
            ),
        )}
        <text x={LEFT} y={height + 30}>
          {props.axis}
        </text>
        <Brush {...{ brush, left, top, wide, high }} />
      </Plot>
      <Told {...{ told, cell }} hint={props.hint} />
    </div>
  );
}

interface ToldProps {
  told: { value: At | null };
  cell: MatrixProps["cell"];
  hint: string;
}

/** What the pointer is at; by itself, so that a move draws nothing else anew. */
function Told({ told, cell, hint }: ToldProps) {
  return (
    <p class="hta-job-told hta-muted" aria-hidden="true">
      {(told.value && cell(...told.value)?.text) || hint}
    </p>
  );
}

interface BrushProps {
  brush: { value: Area | null };
  left(column: number): number;
  top(row: number): number;
  wide: number;
  high: number;
}

/** What is being brushed; by itself, so that a drag draws nothing else anew. */
function Brush({ brush, left, top, wide, high }: BrushProps) {
  if (!brush.value) return null;
  const { rows, columns } = brush.value;
  return (
    <rect
      class="hta-bar-hit hta-brushed"
      x={left(columns[0])}
      y={top(rows[0])}
      width={left(columns[1]) + wide - left(columns[0])}
      height={top(rows[1]) + high - top(rows[0])}
      pointer-events="none"
    />
  );
}

/** The columns whose labels do not cover each other's; words come before numbers. */
function withRoom(columns: readonly Head[], wide: number): Set<number> {
  const word = ({ label }: Head) => Number(!/^\d/.test(label));
  const order = columns.map((_, column) => column);
  order.sort((a, b) => word(columns[b] as Head) - word(columns[a] as Head) || a - b);
  const taken: [number, number][] = [];
  return new Set(
    order.filter((column) => {
      const half = (TEXT * (columns[column]?.label.length ?? 0)) / 2;
      const [from, to] = [(column + 0.5) * wide - half, (column + 0.5) * wide + half];
      const free = taken.every(([other, end]) => to <= other || from >= end);
      if (free) taken.push([from, to]);
      return free;
    }),
  );
}

function within(at: number, count: number): number {
  return Math.max(0, Math.min(count - 1, Math.floor(at)));
}

function area([row, column]: At, [otherRow, otherColumn]: At): Area {
  return {
    rows: [Math.min(row, otherRow), Math.max(row, otherRow)],
    columns: [Math.min(column, otherColumn), Math.max(column, otherColumn)],
  };
}

function place(target: EventTarget | null): At | null {
  const own = (target as Element | null)?.closest?.("[data-at]")?.getAttribute("data-at");
  if (!own) return null;
  const [row = 0, column = 0] = own.split(" ").map(Number);
  return [row, column];
}

const MOVES: Record<string, At> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

/** The nearest cell in the direction of an arrow; Home and End lead to the ends of a row. */
function next(key: string, [row, column]: At, cells: readonly { row: number; column: number }[]): At | null {
  if (key === "Home" || key === "End") {
    const own = cells.filter((cell) => cell.row === row);
    const end = key === "Home" ? own[0] : own.at(-1);
    return end ? [end.row, end.column] : null;
  }
  const move = MOVES[key];
  if (!move) return null;
  let best: At | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const cell of cells) {
    const [down, right] = [cell.row - row, cell.column - column];
    const along = down * move[0] + right * move[1];
    const aside = Math.abs(down * move[1]) + Math.abs(right * move[0]);
    if (along > 0 && along + 4 * aside < least) {
      least = along + 4 * aside;
      best = [cell.row, cell.column];
    }
  }
  return best ?? [row, column];
}
