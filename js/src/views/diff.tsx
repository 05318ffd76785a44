// DiffViewer: what differs between runs. It shows the runs by letter, the panels that compare them, and their
// timelines, which move together.

import { effect, signal as makeSignal, type Signal } from "@preact/signals";
import { Button } from "../button";
import { bindHelp, comparison, openHelp } from "../help";
import { Loading, loads, Notices } from "../loading";
import { type Host, trait, type View } from "../model";
import { OPEN } from "../notes";
import { onAbort } from "../page";
import { revealed } from "../reveal";
import { type Run, RunName } from "../runs";
import { draw } from "../shared";
import { Framing, MARK } from "../showing";
import { Slot } from "../slot";
import { StateNotice } from "../state";
import { announceView } from "../static_preview";
import { type AnchorsLayout, decodeAnchors } from "../timeline/aligned";
import { BUILT, bindLock } from "../timeline/linking";
import { Lock } from "../timeline/lock";
import type { Timeline } from "../timeline/timeline";
import type { RunMark } from "./run_story";

/** Where a part goes, which widget it is, and which kind of panel, or whose timeline. */
type Placed = [area: string, ref: string, kind: string];
type Align = "step" | "op";

const ALIGN: Record<Align, string> = { step: "step", op: "operator" };

export const diff: View = ({ model, el, signal, host }) => {
  const loading = loads(model, signal);
  const { status, rpc } = loading;
  const runs = trait<Run[]>(model, "runs", signal);
  const headline = trait<string>(model, "headline", signal);
  const parts = trait<Placed[]>(model, "parts", signal);
  const locked = trait<boolean>(model, "locked", signal);
  const align = trait<Align>(model, "align", signal);
  const line = trait<[kind: string, line: string] | null>(model, "line", signal);
  const pairing = trait<number>(model, "pairing", signal);
  const unaligned = makeSignal("");

  const lock = new Lock(
    async (run, { t0, t1 }, requestSignal) => {
      // `align` is sent along: the request may reach the kernel before the trait does
      const view = { run, t0: Math.round(t0), t1: Math.round(t1), align: align.peek() };
      const answer = await rpc.call<AnchorsLayout>("anchors", view, { signal: requestSignal });
      return decodeAnchors(answer, run, (t0 + t1) / 2);
    },
    (why) => {
      unaligned.value = why;
    },
  );
  const runOf = (from: Element) =>
    Number(from.closest<HTMLElement>(".hta-run-timeline")?.dataset.run ?? Number.NaN);
  bindLock(el, lock, runOf, signal);
  const framed = new Map<string, Framing>();
  el.addEventListener(
    BUILT,
    (event) => {
      const target = event.target as Element;
      const run = runs.value[runOf(target)];
      if (!run) return;
      const framing = new Framing(() => target.closest(".hta-run-timeline"));
      framing.timeline = (event as CustomEvent<Timeline>).detail;
      framed.set(run.name, framing);
    },
    { signal },
  );
  el.addEventListener(
    MARK,
    (event) => {
      const mark = (event as CustomEvent<RunMark | null>).detail;
      for (const [run, one] of framed) if (run !== mark?.run) one.mark(null);
      if (mark) framed.get(mark.run)?.mark(mark);
    },
    { signal },
  );
  el.addEventListener(
    OPEN,
    (event) => {
      const kind = (event as CustomEvent<string>).detail;
      const panel = el.querySelector<HTMLElement>(`.hta-panel[data-kind="${kind}"]`);
      if (panel) revealed(panel, signal);
    },
    { signal },
  );
  const frozen = model.get("frozen") === true;
  const keys = comparison(frozen);
  bindHelp(el, signal, keys);
  announceView(model, el, signal);
  const effects = [
    effect(() => lock.set(locked.value)),
    effect(() => {
      void [align.value, pairing.value, runs.value];
      lock.forget();
    }),
  ];
  for (const dispose of effects) onAbort(signal, dispose);

  function Diff() {
    const first = parts.value.findIndex(([area]) => area === "timeline");
    const panels = (from: number, to?: number) => {
      const placed = parts.value.slice(from, to).filter(([area]) => area === "panel");
      return placed.length > 0 && <Panels {...{ placed, host, signal }} />;
    };
    const timelines = parts.value.filter(([area]) => area === "timeline");
    const stories = parts.value.filter(([area]) => area === "story");
    return (
      <article class="hta-explorer hta-diff" aria-busy={status.value === "busy"}>
        <Loading {...loading} />
        {runs.value.length > 0 && (
          <ul class="hta-runs" aria-label="Runs that are compared">
            {runs.value.map((run, at) => (
              <li key={run.name}>
                <RunName run={run} at={at} />
                {at === 0 && <span class="hta-muted">compared with</span>}
              </li>
            ))}
          </ul>
        )}
        {headline.value && <h2 aria-live="polite">{headline.value}</h2>}
        {stories.map(([area, ref]) => (
          <Slot key={ref} {...{ area, ref_: ref, host, signal }} />
        ))}
        <Notices {...loading} />
        {panels(0, first < 0 ? undefined : first)}
        {timelines.length > 0 && (
          <section aria-label="Timelines">
            <LockBar {...{ locked, align, unaligned }} help={() => openHelp(el, keys)} />
            {line.value && <Highlight {...{ line, frozen }} />}
            {status.value === "idle" && <StateNotice {...loading} />}
            {timelines.map(([area, ref, name]) => {
              const at = runs.value.findIndex((run) => run.name === name);
              const run = runs.value[at] ?? { name, detail: "" };
              return <RunTimeline key={ref} {...{ area, ref_: ref, run, at, host, signal }} />;
            })}
          </section>
        )}
        {first >= 0 && panels(first)}
      </article>
    );
  }
  draw(<Diff />, el, signal);
};

