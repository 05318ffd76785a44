// BreakdownPanel: an analysis as a sentence, a chart, a table and ways to take it along.

import { computed, signal as makeSignal } from "@preact/signals";
import { type Chart, Drawing } from "../charts/chart";
import { toPng, toSvg } from "../charts/image";
import type { Selecting, Window } from "../charts/select";
import { decode, type WireTable } from "../columns";
import { copyText, download, fetchFile } from "../export";
import { type Field, Form, type Options } from "../form";
import { type Item, Menu } from "../menu";
import { trait, type View } from "../model";
import { Rpc } from "../rpc";
import { draw } from "../shared";
import { BusyMark, StateNotice, type Status } from "../state";
import { DataTable } from "../table";

interface Note {
  text: string;
  window: [number, number];
  focus: [number, number] | null;
}

export const breakdown: View = ({ model, el, signal }) => {
  const rpc = new Rpc(model, signal);
  const kind: string = model.get("kind");
  const title: string = model.get("title");
  const chart: Chart = model.get("chart");
  const form: Field[] = model.get("form") ?? [];
  const sentence = trait<string>(model, "sentence", signal);
  const expression = trait<string>(model, "expression", signal);
  const drawing = trait<string>(model, "drawing", signal);
  const wire = trait<WireTable | null>(model, "table", signal);
  const wireMarks = trait<WireTable | null>(model, "marks", signal);
  const legend = trait<string[]>(model, "legend", signal);
  const leftOut = trait<number>(model, "left_out", signal);
  const extent = trait<number[]>(model, "extent", signal);
  const notes = trait<Note[]>(model, "notes", signal);
  const focus = trait<[number, number] | null>(model, "focus", signal);
  const options = trait<Options>(model, "options", signal);
  const rows = trait<number>(model, "rows", signal);
  const status = trait<Status>(model, "status", signal);
  const message = trait<string>(model, "message", signal);
  const selecting: Selecting = {
    ranks: trait<number[]>(model, "ranks", signal),
    iterations: trait<number[]>(model, "iterations", signal),
    window: trait<Window>(model, "window", signal),
    names: trait<string[]>(model, "names", signal),
  };
  const table = computed(() => decode(wire.value));
  const marks = computed(() => decode(wireMarks.value));
  const width = makeSignal(el.clientWidth || 640);

  const observer = new ResizeObserver(() => {
    if (el.clientWidth) width.value = el.clientWidth;
  });
  observer.observe(el);
  signal.addEventListener("abort", () => observer.disconnect(), { once: true });

  const picture = () => el.querySelector<SVGSVGElement>("svg.hta-bars");
  const background = () => getComputedStyle(el).getPropertyValue("--hta-background") || "#fff";
  const whole = () => rows.value === table.value.rows;

  const items = (): Item[] => [
    {
      label: "CSV",
      hint: "Download the whole table with full precision",
      run: async () =>
        download(`${kind}.csv`, whole() ? table.value.toCsv() : await fetchFile(rpc, "csv"), "text/csv"),
    },
    {
      label: "Parquet",
      hint: "Download the whole table with its column types",
      run: async () => download(`${kind}.parquet`, await fetchFile(rpc, "parquet"), ""),
    },
    ...(marks.value.rows > 0 ? pictures() : []),
    {
      label: "Copy plotly figure",
      hint: `Copy ${drawing.value}`,
      run: () => copyText(drawing.value),
    },
  ];

  const pictures = (): Item[] => [
    {
      label: "SVG",
      hint: "Download the chart as a drawing",
      run: () => {
        const svg = picture();
        if (svg) download(`${kind}.svg`, toSvg(svg, background()), "image/svg+xml");
      },
    },
    {
      label: "PNG",
      hint: "Download the chart as a picture",
      run: async () => {
        const svg = picture();
        if (svg) download(`${kind}.png`, await toPng(svg, background()), "image/png");
      },
    },
  ];

  const copied = makeSignal(false);
  const copy = async () => {
    await copyText(expression.value);
    copied.value = true;
    setTimeout(() => {
      copied.value = false;
    }, 1500);
  };

  function Breakdown() {
    const shown = table.value.rows > 0 && (status.value === "idle" || status.value === "busy");
    return (
      <section class="hta-breakdown" aria-busy={status.value === "busy"} aria-label={title}>
        <div class="hta-bar">
          <h3>{title}</h3>
          <BusyMark status={status} />
          <span class="hta-grow" />
          {shown && (
            <>
              <button type="button" onClick={copy} title={`Copy ${expression.value}`}>
                {copied.value ? "Copied" : "Copy Python"}
              </button>
              <Menu label="Export" items={items()} />
            </>
          )}
        </div>
        {form.length > 0 && <Form fields={form} options={options} />}
        <StateNotice status={status} message={message} />
        {shown && (
          <>
            <p>{sentence.value}</p>
            <Drawing
              marks={marks.value}
              legend={legend.value}
              extent={extent.value}
              width={width.value}
              {...{ chart, selecting }}
            />
            {leftOut.value > 0 && (
              <p class="hta-muted">and {leftOut.value.toLocaleString("en-US")} smaller, not drawn</p>
            )}
            {notes.value?.length > 0 && (
              <ul class="hta-notes" aria-label="The longest gaps">
                {notes.value.map((note) => (
                  <li key={note.window.join()}>
                    <button
                      type="button"
                      class="hta-note-show"
                      title="Show this gap: select its time and the event that ends it"
                      onClick={() => {
                        selecting.window.value = note.window;
                        if (note.focus) focus.value = note.focus;
                      }}
                    >
                      Show
                    </button>
                    <span>{note.text}</span>
                  </li>
                ))}
              </ul>
            )}
            <details>
              <summary>
                Table{" "}
                <span class="hta-muted">
                  {whole()
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
