// Inspector: all that is known about the event, the gap or the window that is selected. Python makes the sections; what
// it names of other events is a link that selects them.

import { computed, effect, signal as makeSignal } from "@preact/signals";
import { Button } from "../button";
import { byColumn, type Column, decode, type EncodedTable, Table } from "../columns";
import { Difference, type StepDifference } from "../difference";
import differenceCss from "../difference.css";
import { copyText, download, fetchFile } from "../export";
import { trait, type View } from "../model";
import { onAbort } from "../page";
import { Rpc } from "../rpc";
import { adoptStyles, draw } from "../shared";
import { BusyMark, StateNotice, type Status } from "../state";
import { DataTable, type Sort } from "../table";
import css from "./inspector.css";

type Event = [rank: number, event: number];
type Piece = string | { text: string; title: string; to: Event };
type Row = [label: string, pieces: Piece[]];

interface Section {
  title: string;
  rows: Row[];
}

interface Histogram {
  counts: number[];
  labels: string[];
  /** the bin of the event itself, -1: none */
  own: number;
}

interface Content {
  kind: "none" | "event" | "gap" | "area" | "steps";
  title: string;
  short: string;
  where: string;
  sections: Section[];
  missing: [title: string, why: string][];
  window: [number, number] | null;
  histogram?: Histogram;
  difference?: StepDifference;
}

const BY = { class: "class", name: "name", lane: "thread or stream", operator: "operator" };

const HINT = "Click a slice or a gap, drag over time, or select two iterations to compare.";

