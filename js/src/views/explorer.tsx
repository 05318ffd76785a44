// TraceExplorer: the frame around the parts. It shows the loading progress, then the header, the permanent parts, and a
// bar that opens and closes panels.

import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../button";
import { Health, type HealthRow } from "../health";
import { bindHelp } from "../help";
import { bindUndo } from "../history";
import { Loading, loads, Notices } from "../loading";
import { trait, type View } from "../model";
import { OPEN } from "../notes";
import { type Entry, PanelBar } from "../panelbar";
import { draw } from "../shared";
import { Slot, type SlotProps } from "../slot";
import { announceView } from "../static_preview";

interface Fact {
  label: string;
  value: string;
  title: string;
}

/** Where a part goes, which widget it is, and which kind of panel. */
type Placed = [area: string, ref: string, kind?: string];

/** What stands side by side where there is room. */
const STAGE = ["timeline", "inspector"];

/** The panel of what stands out in the job. */
const FINDINGS = "overview";

export const explorer: View = ({ model, el, signal, host }) => {
  const loading = loads(model, signal);
  const { status } = loading;
  const header = trait<Fact[]>(model, "header", signal);
  const health = trait<HealthRow[]>(model, "health", signal);
  const parts = trait<Placed[]>(model, "parts", signal);
  const available = trait<Entry[]>(model, "available_panels", signal);
  const panels = trait<string[]>(model, "panels", signal);
  const clock = trait<string>(model, "clock", signal);
  const clocks = trait<string[]>(model, "clocks", signal);
  const communication = trait<string[]>(model, "communication", signal);
  const rules = trait<string>(model, "rules", signal);
  const frozen = model.get("frozen") === true; // a report: no kernel computes anew

  bindUndo(el, loading.rpc, signal);
  bindHelp(el, signal);
  announceView(model, el, signal);
  // the panel that was just opened by hand comes into view; those opened from Python do not move the page
  let reveal = "";

  const open = (event: Event) => {
    const kind = available.value.find((entry) => entry.kind === (event as CustomEvent).detail)?.kind;
    if (!kind) return;
    if (panels.value.includes(kind)) {
      el.querySelector(`.hta-panel[data-kind="${kind}"]`)?.scrollIntoView({ block: "nearest" });
    } else {
      reveal = kind;
      panels.value = [...panels.value, kind];
    }
  };
  el.addEventListener(OPEN, open, { signal });

  const slot = ([area, ref]: Placed) => <Slot key={ref} {...{ area, ref_: ref, host, signal }} />;
  const panelSlot = (kind: string, ref: string) => (
    <PanelSlot
      key={ref}
      {...{ ref_: ref, kind, host, signal }}
      wide={available.value.some((entry) => entry.kind === kind && entry.wide)}
      reveal={kind === reveal}
      close={() => {
        panels.value = panels.value.filter((other) => other !== kind);
        el.querySelector<HTMLElement>(`.hta-panel-bar [data-kind="${kind}"]`)?.focus();
      }}
    />
  );

  function Explorer() {
    const fixed = parts.value.filter(([area]) => area !== "panel");
    // a closed panel goes at once, before Python has taken its part away, and in a report without Python
    const shown = parts.value.filter(
      ([area, , kind]) => area === "panel" && panels.value.includes(kind ?? ""),
    );
    // a report begins with what was found: who opens it may know nothing of the job yet
    const leading = shown.filter(([, , kind]) => frozen && kind === FINDINGS);
    const others = shown.filter((part) => !leading.includes(part));
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
            </header>
            <Notices {...loading} />
            <div class="hta-parts">
              {leading.map(([, ref, kind = ""]) => panelSlot(kind, ref))}
              {fixed.filter(([area]) => !STAGE.includes(area)).map(slot)}
              <div class="hta-stage">{fixed.filter(([area]) => STAGE.includes(area)).map(slot)}</div>
              <PanelBar
                available={available.value}
                shown={panels}
                opened={(kind) => {
                  reveal = kind;
                }}
              />
              {others.map(([, ref, kind = ""]) => panelSlot(kind, ref))}
              {panels.value.length === 0 && <p class="hta-muted">No panel is shown: choose one above.</p>}
            </div>
          </>
        )}
      </article>
    );
  }
  draw(<Explorer />, el, signal);
};

/** The children stand at the number of iterations. */
function Facts({ facts, children }: { facts: Fact[]; children: ComponentChildren }) {
  return (
    <ul class="hta-facts">
      {facts.map((fact) => (
        <li key={fact.label} title={fact.title}>
          <span class="hta-fact-label">{fact.label}</span>
          <span>
            <strong>{fact.value}</strong>
            {fact.label === "Iterations" && children}
          </span>
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
  wide,
  reveal,
  close,
  ...slot
}: Omit<SlotProps, "area"> & { kind: string; wide: boolean; reveal: boolean; close(): void }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (reveal) place.current?.scrollIntoView({ block: "nearest" });
  }, [reveal]);
  return (
    <div ref={place} class="hta-panel" data-kind={kind} data-wide={wide}>
      <Slot area="panel" {...slot} />
      <Button class="hta-quiet hta-close" aria-label="Close panel" title="Close panel" onClick={close}>
        ×
      </Button>
    </div>
  );
}
