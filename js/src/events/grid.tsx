// biome-ignore-all lint/a11y/useSemanticElements: a <table> lays all its rows out, and hosts style it
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus and names the row (aria-activedescendant)
// The rows in sight, as an ARIA grid: one stop for Tab, arrows inside, Enter to focus an event.

import type { Signal } from "@preact/signals";
import type { ComponentChildren, RefObject } from "preact";
import { Button } from "../button";
import { ColumnFilter, type Distribution, type Filter } from "../column_filter";
import type { Table } from "../columns";
import { ariaSort, classColour, type EventColumn, nextSort } from "./cells";
import type { Row } from "./pages";

export interface GridProps {
  /** makes the ids of rows unique on the page */
  id: string;
  columns: readonly EventColumn[];
  rows: number;
  range: [number, number];
  height: number;
  rowHeight: number;
  maxHeight: number;
  sort: Signal<string>;
  focus: readonly [number, number] | null;
  names: ReadonlySet<string>;
  cursor: number;
  /** null where the columns are not filtered */
  filtering: Filtering | null;
  scroller: RefObject<HTMLDivElement | null>;
  row(index: number): Row | undefined;
  offset(index: number): number;
  onScroll(): void;
  onKeyDown(event: KeyboardEvent): void;
  onPick(index: number): void;
  onName(name: string): void;
}

export interface Filtering {
  filters: Readonly<Record<string, Filter>>;
  distributions: Readonly<Record<string, Distribution>>;
  change(column: string, filter: Filter | undefined): void;
}

export function Grid(props: GridProps) {
  const { columns, range, cursor, id } = props;
  const shown = Array.from({ length: range[1] - range[0] }, (_, i) => range[0] + i);
  const template = columns.map((column) => column.width).join(" ");
  const active = cursor >= range[0] && cursor < range[1] ? `${id}-${cursor}` : undefined;
  return (
    <div class="hta-events-frame">
      <div
        ref={props.scroller}
        class="hta-events-grid"
        tabIndex={0}
        style={{
          maxHeight: `${props.maxHeight}px`,
          "--hta-columns": template,
          "--hta-row": `${props.rowHeight}px`,
        }}
        onScroll={props.onScroll}
        onKeyDown={props.onKeyDown}
        role="grid"
        aria-label="Events"
        aria-rowcount={props.rows + 1}
        aria-colcount={columns.length}
        aria-activedescendant={active}
      >
        <div class="hta-events-head" role="row" aria-rowindex={1}>
          {columns.map((column) => (
            <Heading key={column.name} column={column} sort={props.sort} />
          ))}
        </div>
        {props.filtering && <Filters columns={columns} filtering={props.filtering} />}
        <div class="hta-events-body" role="rowgroup" style={{ height: `${props.height}px` }}>
          {shown.map((index) => (
            <EventRow key={index} index={index} grid={props} />
          ))}
        </div>
      </div>
    </div>
  );
}

function Heading({ column, sort }: { column: EventColumn; sort: Signal<string> }) {
  const order = ariaSort(sort.value, column.name);
  return (
    <div role="columnheader" aria-sort={order} data-numeric={column.type === "number"}>
      <Button
        title={`${column.title}; click to sort`}
        onClick={() => {
          sort.value = nextSort(sort.value, column.name);
        }}
      >
        {column.heading}
        {column.unit && <span class="hta-muted"> {column.unit}</span>}
        {order !== "none" && <span aria-hidden="true">{order === "ascending" ? " ▲" : " ▼"}</span>}
      </Button>
    </div>
  );
}

function Filters({ columns, filtering }: { columns: readonly EventColumn[]; filtering: Filtering }) {
  const { filters, distributions, change } = filtering;
  return (
    <div class="hta-events-head hta-events-filters" role="row">
      {columns.map((column) => (
        <div key={column.name} role="gridcell">
          <ColumnFilter
            heading={column.heading}
            numeric={column.type === "number"}
            scale={column.scale}
            whole={column.whole}
            filter={filters[column.name]}
            distribution={distributions[column.name]}
            told={(value) => `${column.cell(value)} ${column.unit}`.trimEnd()}
            change={(filter) => change(column.name, filter)}
          />
        </div>
      ))}
    </div>
  );
}

function EventRow({ index, grid: props }: { index: number; grid: GridProps }) {
  const { focus } = props;
  const row = props.row(index);
  const focused = focus !== null && value(row, "rank") === focus[0] && value(row, "event_id") === focus[1];
  const name = String(value(row, "name") ?? "");
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid around has the keys
    <div
      id={`${props.id}-${index}`}
      class="hta-events-row"
      data-cursor={index === props.cursor}
      data-odd={index % 2 === 1}
      style={{ top: `${props.offset(index)}px` }}
      onClick={() => props.onPick(index)}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={focused}
    >
      {props.columns.map((column) => (
        <Cell key={column.name} column={column} value={value(row, column.name)} table={row?.table}>
          {column.name === "name" && row && (
            <Button
              class="hta-events-only"
              tabIndex={-1}
              aria-label={`only ${name}`}
              aria-pressed={props.names.has(name)}
              title={
                props.names.has(name)
                  ? "No longer only events of this name (F)"
                  : "Only events of this name (F)"
              }
              onClick={(event) => {
                event.stopPropagation();
                props.onName(name);
              }}
            >
              only
            </Button>
          )}
        </Cell>
      ))}
    </div>
  );
}

interface CellProps {
  column: EventColumn;
  value: number | string | undefined;
  /** that the value is from; none: it is waited for */
  table: Table | undefined;
  children: ComponentChildren;
}

function Cell({ column, value, table, children }: CellProps) {
  return (
    <div role="gridcell" data-numeric={column.type === "number"} title={column.tip(value)}>
      {column.name === "event_class" && table && (
        <span class="hta-swatch" style={{ background: classColour(String(value)) }} />
      )}
      <span class="hta-events-text">{table ? table.cell(column.name, column.cell(value)) : "…"}</span>
      {children}
    </div>
  );
}

export function value(row: Row | undefined, name: string): number | string | undefined {
  return row?.table.column(name)?.values[row.at];
}
