// BreakdownPanel: an analysis as a sentence, a chart, a table and ways to take it along.

import { computed, signal as makeSignal } from "@preact/signals";
import { Button } from "../button";
import { type Chart, Drawing } from "../charts/chart";
import { toPng, toSvg } from "../charts/image";
import type { Selecting, Window } from "../charts/select";
import { decode, type EncodedTable } from "../columns";
import differenceCss from "../difference.css";
import { copyText, download, fetchFile } from "../export";
import { type Field, Form, type Options } from "../form";
import { counted } from "../format";
import { LineBar, linesOf, narrows, orderAndChoice } from "../lines";
import { type Item, Menu } from "../menu";
import { trait, type View } from "../model";
import { type Note, Notes } from "../notes";
import { onAbort } from "../page";
import { PeaksForm, peaksOf } from "../peaks";
import { Rpc } from "../rpc";
import { adoptStyles, draw } from "../shared";
import { BusyMark, StateNotice, type Status } from "../state";
import { Steps, stepsOf } from "../steps";
import stepsCss from "../steps.css";
import { Held } from "../story/body";
import { DataTable } from "../table";

/** What a chart of each type leaves out where there is no room. */
const MARKS: Partial<Record<string, string>> = {
  lines: "line",
  heat: "row",
  spread: "line",
  flame: "box",
  treemap: "box",
  roofline: "row",
};

