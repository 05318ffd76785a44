// TraceExplorer: the frame around the parts. It shows the loading progress, then the job in a line, the story, the
// selectors, the timeline with what is selected beside it, and the panels.

import { effect, signal as makeSignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../button";
import { ALL, type Selected, selectedIn } from "../clauses";
import { fillingOf } from "../filling";
import { Health, type HealthRow } from "../health";
import { bindHelp, openHelp } from "../help";
import { bindUndo } from "../history";
import { bindLauncher, type Choice, openLauncher } from "../launcher";
import { Loading, loads, Notices } from "../loading";
import { Menu } from "../menu";
import { trait, type View } from "../model";
import { OPEN } from "../notes";
import { onAbort } from "../page";
import { type Entry, PanelBar } from "../panelbar";
import { choicesOf, historyCommands } from "../places";
import { revealed } from "../reveal";
import { shareItems } from "../share";
import { draw } from "../shared";
import { type Evidence, MARK, type Mark, SHOW, Showing, TRY, WHOLE } from "../showing";
import { Slot, type SlotProps } from "../slot";
import { type Edge, Splitter, sizeOf } from "../splitter";
import { announceView } from "../static_preview";
import { BUILT } from "../timeline/linking";
import type { Timeline } from "../timeline/timeline";
import { Toast, type Told } from "../toast";
import { Tour } from "../tour";
import { PIECES, type Pieces } from "./story";

interface Fact {
  label: string;
  value: string;
  title: string;
}

/** Where a part goes, which widget it is, and which kind of panel. */
type Placed = [area: string, ref: string, kind?: string];

/** The parts of the selectors' row and of the timeline's, in the order in which they are read. */
const CONTROLS = ["ranks", "iterations", "breadcrumb"];
const STAGE = ["timeline", "inspector"];

const INSPECTOR: Edge = {
  name: "inspector-width",
  label: "Width of the inspector",
  of: "width",
  least: 240,
  usual: 320,
  most: 720,
};

export const explorer: View = ({ model, el, signal, host }) => {
  const loading = loads(model, signal);
  const { status, rpc } = loading;
  const inspectorWidth = sizeOf(INSPECTOR);
  const widen = effect(() => el.style.setProperty("--hta-inspector", `${inspectorWidth.value}px`));
  onAbort(signal, widen);
  const header = trait<Fact[]>(model, "header", signal);
  const health = trait<HealthRow[]>(model, "health", signal);
  const parts = trait<Placed[]>(model, "parts", signal);
  const available = trait<Entry[]>(model, "available_panels", signal);
  const relevant = trait<string[] | undefined>(model, "relevant", signal);
  const lacking = trait<Record<string, string> | undefined>(model, "lacking", signal);
  const choices = trait<{ ranks?: number[]; iterations?: number[] } | undefined>(model, "choices", signal);
  const panels = trait<string[]>(model, "panels", signal);
  const clock = trait<string>(model, "clock", signal);
  const clocks = trait<string[]>(model, "clocks", signal);
  const communication = trait<string[]>(model, "communication", signal);
  const rules = trait<string>(model, "rules", signal);
  const frozen = model.get("frozen") === true; // a report: no kernel computes anew
  const selected = selectedIn(model, signal);
  const focus = trait<[number, number] | null>(model, "focus", signal);
  const gap = trait<unknown>(model, "gap", signal);
  const { ranks, iterations, names } = selected;
  const told = makeSignal<Told | null>(null);
  const tour = new Tour(el, told, signal);
  const filling = fillingOf(el, signal);
  const showing = new Showing(el, { ranks, iterations, names, focus }, panels);

  bindUndo(el, rpc, signal);
  bindHelp(el, signal);
  announceView(model, el, signal);
  // the panel that was just opened by hand comes to the top; those opened from Python do not move the page
  let reveal = "";

  const panelOf = (kind: string) => el.querySelector<HTMLElement>(`.hta-panel[data-kind="${kind}"]`);
  const openPanel = (kind: string) => {
    if (!available.value.some((entry) => entry.kind === kind)) return;
    const panel = panels.value.includes(kind) && panelOf(kind);
    if (panel) revealed(panel, signal);
    else {
      reveal = kind;
      panels.value = [...panels.value, kind];
    }
  };
  el.addEventListener(OPEN, (event) => openPanel((event as CustomEvent).detail), { signal });
  el.addEventListener(
    TRY,
    async (event) => {
      await rpc.call("try_finding", { finding: (event as CustomEvent<number>).detail });
      openPanel("what_if");
    },
    { signal },
  );

  el.addEventListener(
    BUILT,
    (event) => {
      showing.timeline = (event as CustomEvent<Timeline>).detail;
      showing.mark(marked);
    },
    { signal },
  );
  let marked: Mark | null = null;
  el.addEventListener(
    MARK,
    (event) => {
      marked = (event as CustomEvent<Mark | null>).detail;
      showing.mark(marked);
    },
    { signal },
  );
  const selectAll = () => {
    for (const [name, trait] of Object.entries(selected)) trait.value = ALL[name as keyof Selected] as never;
  };
  el.addEventListener(WHOLE, selectAll, { signal });
  const pieces = makeSignal<Pieces | null>(null);
  el.addEventListener(
    PIECES,
    (event) => {
      pieces.value = (event as CustomEvent<Pieces>).detail;
    },
    { signal },
  );
  /** What was looked at takes the place of the advice; this gives it back. */
  const backToAdvice = () => {
    focus.value = null;
    gap.value = null;
  };
  el.addEventListener(
    SHOW,
    (event) => {
      const { detail } = event as CustomEvent<Evidence | null>;
      reveal = ""; // the timeline is what comes into view
      if (detail) showing.show(detail);
      else showing.back();
    },
    { signal },
  );

  const sharing = shareItems(rpc, () => header.value[0]?.value ?? "");
  const shareByName: Choice[] = sharing.map(({ label, hint, keywords, done, run }) => ({
    group: "Share",
    label,
    detail: hint,
    keywords,
    run: async () => {
      const task = { progress: () => {}, signal };
      try {
        await run(task);
        told.value = { text: `${label}: ${done.toLowerCase()}.`, actions: [] };
      } catch (error) {
        told.value = {
          text: `${label} failed: ${error instanceof Error ? error.message : error}`,
          actions: [],
        };
      }
    },
  }));
  const commands: Choice[] = [
    ...(frozen ? [] : shareByName),
    ...(frozen ? [] : historyCommands(rpc)),
    { group: "Commands", label: "Select the whole job", run: selectAll },
    { group: "Commands", label: "Show all time", run: () => showWhole(showing.timeline) },
    { group: "Commands", label: "Fill the window", run: filling.toggle },
    { group: "Commands", label: "Tour: what is where", run: () => tour.begin() },
    { group: "Commands", label: "Keys and gestures", run: () => openHelp(el) },
  ];
  const launching = choicesOf({
    panels: () => available.value,
    relevant: () => relevant.value ?? [],
    lacking: () => lacking.value ?? {},
    ranks: () => choices.value?.ranks ?? [],
    iterations: () => choices.value?.iterations ?? [],
    commands,
    rpc,
    open: openPanel,
    select: (name, value) => {
      selected[name].value = value as never;
    },
  });
  bindLauncher(el, launching, signal);

  const panelSlot = (kind: string, ref: string) => (
    <PanelSlot
      key={ref}
      {...{ ref_: ref, kind, host, signal }}
      label={available.value.find((entry) => entry.kind === kind)?.label ?? kind}
      wide={available.value.some((entry) => entry.kind === kind && entry.wide)}
      reveal={kind === reveal}
      close={() => {
        panels.value = panels.value.filter((other) => other !== kind);
        el.querySelector<HTMLElement>(`.hta-panel-bar [data-kind="${kind}"]`)?.focus();
      }}
    />
  );
  const slots = (areas: readonly string[]) =>
    parts.value
      .filter(([area]) => areas.includes(area))
      .sort(([one], [other]) => areas.indexOf(one) - areas.indexOf(other))
      .map(([area, ref]) => <Slot key={ref} {...{ area, ref_: ref, host, signal }} />);

  function Explorer() {
    // a closed panel goes at once, before Python has taken its part away, and in a report without Python
    const shown = parts.value
      .filter(([area, , kind]) => area === "panel" && panels.value.includes(kind ?? ""))
      .sort(([, , one = ""], [, , other = ""]) => panels.value.indexOf(one) - panels.value.indexOf(other));
    return (
      <article class="hta-explorer" aria-busy={status.value === "busy"}>
        <Loading {...loading} />
        {parts.value.length > 0 && (
          <>
            <header class="hta-header">
              <Facts facts={header.value}>
                {!frozen && clocks.value?.length > 0 && <ClockChoice clocks={clocks.value} clock={clock} />}
              </Facts>
              <Health rows={health.value} counted={frozen ? null : communication} rules={rules.value} />
              <span class="hta-tools">
                {!tour.known.value && (
                  <Button class="hta-tour" title="What is where, in five steps" onClick={() => tour.begin()}>
                    Tour
                  </Button>
                )}
                <Button
                  aria-label="Go to"
                  aria-keyshortcuts="/ Control+K"
                  title="Go to any panel, event name, rank or iteration (/ or Ctrl+K)"
                  onClick={() => openLauncher(el, launching)}
                >
                  Go to <span class="hta-key">/</span>
                </Button>
                {!frozen && <Menu label="Share" items={sharing} />}
                <Button
                  class="hta-icon"
                  aria-label="Fill the window"
                  aria-pressed={filling.filled.value}
                  title="Fill the window (Esc ends it)"
                  onClick={filling.toggle}
                >
                  <svg viewBox="0 0 16 16" aria-hidden="true">
                    <path d="M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4" />
                  </svg>
                </Button>
              </span>
            </header>
            {pieces.value && <pieces.value.Scope />}
            <div class="hta-parts" data-findings={available.value.some(({ kind }) => kind === "overview")}>
              {slots(["story"])}
              {loading.notices.value.length > 0 && (
                <div class="hta-notices">
                  <Notices {...loading} />
                </div>
              )}
              <div class="hta-controls">{slots(CONTROLS)}</div>
              <div class="hta-stage">
                {slots(STAGE.slice(0, 1))}
                <Splitter edge={INSPECTOR} size={inspectorWidth} />
                <div class="hta-aside">
                  {!frozen && (
                    <Button class="hta-quiet hta-to-advice" onClick={backToAdvice}>
                      ‹ Findings
                    </Button>
                  )}
                  {slots(STAGE.slice(1))}
                  {pieces.value && <pieces.value.Advice />}
                </div>
              </div>
              <div class="hta-panels">
                <PanelBar
                  available={available.value}
                  relevant={relevant.value ?? []}
                  lacking={lacking.value ?? {}}
                  shown={panels}
                  opened={(kind) => {
                    reveal = kind;
                  }}
                  launch={() => openLauncher(el, launching)}
                />
                {shown.map(([, ref, kind = ""]) => panelSlot(kind, ref))}
                {panels.value.length === 0 && <p class="hta-muted">No panel is open: choose one above.</p>}
              </div>
            </div>
            <Toast told={told} />
          </>
        )}
      </article>
    );
  }
  draw(<Explorer />, el, signal);
};

function showWhole(timeline: Timeline | undefined): void {
  if (timeline) timeline.look({ t0: timeline.bounds[0], t1: timeline.bounds[1] });
}

/** What needs no word before it. */
const PLAIN = ["Job", "Device", "Recording", "Duration"];

/** `4`, `17,060` or `2 of 128`, which stand before their word; others stand behind it. */
const COUNT = /^[\d,]+( of \d+)?$/;

function Word({ label, value }: Pick<Fact, "label" | "value">) {
  const word = label.toLowerCase();
  return (
    <span class={PLAIN.includes(label) ? "hta-hidden" : "hta-muted"}>
      {value === "1" ? word.replace(/s$/, "") : word}
    </span>
  );
}

/** The job in a line; the children stand at the number of iterations. */
function Facts({ facts, children }: { facts: Fact[]; children: ComponentChildren }) {
  return (
    <ul class="hta-facts">
      {facts.map(({ label, value, title }) => (
        <li key={label} title={title ? `${label}: ${title}` : label}>
          {!COUNT.test(value) && <Word {...{ label, value }} />} <strong>{value}</strong>
          {COUNT.test(value) && (
            <>
              {" "}
              <Word {...{ label, value }} />
            </>
          )}
          {label === "Iterations" && children}
        </li>
      ))}
    </ul>
  );
}

/** What times the iterations: the host that announces them, or the device that runs their work. */
function ClockChoice({ clocks, clock }: { clocks: string[]; clock: Signal<string> }) {
  return (
    <select
      class="hta-clock hta-quiet"
      aria-label="What times the iterations"
      title="What times the iterations: the host that announces them, the device that runs their work, or whichever fits each rank"
      value={clock.value}
      onChange={(event) => {
        clock.value = event.currentTarget.value;
      }}
    >
      {clocks.map((name) => (
        <option key={name} value={name}>
          clock: {name === "auto" ? "automatic" : name}
        </option>
      ))}
    </select>
  );
}

/** A panel with a way to close it. */
function PanelSlot({
  kind,
  label,
  wide,
  reveal,
  close,
  ...slot
}: Omit<SlotProps, "area"> & { kind: string; label: string; wide: boolean; reveal: boolean; close(): void }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (reveal && place.current) revealed(place.current, slot.signal);
  }, [reveal]);
  return (
    <div ref={place} class="hta-panel" data-kind={kind} data-wide={wide}>
      <Slot area="panel" {...slot} />
      <Button
        class="hta-quiet hta-close"
        aria-label={`${label}: close panel`}
        title="Close panel"
        onClick={close}
      >
        ×
      </Button>
    </div>
  );
}