function Panels({ placed, host, signal }: { placed: Placed[]; host: Host; signal: AbortSignal }) {
  return (
    <div class="hta-parts">
      {placed.map(([area, ref, kind]) => (
        <div key={ref} class="hta-panel" data-kind={kind} data-wide="true">
          <Slot {...{ area, ref_: ref, host, signal }} />
        </div>
      ))}
    </div>
  );
}

interface LockBarProps {
  locked: Signal<boolean>;
  align: Signal<Align>;
  /** why only the steps' starts stand below each other */
  unaligned: Signal<string>;
  help(): void;
}

function LockBar({ locked, align, unaligned, help }: LockBarProps) {
  return (
    <div class="hta-bar hta-lock">
      <h3>Timelines</h3>
      <Button
        aria-pressed={locked.value}
        title="Move all timelines together: one scale, one cursor"
        onClick={() => {
          locked.value = !locked.value;
        }}
      >
        Lock timelines
      </Button>
      <label class="hta-form">
        align by{" "}
        <select
          value={align.value}
          disabled={!locked.value}
          onChange={(event) => {
            align.value = event.currentTarget.value as Align;
          }}
        >
          {Object.entries(ALIGN).map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <span class="hta-muted hta-grow" role="status">
        {locked.value && unaligned.value && `Only the starts of steps are aligned: ${unaligned.value}`}
      </span>
      <Button aria-label="Keys and gestures" title="Keys and gestures (?)" onClick={help}>
        ?
      </Button>
    </div>
  );
}

/** Which line's events stand out: its table may be out of sight. */
function Highlight({ line, frozen }: { line: Signal<[kind: string, line: string] | null>; frozen: boolean }) {
  const name = line.value?.[1];
  return (
    <div class="hta-bar hta-highlighted">
      <span class="hta-muted hta-cut" title={name}>
        Highlight up: {name}
      </span>
      {!frozen && (
        <Button
          class="hta-icon hta-quiet"
          aria-label="Let the line go"
          title="Let the line go"
          onClick={() => {
            line.value = null;
          }}
        >
          ×
        </Button>
      )}
    </div>
  );
}

interface RunTimelineProps {
  area: string;
  ref_: string;
  run: Run;
  /** its place among the runs */
  at: number;
  host: Host;
  signal: AbortSignal;
}

function RunTimeline({ run, at, ...slot }: RunTimelineProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    <div class="hta-run-timeline" role="group" aria-label={`Timeline of ${run.name}`} data-run={at}>
      <RunName run={run} at={at} />
      <Slot {...slot} />
    </div>
  );
}
