// The events table of a report: sorted, searched and paged here, over the events that were saved.

import { byColumn, type Column, decode, type EncodedTable, Table } from "../columns";
import type { FrozenPart } from "./part";

interface Saved {
  tables: EncodedTable[];
  /** false: only the beginning of a longer list was saved, and sorting that would mislead */
  sortable: boolean;
  /** false: the list was searched before it was saved */
  searchable: boolean;
}

/** Answer an events part's questions from the tables that were saved with it. */
export function answerEvents(model: FrozenPart): void {
  const saved = model.savedAnswer("saved")?.result as Saved | undefined;
  if (!saved) return;
  const all = concatenate(saved.tables.map(decode));
  const savedSort: string = model.get("sort");
  let order = natural(all.rows);

  const arrange = () => {
    const [names, query] = saved.searchable ? [model.get("names"), model.get("query")] : [[], ""];
    const sort: string = model.get("sort");
    order = arranged(all, names, query, sort === savedSort ? "" : sort);
    if (!sort && savedSort) order = arranged(all, names, query, "rank", "start_ns");
    model.set("rows", order.length);
    model.set("version", model.get("version") + 1);
    const none = order.length === 0;
    model.set("message", none ? "No event lies in the selection." : "");
    model.set("status", none ? "empty" : "idle");
  };
  if (saved.searchable) for (const name of ["names", "query"]) model.on(`change:${name}`, arrange);
  model.on("change:sort", () => {
    if (saved.sortable) arrange();
    else if (model.get("sort") !== savedSort) model.set("sort", savedSort);
  });

  model.answer("page", ({ first, count, columns }) => {
    const rows = order.slice(first as number, (first as number) + (count as number));
    const { data, ...table } = encode(
      all,
      rows,
      new Set(["rank", "event_id", "name", "event_class", ...(columns as string[])]),
    );
    return { result: { ...table, version: model.get("version") }, buffers: [data as DataView] };
  });
  model.answer("file", () => ({ result: { chunks: 1 }, buffers: [csv(all, order)] }));
  model.answer("find", ({ rank, event_id }) => {
    const [ranks, ids] = [all.numbers("rank"), all.numbers("event_id")];
    const row = order.findIndex((at) => ranks[at] === rank && ids[at] === event_id);
    return { result: { row, version: model.get("version") }, buffers: [] };
  });
}

/** These rows with all columns, as the kernel's download has them. */
function csv(all: Table, rows: readonly number[]): DataView {
  const names = new Set(all.columns.map((column) => column.name));
  const bytes = new TextEncoder().encode(decode(encode(all, rows, names)).toCsv());
  return new DataView(bytes.buffer);
}

function natural(rows: number): number[] {
  return Array.from({ length: rows }, (_, row) => row);
}

/** The rows that are named and match, sorted as Python does: stable, missing values last. */
function arranged(
  all: Table,
  names: readonly string[],
  query: string,
  ...sorts: readonly string[]
): number[] {
  const texts = all.column("name")?.values as string[];
  const wanted = new Set(names);
  const needle = query.trim().toLowerCase();
  const rows = natural(all.rows).filter((row) => {
    const name = texts[row] as string;
    return (!wanted.size || wanted.has(name)) && (!needle || name.toLowerCase().includes(needle));
  });
  const orders = sorts
    .filter(Boolean)
    .map((sort) => byColumn(all, sort.replace(/^-/, ""), sort.startsWith("-")));
  return rows.sort((a, b) => {
    for (const compare of orders) {
      const sign = compare(a, b);
      if (sign) return sign;
    }
    return a - b;
  });
}

function concatenate(tables: readonly Table[]): Table {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const columns = (tables[0]?.columns ?? []).map(({ name, kind }): Column => {
    const parts = tables.map((table) => table.column(name)?.values ?? []);
    if (kind === "text") {
      const short = Object.assign({}, ...tables.map((table) => table.short(name)));
      return { name, kind, values: parts.flatMap((part) => [...part].map(String)), short };
    }
    const values = new Float64Array(rows);
    let at = 0;
    for (const part of parts) {
      values.set(part as Float64Array, at);
      at += part.length;
    }
    return { name, kind, values };
  });
  return new Table(rows, columns);
}

/** As hta_widgets/widgets/table_codec.py. */
function encode(all: Table, rows: readonly number[], names: ReadonlySet<string>): EncodedTable {
  const columns = all.columns.filter((column) => names.has(column.name));
  const data = new DataView(new ArrayBuffer(8 * rows.length * columns.length));
  return {
    rows: rows.length,
    data,
    columns: columns.map(({ name, kind, values }, index) => {
      if (kind === "text")
        return { name, kind, values: rows.map((row) => values[row] as string), short: all.short(name) };
      const offset = 8 * index * rows.length;
      rows.forEach((row, at) => {
        data.setFloat64(offset + 8 * at, values[row] as number, true);
      });
      return { name, kind, offset };
    }),
  };
}
