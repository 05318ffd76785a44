// JobView: every rank of a job at its place, what it does over the iterations, and who waits for whom.

import { computed, effect, signal as makeSignal, type Signal } from "@preact/signals";
import { Button } from "../button";
import { unitOf } from "../charts/unit";
import type { EncodedTable } from "../columns";
import { copyText } from "../export";
import { counted } from "../format";
import { type Bin, binned } from "../job/bins";
import { Grid } from "../job/grid";
import { type Notable, NotableRanks } from "../job/notable";
import { MEASURES, type Measure, type Order, ordered, ranksOf, shading } from "../job/ranks";
import { Choices, Scale } from "../job/scale";
import { Cells, type CellsLayout, float32, Pairs, type PairsLayout } from "../job/sent";
import { Time } from "../job/time";
import { Waits } from "../job/waits";
import { trait, type View } from "../model";
import { onAbort } from "../page";
import { Rpc } from "../rpc";
import { adoptStyles, draw } from "../shared";
import { type Evidence, SHOW } from "../showing";
import { BusyMark, StateNotice, type Status } from "../state";
import { AdviceColumn } from "../story/advice";
import { StoryBody } from "../story/body";
import type { Story } from "../story/story";
import css from "../story/story.css";

const BESIDE = 980; // px: from this width on, pictures stand side by side
const GAP = 32;
const TABLE = 560;

const ORDERS = [
  { name: "place", label: "by place", title: "By stage and replica, by node, or by number" },
  { name: "measure", label: "largest first", title: "Sorted by what is shown" },
];

type Costs = "busy" | "known" | "missing";

