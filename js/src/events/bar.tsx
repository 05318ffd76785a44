// Above the grid: how many events, which names and columns, and the ways out.

import type { ReadonlySignal, Signal } from "@preact/signals";
import { useSignal } from "@preact/signals";
import { Button } from "../button";
import type { Filter } from "../column_filter";
import { copyText, download, type FileForm, fetchFile } from "../export";
import { counted, grouped } from "../format";
import { type Item, Menu, type Task } from "../menu";
import type { Rpc } from "../rpc";
import { SearchBox } from "../search";
import { BusyMark, type Status } from "../state";
import type { ColumnInfo } from "./cells";
import { eventColumn } from "./cells";

const COPIED_MS = 1500;

export interface BarProps {
  rows: ReadonlySignal<number>;
  total: ReadonlySignal<number>;
  status: Signal<Status>;
  names: Signal<string[]>;
  query: Signal<string>;
  available: ReadonlySignal<ColumnInfo[]>;
  columns: Signal<string[]>;
  /** whether the columns can be filtered in their heads; null where no kernel filters them */
  filtering: Signal<boolean> | null;
  filters: Signal<Record<string, Filter> | undefined>;
  expression: ReadonlySignal<string>;
  rpc: Rpc;
  /** without a kernel: Parquet is out of reach */
  frozen: boolean;
  signal: AbortSignal;
}

export function Bar({ rows, total, status, names, query, filters, filtering, signal, ...rest }: BarProps) {
  const chosen = names.value.length;
  const filtered = Object.keys(filters.value ?? {}).length;
  return (
    <div class="hta-bar hta-head hta-events-bar">
      <h3>Events</h3>
      <span class="hta-muted" role="status">
        {count(rows.value, total.value)}
      </span>
      <BusyMark status={status} />
      <span class="hta-grow" />
      {chosen > 0 && (
        <Button
          title={`Only ${names.value.join("\n")}\n\nClick to show all names`}
          onClick={() => {
            names.value = [];
          }}
        >
          {counted(chosen, "name")} <span aria-hidden="true">×</span>
          <span class="hta-hidden">: show all</span>
        </Button>
      )}
      {filtered > 0 && (
        <Button
          title="Show what any filter of a column leaves out"
          onClick={() => {
            filters.value = {};
          }}
        >
          {counted(filtered, "filter")} <span aria-hidden="true">×</span>
          <span class="hta-hidden">: take away</span>
        </Button>
      )}
      <SearchBox query={query} signal={signal} />
      {filtering && (
        <Button
          title="Filter each column by a text or a range, beside what its values are like"
          aria-pressed={filtering.value}
          onClick={() => {
            filtering.value = !filtering.value;
          }}
        >
          Filter columns
        </Button>
      )}
      <Columns {...rest} />
      {rows.value > 0 && <Export {...rest} />}
    </div>
  );
}

export function count(rows: number, total: number): string {
  const all = counted(total, "event");
  return rows === total ? all : `${grouped(rows)} of ${all}`;
}

function Columns({ available, columns }: Pick<BarProps, "available" | "columns">) {
  const toggle = (name: string) => {
    const on = columns.value.includes(name);
    // in the order of the menu, whatever was clicked first
    const next = available.value
      .map((info) => info.name)
      .filter((other) => columns.value.includes(other) !== (other === name));
    if (!on || next.length) columns.value = next;
  };
  return (
    <details
      class="hta-events-columns"
      onFocusOut={(event) => {
        const { currentTarget, relatedTarget } = event;
        if (!currentTarget.contains(relatedTarget as Node | null)) currentTarget.open = false;
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") event.currentTarget.open = false;
      }}
    >
      <summary>Columns</summary>
      <fieldset tabIndex={-1}>
        <legend class="hta-hidden">Columns shown</legend>
        {available.value.map((info) => (
          <label key={info.name} title={info.title}>
            <input
              type="checkbox"
              checked={columns.value.includes(info.name)}
              onChange={() => toggle(info.name)}
            />
            {eventColumn(info).heading}
          </label>
        ))}
      </fieldset>
    </details>
  );
}

function Export({ expression, rpc, frozen }: Pick<BarProps, "expression" | "rpc" | "frozen">) {
  const copied = useSignal(false);
  const copy = async () => {
    await copyText(expression.value);
    copied.value = true;
    setTimeout(() => {
      copied.value = false;
    }, COPIED_MS);
  };
  const file = (label: string, form: FileForm): Item => ({
    label,
    hint: `Download these events with all columns as ${label}`,
    run: async (task: Task) => {
      const whole = await fetchFile(rpc, form, task);
      download(`events.${form}`, whole, whole.type);
    },
  });
  return (
    <>
      <Button
        onClick={copy}
        title={`Copy ${expression.value}`}
        aria-label={`Events: ${copied.value ? "Copied" : "Copy Python"}`}
      >
        {copied.value ? "Copied" : "Copy Python"}
      </Button>
      <Menu
        label="Export"
        of="Events"
        items={[file("CSV", "csv"), ...(frozen ? [] : [file("Parquet", "parquet")])]}
      />
    </>
  );
}
