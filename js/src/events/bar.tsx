// Above the grid: how many events, which names and columns, and the ways out.

import type { ReadonlySignal, Signal } from "@preact/signals";
import { useSignal } from "@preact/signals";
import { copyText, download } from "../export";
import type { Rpc } from "../rpc";
import { SearchBox } from "../search";
import { BusyMark, type Status } from "../state";
import type { ColumnInfo } from "./cells";
import { eventColumn } from "./cells";
import { type FileFormat, fetchFile } from "./save";

const COPIED_MS = 1500;

export interface BarProps {
  rows: ReadonlySignal<number>;
  total: ReadonlySignal<number>;
  status: Signal<Status>;
  names: Signal<string[]>;
  query: Signal<string>;
  catalogue: ReadonlySignal<ColumnInfo[]>;
  columns: Signal<string[]>;
  expression: ReadonlySignal<string>;
  rpc: Rpc;
  signal: AbortSignal;
}

export function Bar({ rows, total, status, names, query, signal, ...rest }: BarProps) {
  const chosen = names.value.length;
  return (
    <div class="hta-bar hta-events-bar">
      <h3>Events</h3>
      <span class="hta-muted" role="status">
        {count(rows.value, total.value)}
      </span>
      <BusyMark status={status} />
      <span class="hta-grow" />
      {chosen > 0 && (
        <button
          type="button"
          title={`Only ${names.value.join("\n")}\n\nClick to show all names`}
          onClick={() => {
            names.value = [];
          }}
        >
          {chosen === 1 ? "1 name" : `${chosen} names`} <span aria-hidden="true">×</span>
          <span class="hta-hidden">: show all</span>
        </button>
      )}
      <SearchBox query={query} signal={signal} />
      <Columns {...rest} />
      {rows.value > 0 && <Export {...rest} signal={signal} />}
    </div>
  );
}

export function count(rows: number, total: number): string {
  const all = total.toLocaleString("en-US");
  return rows === total ? `${all} events` : `${rows.toLocaleString("en-US")} of ${all} events`;
}

function Columns({ catalogue, columns }: Pick<BarProps, "catalogue" | "columns">) {
  const toggle = (name: string) => {
    const on = columns.value.includes(name);
    // in the catalogue's order, whatever was clicked first
    const next = catalogue.value
      .map((info) => info.name)
      .filter((one) => columns.value.includes(one) !== (one === name));
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
        {catalogue.value.map((info) => (
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

function Export({ expression, rpc, signal }: Pick<BarProps, "expression" | "rpc" | "signal">) {
  const copied = useSignal(false);
  const share = useSignal<number | null>(null);
  const failure = useSignal("");
  const running = useSignal<AbortController | null>(null);

  const copy = async () => {
    await copyText(expression.value);
    copied.value = true;
    setTimeout(() => {
      copied.value = false;
    }, COPIED_MS);
  };
  const save = async (format: FileFormat) => {
    const controller = new AbortController();
    running.value = controller;
    share.value = null;
    failure.value = "";
    try {
      const file = await fetchFile(
        rpc,
        format,
        (done) => {
          share.value = done;
        },
        controller.signal,
      );
      download(`events.${format}`, file, file.type);
    } catch (error) {
      if (!controller.signal.aborted && !signal.aborted)
        failure.value = `The download failed: ${error instanceof Error ? error.message : error}`;
    } finally {
      running.value = null;
    }
  };

  if (running.value) {
    return (
      <>
        <span class="hta-muted" role="status">
          {share.value === null ? "Writing the file…" : `Saving, ${Math.round(100 * share.value)} %`}
        </span>
        <button type="button" onClick={() => running.value?.abort()}>
          Cancel
        </button>
      </>
    );
  }
  return (
    <>
      {failure.value && <span role="alert">{failure.value}</span>}
      <button type="button" onClick={copy} title={`Copy ${expression.value}`}>
        {copied.value ? "Copied" : "Copy Python"}
      </button>
      <button type="button" onClick={() => save("csv")} title="Download these events with all columns as CSV">
        CSV
      </button>
      <button
        type="button"
        onClick={() => save("parquet")}
        title="Download these events with all columns as Parquet"
      >
        Parquet
      </button>
    </>
  );
}