export const job: View = ({ model, el, signal }) => {
  adoptStyles(el, "story", css);
  const rpc = new Rpc(model, signal);
  const status = trait<Status>(model, "status", signal);
  const message = trait<string>(model, "message", signal);
  const answer = patient(
    {
      encoded: trait<EncodedTable | null>(model, "table", signal),
      labels: trait<string[]>(model, "labels", signal),
      notable: trait<Notable[]>(model, "notable", signal),
      sentence: trait<string>(model, "sentence", signal),
      note: trait<string>(model, "note", signal),
      costs: trait<Costs>(model, "costs", signal),
      missing: trait<string>(model, "missing", signal),
    },
    signal,
  );
  const version = trait<number>(model, "version", signal);
  const expression = trait<string>(model, "expression", signal);
  const story = trait<Partial<Story>>(model, "story", signal);
  const finding = makeSignal(-1);
  const selected = trait<number[]>(model, "ranks", signal);
  const iterations = trait<number[]>(model, "iterations", signal);

  const ranks = computed(() => ranksOf(answer.value.encoded, answer.value.labels));
  const names = computed(() => new Map(ranks.value.map(({ rank, label }) => [rank, label])));
  const label = (rank: number) => names.value.get(rank) ?? String(rank);
  const cells = makeSignal<Cells | null>(null);
  const pairs = makeSignal<Pairs | null>(null);
  const asked = makeSignal<string | null>(null); // the measure, once one is chosen
  const order = makeSignal<Order>("place");
  const zoomed = makeSignal<readonly number[] | null>(null);
  const shown = makeSignal<number | null>(null);
  const width = makeSignal(el.clientWidth || 900);

  const observer = new ResizeObserver(() => {
    if (el.clientWidth) width.value = el.clientWidth;
  });
  observer.observe(el);
  onAbort(signal, () => observer.disconnect());

  const look = async (of: number) => {
    if (of === 0) return;
    try {
      const [time, waits] = await Promise.all([
        rpc.call<CellsLayout>("cells"),
        rpc.call<PairsLayout>("pairs"),
      ]);
      if (version.peek() !== of || !time.buffers[0] || !waits.buffers[0]) return;
      cells.value = new Cells(time.result, float32(time.buffers[0]));
      pairs.value = new Pairs(float32(waits.buffers[0]), waits.result, time.result.ranks);
    } catch {
      // a notebook that was saved: the grid and the table stand by themselves
    }
  };
  onAbort(
    signal,
    effect(() => void look(version.value)),
  );

  const tell = (detail: Evidence | null) =>
    el.dispatchEvent(new CustomEvent(SHOW, { detail, bubbles: true, composed: true }));
  const back = () => {
    shown.value = null;
    tell(null);
  };
  const show = ({ rank, evidence }: Notable) => {
    if (shown.value === rank || !evidence) return back();
    shown.value = rank;
    tell(evidence);
  };

  /** What is shown until somebody chooses: what ranks cost, if that is known. */
  const measure = computed((): Measure => {
    const usual = answer.value.costs === "known" ? "cost" : "waiting";
    return MEASURES.find(({ name }) => name === (asked.value ?? usual)) as Measure;
  });
  const inOrder = computed(() => ordered(ranks.value, order.value, measure.value.name));
  const bins = computed(() => {
    const { value: inside } = zoomed;
    const some = inside ? inOrder.value.filter(({ rank }) => inside.includes(rank)) : inOrder.value;
    const first = answer.value.notable.map(({ rank }) => rank);
    return binned(some, inside ? [] : first, order.value === "measure");
  });
  const zoom = (bin: Bin) =>
    bin.ranks.length > 1
      ? () => {
          zoomed.value = bin.ranks;
        }
      : null;

  /** What the whole job could save, and what the finding advises that was clicked. */
  function Whole() {
    const content = story.value as Story | undefined;
    if (!content?.headline) return null; // in an explorer, or saved before there was one
    // without a timeline there is no place to show, and without an explorer no panel to open
    const advice = content.advice.map((one) => ({ ...one, places: [], kind: "" }));
    const toggle = (at: number) => {
      finding.value = finding.value === at ? -1 : at;
    };
    return (
      <div class="hta-job-whole">
        <section class="hta-story" aria-label="Findings">
          <StoryBody story={content} shown={finding} toggle={toggle} />
        </section>
        {advice[finding.value] && (
          <div class="hta-job-advice">
            <AdviceColumn
              story={{ ...content, advice }}
              shown={finding}
              place={makeSignal(0)}
              step={() => {}}
              toggle={toggle}
              attempt={null}
              open={() => {}}
            />
          </div>
        )}
      </div>
    );
  }

  function Grouped() {
    const of = measure.value;
    const values = ranks.value.map((rank) => rank.values[of.name] ?? Number.NaN);
    const shades = shading(values, of.contrast);
    const unit = unitOf("ns", values);
    const beside = width.value >= BESIDE;
    return (
      <div class="hta-job-first">
        <section class="hta-job-part" aria-label="Ranks">
          <div class="hta-bar">
            <Choices
              label="Shown of ranks"
              choices={MEASURES.map((one) =>
                one.name === "cost" && answer.value.costs !== "known"
                  ? { ...one, disabled: true, title: answer.value.missing || "Being replayed" }
                  : one,
              )}
              chosen={of.name}
              choose={(name) => {
                asked.value = name;
              }}
            />
            <Choices
              label="Order of ranks"
              choices={ORDERS}
              chosen={order.value}
              choose={(name) => {
                order.value = name as Order;
              }}
            />
          </div>
          <div class="hta-job-key">
            <span class="hta-muted hta-job-small">{`${of.label} per step`}</span>
            <Scale hue={of.hue} {...{ shades, unit }} />
            {ranks.value.some(({ culprit }) => culprit) && (
              <span class="hta-muted hta-job-small hta-job-ring">culprit</span>
            )}
          </div>
          <Grid
            ranks={inOrder.value}
            order={order.value}
            measure={of}
            {...{ shades, unit, selected }}
            width={beside ? width.value - TABLE - GAP : width.value}
          />
        </section>
        <NotableRanks
          notable={answer.value.notable}
          ranks={ranks.value}
          note={answer.value.note}
          shown={shown.value}
          show={show}
        />
      </div>
    );
  }

  function Pictures() {
    if (!cells.value || !pairs.value) return null;
    const half = width.value >= BESIDE ? (width.value - GAP) / 2 : width.value;
    const every = ranks.value.map(({ rank }) => rank);
    const many = bins.value.some((bin) => bin.ranks.length > 1);
    const some = selected.value.length > 1 && selected.value.length < every.length;
    return (
      <div class="hta-job-pictures">
        {(many || zoomed.value) && (
          <div class="hta-bar hta-job-zoom">
            <span class="hta-muted hta-job-small">
              {many
                ? "A row of several ranks shows their mean; a corner, the one that stands out. Double-click it (or +) to go in."
                : `${counted(zoomed.value?.length ?? 0, "rank")} of ${counted(every.length, "rank")}.`}
            </span>
            <span class="hta-grow" />
            {some && (
              <Button
                onClick={() => {
                  zoomed.value = selected.value;
                }}
              >
                Go into selected ranks
              </Button>
            )}
            {zoomed.value && (
              <Button
                onClick={() => {
                  zoomed.value = null;
                }}
              >
                All ranks
              </Button>
            )}
          </div>
        )}
        <div class="hta-job-second">
          <Time
            cells={cells.value}
            bins={bins.value}
            ranks={selected}
            {...{ label, iterations, zoom }}
            width={half}
          />
          <Waits
            pairs={pairs.value}
            bins={bins.value}
            ranks={selected}
            all={every}
            {...{ label, zoom }}
            width={half}
          />
        </div>
      </div>
    );
  }

  function Job() {
    const known = ranks.value.length > 0 && status.value !== "empty" && status.value !== "error";
    return (
      <section class="hta-job" aria-label="Job" aria-busy={status.value === "busy"}>
        <div class="hta-bar hta-head">
          <h3>Job</h3>
          {known && <span class="hta-muted">{counted(ranks.value.length, "rank")}</span>}
          <BusyMark status={status} />
          <span class="hta-grow" />
          {known && (
            <Button
              class="hta-quiet"
              title={`Copy ${expression.value}`}
              onClick={() => copyText(expression.value)}
            >
              Copy Python
            </Button>
          )}
        </div>
        <StateNotice status={status} message={message} />
        {!known && status.value === "idle" && (
          <p class="hta-muted">No rank has any of the selected iterations.</p>
        )}
        {known && (
          <>
            <Whole />
            <p class="hta-job-sentence" aria-live="polite">
              {answer.value.sentence ? (
                <Headline text={answer.value.sentence} />
              ) : answer.value.costs === "missing" ? (
                `What ranks cost is not known. ${answer.value.missing}`
              ) : (
                "Replaying all ranks to find what each of them costs…"
              )}
            </p>
            <Grouped />
            <Pictures />
          </>
        )}
      </section>
    );
  }
  draw(<Job />, el, signal);
};