export const inspector: View = ({ model, el, signal }) => {
  adoptStyles(el, "inspector", css);
  adoptStyles(el, "difference", differenceCss);
  const rpc = new Rpc(model, signal);
  const frozen = model.get("frozen") === true;
  const content = trait<Content>(model, "content", signal);
  const encoded = trait<EncodedTable | null>(model, "table", signal);
  const by = trait<keyof typeof BY>(model, "by", signal);
  const focus = trait<Event | null>(model, "focus", signal);
  const window = trait<[number, number] | null>(model, "window", signal);
  const python = trait<string>(model, "python", signal);
  const status = trait<Status>(model, "status", signal);
  const message = trait<string>(model, "message", signal);
  const said = makeSignal("");
  const sort = makeSignal<Sort>([]);
  const clearSaid = effect(() => {
    void content.value;
    said.value = "";
  });
  onAbort(signal, clearSaid);
  const table = computed(() => sorted(decode(encoded.value), sort.value));

  const copy = async (what: string, text: Promise<string> | string) => {
    try {
      await copyText(await text);
      said.value = `Copied as ${what}`;
    } catch (error) {
      said.value = error instanceof Error ? error.message : String(error);
    }
  };
  const save = async () => {
    const task = { progress: () => {}, signal };
    try {
      const file = await fetchFile(rpc, "csv", task);
      download("events.csv", file, file.type);
      said.value = "Saved as events.csv";
    } catch (error) {
      said.value = error instanceof Error ? error.message : String(error);
    }
  };
  const json = async () => (await rpc.call<string>("json")).result;
  const follow = (to: Event) => {
    said.value = "";
    focus.value = to;
  };

  function Pieces({ pieces }: { pieces: Piece[] }) {
    return (
      <>
        {pieces.map((piece) =>
          typeof piece === "string" ? (
            piece
          ) : frozen ? (
            <span title={piece.title}>{piece.text}</span>
          ) : (
            <Button class="hta-link" title={piece.title} onClick={() => follow(piece.to)}>
              {piece.text}
            </Button>
          ),
        )}
      </>
    );
  }

  function Inspector() {
    const shown = content.value;
    const { kind = "none", sections = [], missing = [], histogram } = shown;
    const range = shown.window;
    const rows = table.value;
    const [ranks, events] = [rows.numbers("rank"), rows.numbers("event_id")];
    const at = (row: number): Event => [ranks[row] as number, events[row] as number];
    const statistics = kind === "area" && (
      <div class="hta-inspector-section">
        <h4>
          By{" "}
          <select
            aria-label="Statistics by"
            value={by.value}
            disabled={frozen}
            onChange={(event) => {
              by.value = event.currentTarget.value as keyof typeof BY;
            }}
          >
            {Object.entries(BY).map(([value, words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </select>
        </h4>
        <DataTable
          table={without(rows, by.value === "class" ? ["event_id", "event_class"] : ["event_id"])}
          caption="What the window consists of"
          sort={sort.value}
          onSort={(next) => {
            sort.value = next;
          }}
          choosing={frozen ? undefined : { chosen: () => false, choose: (row) => follow(at(row)) }}
        />
      </div>
    );
    return (
      <section
        class="hta-inspector"
        data-kind={kind}
        aria-label="Inspector"
        aria-busy={status.value === "busy"}
      >
        <header aria-live="polite">
          <p class="hta-muted">
            {shown.where || (kind === "none" ? "" : "Inspector")} <BusyMark status={status} />
          </p>
          {shown.title && <h3 title={shown.title}>{shown.short || shown.title}</h3>}
        </header>
        <StateNotice status={status} message={message} />
        {kind === "none" && (
          <p class="hta-muted">{frozen ? "Nothing was selected when this report was made." : HINT}</p>
        )}
        {kind !== "none" && (
          <div class="hta-inspector-actions">
            {kind === "area" && !frozen && (
              <Button title="Save the events of the window as a CSV file" onClick={() => void save()}>
                Save events
              </Button>
            )}
            {range && !frozen && kind !== "area" && (
              <Button
                onClick={() => {
                  window.value = range;
                }}
              >
                Use as window
              </Button>
            )}
            <Button title={python.value} onClick={() => void copy("Python", python.value)}>
              Copy as Python
            </Button>
            {!frozen && (kind === "event" || kind === "gap") && (
              <Button onClick={() => void copy("JSON", json())}>Copy as JSON</Button>
            )}
            <span role="status" class="hta-muted">
              {said.value}
            </span>
          </div>
        )}
        {shown.short && shown.short !== shown.title && <p class="hta-inspector-name">{shown.title}</p>}
        {shown.difference && <Difference found={shown.difference} />}
        {sections.map(({ title, rows }) => (
          <div key={title} class="hta-inspector-section">
            <h4>{title}</h4>
            {histogram && title.startsWith("Of this name") && <Bars {...histogram} />}
            <dl>
              {rows.map(([label, pieces], i) => (
                <div key={`${label}${i}`}>
                  {label && <dt>{label}</dt>}
                  <dd>
                    <Pieces pieces={pieces} />
                  </dd>
                </div>
              ))}
            </dl>
          </div>
        ))}
        {statistics}
        {frozen && kind !== "none" && (
          <p class="hta-muted">
            Of what was selected for this report; of other events it tells in a notebook.
          </p>
        )}
        {missing.length > 0 && (
          <details>
            <summary>Not known here ({missing.length})</summary>
            <dl>
              {missing.map(([title, why]) => (
                <div key={title}>
                  <dt>{title}</dt>
                  <dd>{why}</dd>
                </div>
              ))}
            </dl>
          </details>
        )}
      </section>
    );
  }
  draw(<Inspector />, el, signal);
};

/** How many events of the name take how long; the bin of this one stands out. */
function Bars({ counts, labels, own }: Histogram) {
  const most = Math.max(...counts, 1);
  return (
    <div class="hta-inspector-bars" role="img" aria-label="Durations of the events of this name">
      {counts.map((count, bin) => (
        <span
          key={bin}
          data-own={bin === own || undefined}
          title={`${labels[bin]}: ${count.toLocaleString("en")}`}
          style={{ height: count ? `${Math.max(8, (100 * count) / most)}%` : "1px" }}
        />
      ))}
    </div>
  );
}

function without(table: Table, names: readonly string[]): Table {
  return new Table(
    table.rows,
    table.columns.filter((column) => !names.includes(column.name)),
  );
}

/** The rows by a column. */
function sorted(table: Table, [name = "", descending = false]: Sort): Table {
  const compare = byColumn(table, name, descending);
  const order = Array.from({ length: table.rows }, (_, row) => row).sort((a, b) => compare(a, b) || a - b);
  const moved = ({ values, ...rest }: Column) =>
    ({
      ...rest,
      values: values.map((_: unknown, at: number) => values[order[at] as number] as never),
    }) as Column;
  return new Table(table.rows, table.columns.map(moved));
}
