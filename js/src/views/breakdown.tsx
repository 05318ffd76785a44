// BreakdownPanel: an analysis as a sentence, bars, a table and ways to take it along.

import { computed, signal as makeSignal } from "@preact/signals";
import { Bars } from "../charts/bars";
import { Legend, type Series } from "../charts/legend";
import { Rows } from "../charts/rows";
import { decode, type WireTable } from "../columns";
import { copyText, download } from "../export";
import { trait, type View } from "../model";
import { draw, pick } from "../shared";
import { BusyMark, StateNotice, type Status } from "../state";
import { DataTable } from "../table";

const COPIED_MS = 1500;

/** How to draw the answer (`Stack`, `Bars` or nothing in hta_widgets/analysis/registry.py). */
type Chart =
  | { type: "stack"; series: Series[]; whole: string }
  | { type: "bars"; value: string; label: string[]; time_class: string }
  | { type?: undefined };

export const breakdown: View = ({ model, el, signal }) => {
  const kind: string = model.get("kind");
  const title: string = model.get("title");
  const chart: Chart = model.get("chart");
  const sentence = trait<string>(model, "sentence", signal);
  const expression = trait<string>(model, "expression", signal);
  const wire = trait<WireTable | null>(model, "table", signal);
  const rows = trait<number>(model, "rows", signal);
  const ranks = trait<number[]>(model, "ranks", signal);
  const status = trait<Status>(model, "status", signal);
  const message = trait<string>(model, "message", signal);
  const table = computed(() => decode(wire.value));
  const width = makeSignal(el.clientWidth || 640);
  const copied = makeSignal(false);

  const observer = new ResizeObserver(() => {
    if (el.clientWidth) width.value = el.clientWidth;
  });
  observer.observe(el);
  signal.addEventListener("abort", () => observer.disconnect(), { once: true });

  const copy = async () => {
    await copyText(expression.value);
    copied.value = true;
    setTimeout(() => {
      copied.value = false;
    }, COPIED_MS);
  };

  function Drawing() {
    if (chart.type === "stack") {
      const { series, whole } = chart;
      return (
        <>
          <Legend series={series} />
          <div class="hta-chart">
            <Bars
              table={table.value}
              selected={ranks.value}
              width={width.value}
              onPick={(rank, event) => {
                ranks.value = pick([...table.value.numbers("rank")], ranks.value, rank, null, event);
              }}
              {...{ series, whole }}
            />
          </div>
        </>
      );
    }
    if (chart.type === "bars") return <Rows table={table.value} timeClass={chart.time_class} {...chart} />;
    return null;
  }

  function Breakdown() {
    const cut = rows.value - table.value.rows;
    const shown = table.value.rows > 0 && (status.value === "idle" || status.value === "busy");
    return (
      <section class="hta-breakdown" aria-busy={status.value === "busy"}>
        <div class="hta-bar">
          <h3>{title}</h3>
          <BusyMark status={status} />
          <span class="hta-grow" />
          {shown && (
            <>
              <button type="button" onClick={copy} title={`Copy ${expression.value}`}>
                {copied.value ? "Copied" : "Copy Python"}
              </button>
              {cut === 0 && (
                <button
                  type="button"
                  onClick={() => download(`${kind}.csv`, table.value.toCsv(), "text/csv")}
                  title="Download the table with full precision"
                >
                  CSV
                </button>
              )}
            </>
          )}
        </div>
        <StateNotice status={status} message={message} />
        {shown && (
          <>
            <p>{sentence.value}</p>
            <Drawing />
            <details>
              <summary>
                Table{" "}
                <span class="hta-muted">
                  {cut === 0
                    ? plural(rows.value)
                    : `the first ${table.value.rows} of ${plural(rows.value)}: ${expression.value} has all`}
                </span>
              </summary>
              <DataTable table={table.value} caption={title} />
            </details>
          </>
        )}
      </section>
    );
  }
  draw(<Breakdown />, el, signal);
};

function plural(rows: number): string {
  return rows === 1 ? "1 row" : `${rows.toLocaleString("en-US")} rows`;
}
