// A DataFrame as a table: numbers right-aligned, the unit once in the heading, all digits in the tooltip.

import type { Column, Table } from "./columns";
import { columnFormat } from "./format";

export function DataTable({ table, caption }: { table: Table; caption: string }) {
  const columns = table.columns.map(printable);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
    <section class="hta-table" tabIndex={0} aria-label={caption}>
      <table>
        <thead>
          <tr>
            {columns.map(({ name, heading, unit, numeric }) => (
              <th key={name} scope="col" title={name} data-numeric={numeric}>
                {heading}
                {unit && <span class="hta-muted"> {unit}</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {Array.from({ length: table.rows }, (_, row) => (
            <tr key={row}>
              {columns.map(({ name, numeric, cell, title }) => (
                <td key={name} title={title(row)} data-numeric={numeric}>
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

interface Printable {
  name: string;
  heading: string;
  unit: string;
  numeric: boolean;
  cell(row: number): string;
  title(row: number): string;
}

function printable(column: Column): Printable {
  if (column.kind === "text") {
    const text = (row: number) => column.values[row] ?? "";
    return {
      name: column.name,
      heading: column.name.replaceAll("_", " "),
      unit: "",
      numeric: false,
      cell: text,
      title: text,
    };
  }
  const format = columnFormat(column.name, column.values);
  const value = (row: number) => column.values[row] ?? Number.NaN;
  return {
    name: column.name,
    heading: format.heading,
    unit: format.unit,
    numeric: true,
    cell: (row) => format.cell(value(row)),
    title: (row) => format.title(value(row)),
  };
}