/** The first sentence stands out. */
function Headline({ text }: { text: string }) {
  const [first, ...rest] = text.split(/(?<=\.) (?=[A-Z])/);
  return (
    <>
      <strong>{first}</strong> {rest.join(" ")}
    </>
  );
}

/** An answer without its costs is shown only if these take longer: until then, the one before stays. */
const PATIENCE_MS = 600;

/** Traits that belong together, as one. */
function patient<T extends { costs: Costs }>(
  traits: { [name in keyof T]: Signal<T[name]> },
  signal: AbortSignal,
): Signal<T> {
  const now = () =>
    Object.fromEntries(
      Object.entries<Signal<unknown>>(traits).map(([name, { value }]) => [name, value]),
    ) as T;
  const shown = makeSignal(now());
  let waiting: ReturnType<typeof setTimeout> | undefined;
  const take = () => {
    clearTimeout(waiting);
    waiting = undefined;
    shown.value = now();
  };
  let due = false;
  const dispose = effect(() => {
    now();
    if (due) return;
    due = true;
    // the traits of a message change one after the other
    queueMicrotask(() => {
      due = false;
      if (traits.costs.peek() !== "busy" || shown.peek().costs === "busy") take();
      else waiting ??= setTimeout(take, PATIENCE_MS);
    });
  });
  onAbort(signal, () => {
    clearTimeout(waiting);
    dispose();
  });
  return shown;
}