export const breakdown: View = ({ model, el, signal }) => {
  const rpc = new Rpc(model, signal);
  const frozen = model.get("frozen") === true; // a report: what was not saved is out of reach
  const kind: string = model.get("kind");
  const label: string = model.get("label");
  const title: string = model.get("title");
  const chart: Chart = model.get("chart");
  const form: Field[] = model.get("form") ?? [];
  const sentence = trait<string>(model, "sentence", signal);
  const time = trait<string>(model, "whole", signal);
  const expression = trait<string>(model, "expression", signal);
  const drawing = trait<string>(model, "drawing", signal);
  const encoded = trait<EncodedTable | null>(model, "table", signal);
  const wireMarks = trait<EncodedTable | null>(model, "marks", signal);
  const named = trait<string[] | undefined>(model, "legend", signal);
  const legend = computed(() => named.value ?? []);
  const order = trait<string | undefined>(model, "table_order", signal);
  const leftOut = trait<number>(model, "left_out", signal);
  const extent = trait<number[]>(model, "extent", signal);
  const notes = trait<Note[]>(model, "notes", signal);
  const focus = trait<[number, number] | null>(model, "focus", signal);
  const options = trait<Options>(model, "options", signal);
  const rows = trait<number>(model, "rows", signal);
  const status = trait<Status>(model, "status", signal);
  const message = trait<string>(model, "message", signal);
  // a comparison selects in no one run
  const chosen = <T,>(name: string) =>
    model.get(name) === undefined ? makeSignal<T[]>([]) : trait<T[]>(model, name, signal);
  const selecting: Selecting = {
    ranks: chosen<number>("ranks"),
    iterations: chosen<number>("iterations"),
    window: trait<Window>(model, "window", signal),
    names: chosen<string>("names"),
  };
  // a comparison of lines: the kernel searches, sorts and filters them
  const lines = frozen ? null : linesOf(model, signal);
  const peaks = peaksOf(model, signal);
  const steps = stepsOf(model, signal);
  if (steps) {
    adoptStyles(el, "steps", stepsCss);
    adoptStyles(el, "difference", differenceCss);
  }
  const table = computed(() => decode(encoded.value));
  const marks = computed(() => decode(wireMarks.value));
  const width = makeSignal(el.clientWidth || 640);

  const observer = new ResizeObserver(() => {
    if (el.clientWidth) width.value = el.clientWidth;
  });
  observer.observe(el);
  onAbort(signal, () => observer.disconnect());

  const picture = () => el.querySelector<SVGSVGElement>("svg.hta-bars");
  const background = () => getComputedStyle(el).getPropertyValue("--hta-background") || "#fff";
  const whole = () => rows.value === table.value.rows;
  // of lines that were searched, the kernel has the whole table
  const complete = () => whole() && !lines;

  const parquet: Item = {
    label: "Parquet",
    hint: "Download the whole table with its column types",
    run: async (task) => download(`${kind}.parquet`, await fetchFile(rpc, "parquet", task), ""),
  };

  const items = (): Item[] => [
    frozen && !whole()
      ? {
          label: `CSV, first ${counted(table.value.rows, "row")}`,
          hint: `Download what was saved of ${counted(rows.value, "row")}`,
          run: () => download(`${kind}.csv`, table.value.toCsv(), "text/csv"),
        }
      : {
          label: "CSV",
          hint: "Download the whole table with full precision",
          run: async (task) =>
            download(
              `${kind}.csv`,
              complete() ? table.value.toCsv() : await fetchFile(rpc, "csv", task),
              "text/csv",
            ),
        },
    ...(frozen ? [] : [parquet]),
    ...(marks.value.rows > 0 || legend.value.length > 0 ? pictures() : []),
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
    const some = table.value.rows > 0 || marks.value.rows > 0;
    // a search that finds nothing can still be changed
    const narrowed = !!lines && narrows(lines);
    const { value } = status;
    const shown = (some && (value === "idle" || value === "busy")) || (narrowed && value !== "error");
    return (
      <section class="hta-breakdown" aria-busy={status.value === "busy"} aria-label={title}>
        <div class="hta-bar hta-head">
          <div class="hta-heading" title={time.value ? `${title}, ${time.value}` : title}>
            <h3 aria-description={title}>{label}</h3>
            {shown && time.value && <span class="hta-muted">{time.value}</span>}
          </div>
          <BusyMark status={status} />
          {shown && (
            <>
              <Button
                onClick={copy}
                title={`Copy ${expression.value}`}
                aria-label={`${label}: ${copied.value ? "Copied" : "Copy Python"}`}
              >
                {copied.value ? "Copied" : "Copy Python"}
              </Button>
              <Menu label="Export" of={label} items={items()} />
            </>
          )}
        </div>
        {form.length > 0 && <Form fields={form} options={options} />}
        {peaks && value !== "empty" && (
          <PeaksForm state={peaks} used={marks.value.texts("part")} frozen={frozen} />
        )}
        {lines && (shown || narrowed) && <LineBar {...{ lines, signal }} />}
        <StateNotice status={status} message={message} />
        {shown && (
          <>
            <p>
              <Held text={sentence.value} />
            </p>
            <Drawing
              marks={marks.value}
              legend={legend.value}
              extent={extent.value}
              width={width.value}
              {...{ chart, selecting }}
            />
            {steps && <Steps state={steps} {...{ selecting, frozen }} />}
            {leftOut.value > 0 && (
              <p class="hta-muted">
                {notDrawn(leftOut.value, steps ? "step" : (MARKS[chart.type ?? ""] ?? "bar"))}
              </p>
            )}
            {notes.value?.length > 0 && <Notes notes={notes.value} traits={{ ...selecting, focus }} />}
            <details open={kind === "diff"}>
              <summary>
                Table{" "}
                <span class="hta-muted">
                  {whole()
                    ? found(rows.value)
                    : `the first ${table.value.rows} of ${counted(rows.value, "row")}: ${expression.value} has all`}
                  {order.value && `; ${order.value}`}
                </span>
              </summary>
              <DataTable
                table={table.value}
                caption={title}
                {...(lines && orderAndChoice(lines, table.value))}
              />
            </details>
          </>
        )}
      </section>
    );
  }
  draw(<Breakdown />, el, signal);
};

function found(rows: number): string {
  return rows === 0 ? "nothing matches" : counted(rows, "row");
}

function notDrawn(count: number, mark: string): string {
  const left = counted(count, `more ${mark}`, `more ${mark === "box" ? "boxes" : `${mark}s`}`);
  return `${left} ${count === 1 ? "is" : "are"} not drawn`;
}
