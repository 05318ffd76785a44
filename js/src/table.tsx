// A DataFrame as a table: numbers right-aligned, the unit once in the heading, all digits in the tooltip. Where it is
// given an order or a choice, headings sort and rows are chosen: what that means is the caller's. A longer one filters
// the rows that it has, by column.

import { useRef, useState } from "preact/hooks";
import { Button } from "./button";
import { ColumnFilter, type Distribution, distributionOf, type Filter } from "./column_filter";
import type { Column, Table } from "./columns";
import { columnFormat, counted, grouped } from "./format";
import { consume } from "./page";
import { step } from "./picker";
import { combined } from "./shared";

/** [column, descending]; empty: the order of the answer. */
export type Sort = [] | [column: string, descending: boolean];

export interface Choosing {
  chosen(row: number): boolean;
  choose(row: number): void;
}

export interface TableProps {
  table: Table;
  caption: string;
  sort?: Sort | undefined;
  onSort?: ((sort: Sort) => void) | undefined;
  choosing?: Choosing | undefined;
}

export function DataTable({ table, caption, sort = [], onSort, choosing }: TableProps) {
  const columns = table.columns.map((column) => printable(column, table));
  const [filters, setFilters] = useState<Filters | null>(null);
  const kept = passing(table, filters ?? {});
  const root = useRef<HTMLElement>(null);
  // Roving tabindex: one stop for Tab, arrows go from row to row.
  const [current, setCurrent] = useState(0);
  const stop = Math.min(current, kept.length - 1);

  const onKeyDown = (event: KeyboardEvent, row: number) => {
    if (combined(event)) return;
    const vertical = event.key !== "ArrowLeft" && event.key !== "ArrowRight"; // those scroll
    const to = vertical ? step(event.key, row, kept.length, 1) : undefined;
    if (to !== undefined) {
      const next = Math.min(Math.max(to, 0), kept.length - 1);
      setCurrent(next);
      root.current?.querySelectorAll<HTMLElement>("tbody > tr")[next]?.focus();
    } else if (event.key === "Enter" || event.key === " ") choosing?.choose(kept[row] as number);
    else return;
    consume(event);
  };

  const rowProps = (row: number, at: number) =>
    choosing && {
      tabIndex: at === stop ? 0 : -1,
      "aria-selected": choosing.chosen(row),
      onClick: () => {
        setCurrent(at);
        choosing.choose(row);
      },
      onKeyDown: (event: KeyboardEvent) => onKeyDown(event, at),
    };

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
    <section ref={root} class="hta-table" tabIndex={0} aria-label={caption}>
      {table.rows >= WORTH_FILTERING && (
        <p class="hta-tools">
          <Button
            aria-label={`Filter columns: ${caption}`}
            aria-pressed={filters !== null}
            onClick={() => setFilters(filters ? null : {})}
          >
            Filter columns
          </Button>
          <span class="hta-muted" role="status">
            {kept.length < table.rows && `${grouped(kept.length)} of the ${counted(table.rows, "row")} here`}
          </span>
        </p>
      )}
      <table role={choosing ? "grid" : undefined} aria-label={choosing ? caption : undefined}>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading key={column.name} {...{ column, sort, onSort }} />
            ))}
          </tr>
          {filters && (
            <tr>
              {columns.map((column) => (
                <td key={column.name} data-numeric={column.numeric}>
                  <ColumnFilter
                    {...column}
                    filter={filters[column.name]}
                    distribution={column.distribution()}
                    change={(filter) => setFilters((others) => ({ ...others, [column.name]: filter }))}
                  />
                </td>
              ))}
            </tr>
          )}
        </thead>
        <tbody>
          {kept.map((row, at) => (
            <tr key={row} data-noise={withinNoise(table, row) || undefined} {...rowProps(row, at)}>
              {columns.map(({ name, numeric, cell, title }) => (
                <td key={name} title={title(row)} data-numeric={numeric} data-column={name}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface HeadingProps extends Pick<TableProps, "onSort"> {
  column: Printable;
  sort: Sort;
}

/** A click sorts by the column, the greatest number or the first text on top; then the other way; then not any more. */
function Heading({ column: { name, heading, unit, numeric }, sort: [by, descending], onSort }: HeadingProps) {
  const sorted = by === name;
  const next = (): Sort => {
    if (!sorted) return [name, numeric];
    return descending === numeric ? [name, !numeric] : [];
  };
  const unitText = unit && <span class="hta-muted"> {unit}</span>;
  const order = descending ? "descending" : "ascending";
  return (
    <th scope="col" title={name} data-numeric={numeric} aria-sort={sorted ? order : undefined}>
      {onSort ? (
        <Button onClick={() => onSort(next())}>
          {heading}
          {sorted && <span aria-hidden="true">{descending ? " ↓" : " ↑"}</span>}
          {unitText}
        </Button>
      ) : (
        <>
          {heading}
          {unitText}
        </>
      )}
    </th>
  );
}

type Filters = Record<string, Filter | undefined>;

/** In fewer rows the eye finds what it looks for. */
const WORTH_FILTERING = 12;

const WORDS = { unit: "", numeric: false, scale: 1, whole: true, told: String };

/** The rows that pass all filters; texts by what their cells show, or by the whole of them. */
function passing(table: Table, filters: Filters): number[] {
  const rows = Array.from({ length: table.rows }, (_, row) => row);
  return Object.entries(filters).reduce((kept, [name, filter]) => {
    const column = table.column(name);
    if (!column || filter === undefined) return kept;
    if (typeof filter === "string") {
      const { cell, title } = printable(column, table);
      const holds = (text: string) => text.toLowerCase().includes(filter.toLowerCase());
      return kept.filter((row) => holds(cell(row)) || holds(title(row)));
    }
    const [low, high] = filter;
    const passes = (value: number) => value >= (low ?? -Infinity) && value <= (high ?? Infinity);
    return kept.filter((row) => passes(Number(column.values[row])));
  }, rows);
}

interface Printable {
  name: string;
  heading: string;
  unit: string;
  numeric: boolean;
  /** what makes one of the unit shown, whether numbers are whole, and how one is told */
  scale: number;
  whole: boolean;
  told(value: number): string;
  distribution(): Distribution;
  cell(row: number): string;
  title(row: number): string;
}

/** Whether a change is no more than noise, or less than matters. */
function withinNoise(table: Table, row: number): boolean {
  return ["within noise", "negligible"].includes(table.texts("verdict")[row] ?? "");
}

function printable(column: Column, table: Table): Printable {
  const { name } = column;
  if (column.kind === "text") {
    const text = (row: number) => column.values[row] ?? "";
    const cell = (row: number) => table.cell(name, text(row));
    const distribution = () => distributionOf(column.values.map((value) => table.cell(name, value)));
    return { ...WORDS, name, heading: name.replaceAll("_", " "), distribution, cell, title: text };
  }
  const value = (row: number) => column.values[row] ?? Number.NaN;
  if (name === "significant") {
    const answer = (row: number) => (value(row) ? "yes" : "no");
    const distribution = () => distributionOf(Array.from(column.values, (_, row) => answer(row)));
    return { ...WORDS, name, heading: name, distribution, cell: answer, title: answer };
  }
  const format = columnFormat(name, column.values);
  return {
    name,
    heading: format.heading,
    unit: format.unit,
    numeric: true,
    scale: format.scale,
    whole: column.kind === "int",
    told: format.title,
    distribution: () => distributionOf(column.values),
    cell: (row) => format.cell(value(row)),
    title: (row) => format.title(value(row)),
  };
}
