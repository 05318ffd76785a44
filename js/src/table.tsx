// A DataFrame as a table: numbers right-aligned, the unit once in the heading, all digits in the tooltip. Where it is
// given an order or a choice, headings sort and rows are chosen: what that means is the caller's.

import { useRef, useState } from "preact/hooks";
import { Button } from "./button";
import type { Column, Table } from "./columns";
import { columnFormat } from "./format";
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
  const root = useRef<HTMLElement>(null);
  // Roving tabindex: one stop for Tab, arrows go from row to row.
  const [current, setCurrent] = useState(0);
  const stop = Math.min(current, table.rows - 1);

  const onKeyDown = (event: KeyboardEvent, row: number) => {
    if (combined(event)) return;
    const vertical = event.key !== "ArrowLeft" && event.key !== "ArrowRight"; // those scroll
    const to = vertical ? step(event.key, row, table.rows, 1) : undefined;
    if (to !== undefined) {
      const next = Math.min(Math.max(to, 0), table.rows - 1);
      setCurrent(next);
      root.current?.querySelectorAll<HTMLElement>("tbody > tr")[next]?.focus();
    } else if (event.key === "Enter" || event.key === " ") choosing?.choose(row);
    else return;
    consume(event);
  };

  const rowProps = (row: number) =>
    choosing && {
      tabIndex: row === stop ? 0 : -1,
      "aria-selected": choosing.chosen(row),
      onClick: () => {
        setCurrent(row);
        choosing.choose(row);
      },
      onKeyDown: (event: KeyboardEvent) => onKeyDown(event, row),
    };

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
    <section ref={root} class="hta-table" tabIndex={0} aria-label={caption}>
      <table role={choosing ? "grid" : undefined} aria-label={choosing ? caption : undefined}>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading key={column.name} {...{ column, sort, onSort }} />
            ))}
          </tr>
        </thead>
        <tbody>
          {Array.from({ length: table.rows }, (_, row) => (
            <tr key={row} data-noise={withinNoise(table, row) || undefined} {...rowProps(row)}>
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

interface Printable {
  name: string;
  heading: string;
  unit: string;
  numeric: boolean;
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
    return { name, heading: name.replaceAll("_", " "), unit: "", numeric: false, cell, title: text };
  }
  const value = (row: number) => column.values[row] ?? Number.NaN;
  if (name === "significant") {
    const answer = (row: number) => (value(row) ? "yes" : "no");
    return { name, heading: name, unit: "", numeric: false, cell: answer, title: answer };
  }
  const format = columnFormat(name, column.values);
  return {
    name,
    heading: format.heading,
    unit: format.unit,
    numeric: true,
    cell: (row) => format.cell(value(row)),
    title: (row) => format.title(value(row)),
  };
}
