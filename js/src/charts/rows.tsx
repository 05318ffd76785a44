// One horizontal bar per row of a table, in its order: what takes most, at a glance.

import { max } from "d3-array";
import type { Column, Table } from "../columns";
import { columnFormat } from "../format";

const MOST = 20;

// Event classes that share the colour of a class of time; all others have their own, or none.
const COLOUR_OF: Record<string, string> = {
  memory_copy: "memory",
  memory_set: "memory",
  host_op: "host",
  runtime: "host",
  python: "host",
};

export interface RowsProps {
  table: Table;
  value: string;
  label: readonly string[];
  /** a class of time, or the column that tells it row by row */
  timeClass: string;
}

export function Rows({ table, value, label, timeClass }: RowsProps) {
  const values = table.numbers(value);
  const longest = max(values) ?? 0;
  const format = columnFormat(value, values);
  const named = label.map((name) => table.column(name)).filter((column) => column !== undefined);
  const classes = table.column(timeClass);
  return (
    <ul class="hta-rows">
      {Array.from(values.subarray(0, MOST), (size, row) => {
        const name = named.map((column) => text(column, row)).join(" · ");
        const shown = `${format.cell(size)} ${format.unit}`;
        const share = longest > 0 && size > 0 ? (100 * size) / longest : 0;
        const told = classes?.kind === "text" ? (classes.values[row] ?? "") : timeClass;
        return (
          <li key={row} title={`${name}: ${format.title(size)}`}>
            <span class="hta-row-name">{name}</span>
            <span class="hta-row-track">
              <span
                style={{
                  width: `${share}%`,
                  background: `var(--hta-${COLOUR_OF[told] ?? told}, var(--hta-idle))`,
                }}
              />
            </span>
            <span class="hta-row-value">{shown}</span>
          </li>
        );
      })}
      {values.length > MOST && <li class="hta-muted">and more in the table below</li>}
    </ul>
  );
}

function text(column: Column, row: number): string {
  const value = String(column.values[row] ?? "");
  return column.kind === "text" ? value : `${column.name.replaceAll("_", " ")} ${value}`;
}
