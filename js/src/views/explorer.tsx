// TraceExplorer: the frame around the parts. It shows the loading, then the header, the parts that are always there, and
// a bar that opens and closes panels.

import { useEffect, useRef } from "preact/hooks";
import { Health, type HealthRow } from "../health";
import { bindHelp } from "../help";
import { bindUndo } from "../history";
import { type Host, trait, type View } from "../model";
import { OPEN } from "../notes";
import { type Entry, PanelBar } from "../panelbar";
import { Rpc } from "../rpc";
import { draw } from "../shared";
import type { Status } from "../state";

interface Fact {
  label: string;
  value: string;
  title: string;
}

interface Notice {
  severity: string;
  text: string;
}

/** Where a part goes, which widget it is, and which kind of panel. */
type Placed = [area: string, ref: string, kind?: string];

export const explorer: View = ({ model, el, signal, host }) => {
  const rpc = new Rpc(model, signal);
  const facts = trait<Fact[]>(model, "facts", signal);
  const health = trait<HealthRow[]>(model, "health", signal);
  const notices = trait<Notice[]>(model, "notices", signal);
  const parts = trait<Placed[]>(model, "parts", signal);
  const catalogue = trait<Entry[]>(model, "catalogue", signal);
  const panels = trait<string[]>(model, "panels", signal);
  const status = trait<Status>(model, "status", signal);
  const message = trait<string>(model, "message", signal);
  const progress = trait<number | null>(model, "progress", signal);
  // An answer, or none because the view is gone: the traits tell the rest.
  const ask = (method: string) => rpc.call(method).catch(() => undefined);

  bindUndo(el, rpc, signal);
  bindHelp(el, signal);
  // the panel that was just opened by hand comes into view; those opened from Python do not move the page
  let reveal = "";

  const open = (event: Event) => {
    const kind = catalogue.value.find((entry) => entry.kind === (event as CustomEvent).detail)?.kind;
    if (!kind) return;
    if (panels.value.includes(kind)) {
      el.querySelector(`.hta-panel[data-kind="${kind}"]`)?.scrollIntoView({ block: "nearest" });
    } else {
      reveal = kind;
      panels.value = [...panels.value, kind];
    }
  };
  el.addEventListener(OPEN, open, { signal });

  const panelSlot = (kind: string, ref: string) => (
    <PanelSlot
      key={ref}
      {...{ ref_: ref, kind, host, signal }}
      wide={catalogue.value.some((entry) => entry.kind === kind && entry.wide)}
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
    return (
      <article class="hta-explorer" aria-busy={status.value === "busy"}>
        {status.value === "busy" && (
          <Loading message={message.value} progress={progress.value} cancel={() => ask("cancel")} />
        )}
        {(status.value === "error" || status.value === "empty") && (
          <div class="hta-notice" role="alert" data-severity={status.value === "error" ? "error" : "info"}>
            <p>{message.value}</p>
            <button type="button" onClick={() => ask("load")}>
              {status.value === "error" ? "Try again" : "Load"}
            </button>
          </div>
        )}
        {parts.value.length > 0 && (
          <>
            <Header facts={facts.value} health={health.value} />
            {notices.value.map((notice) => (
              <p key={notice.text} class="hta-notice" data-severity={notice.severity}>
                {notice.text}
              </p>
            ))}
            <div class="hta-parts">
              {fixed.map(([area, ref]) => (
                <Slot key={ref} {...{ area, ref_: ref, host, signal }} />
              ))}
              <PanelBar
                catalogue={catalogue.value}
                shown={panels}
                opened={(kind) => {
                  reveal = kind;
                }}
              />
              {shown.map(([, ref, kind = ""]) => panelSlot(kind, ref))}
              {panels.value.length === 0 && <p class="hta-muted">No panel is shown: choose one above.</p>}
            </div>
          </>
        )}
      </article>
    );
  }
  draw(<Explorer />, el, signal);
};

function Loading({
  message,
  progress,
  cancel,
}: {
  message: string;
  progress: number | null;
  cancel(): void;
}) {
  const known = progress !== null;
  return (
    <div class="hta-loading">
      <div class="hta-bar">
        <span class="hta-grow" role="status">
          {message}
        </span>
        <button type="button" onClick={cancel}>
          Cancel
        </button>
      </div>
      <div
        class="hta-progress"
        role="progressbar"
        aria-label="Loading"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={known ? Math.round(100 * progress) : undefined}
        data-unknown={known ? undefined : ""}
      >
        <div style={known ? { width: `${100 * progress}%` } : undefined} />
      </div>
    </div>
  );
}

function Header({ facts, health }: { facts: Fact[]; health: HealthRow[] }) {
  return (
    <header class="hta-header">
      <ul class="hta-facts">
        {facts.map((fact) => (
          <li key={fact.label} title={fact.title}>
            <span class="hta-fact-label">{fact.label}</span>
            <strong>{fact.value}</strong>
          </li>
        ))}
      </ul>
      <Health rows={health} />
    </header>
  );
}

interface SlotProps {
  area: string;
  ref_: string;
  host: Host;
  signal: AbortSignal;
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
      <button
        type="button"
        class="hta-quiet hta-close"
        aria-label="Close panel"
        title="Close panel"
        onClick={close}
      >
        ×
      </button>
    </div>
  );
}

/** A place for another widget: the host finds it by reference and draws it here until the explorer is taken down. */
function Slot({ area, ref_, host, signal }: SlotProps) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const controller = new AbortController();
    const stop = () => controller.abort();
    signal.addEventListener("abort", stop, { once: true });
    host
      .getWidget(ref_, { signal: controller.signal })
      .then(async (widget) => {
        if (place.current && !controller.signal.aborted) {
          await widget.render({ el: place.current, signal: controller.signal });
        }
      })
      .catch((error: unknown) => {
        if (place.current && !controller.signal.aborted)
          place.current.textContent = `This part failed: ${error}`;
      });
    return () => {
      signal.removeEventListener("abort", stop);
      controller.abort();
    };
  }, [ref_, host, signal]);
  return <div ref={place} class="hta-slot" data-area={area} />;
}
