// The bar of panels: those that matter for this recording and those that are open; a button shows or hides its panel.
// All others are found by the launcher, and what cannot answer here lies in a fold with its reason.

import type { Signal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import { Button } from "./button";
import { consume } from "./page";
import { step } from "./picker";
import { combined } from "./shared";

export interface Entry {
  kind: string;
  label: string;
  title: string;
  group: string;
  /** it takes a whole row */
  wide: boolean;
}

/** Few enough to stand side by side. */
const ALL_OF = 8;
const RELEVANT = 4;
/** There whatever was found, the job only if it has several ranks: all findings, a change's effect, each event. */
const ALWAYS = ["overview", "job", "what_if", "events"];

export interface PanelBarProps {
  available: readonly Entry[];
  /** the kinds that the findings point to, the first first */
  relevant: readonly string[];
  /** kinds that cannot answer here, and why */
  lacking: Readonly<Record<string, string>>;
  /** the kinds shown, in the order they were opened */
  shown: Signal<string[]>;
  /** called with the kind that was opened by hand */
  opened(kind: string): void;
  /** opens the launcher */
  launch(): void;
}

/** The entries group by group: first the groups, and in them the panels, that the findings point to. */
export function byRelevance(available: readonly Entry[], relevant: readonly string[]): Entry[] {
  const place = (kind: string) => {
    const at = relevant.indexOf(kind);
    return at < 0 ? relevant.length : at;
  };
  const groups = [...new Set(available.map((entry) => entry.group))].map((group) =>
    available
      .filter((entry) => entry.group === group)
      .sort((one, other) => place(one.kind) - place(other.kind)),
  );
  const first = (group: Entry[]) => place(group[0]?.kind ?? "");
  return groups.sort((one, other) => first(one) - first(other)).flat();
}

export function PanelBar({ available, relevant, lacking, shown, opened, launch }: PanelBarProps) {
  const root = useRef<HTMLDivElement>(null);
  // Roving tabindex: one stop for Tab, arrows inside.
  const [current, setCurrent] = useState("");
  const open = shown.value;
  // a button that was pressed stays, so that the focus does not lose it
  const seen = useRef<string[]>([]);
  seen.current = [...new Set([...seen.current, ...open])];
  const always = ALWAYS.filter((kind) => kind !== "job" || !(kind in lacking));
  const kinds = [...always.slice(0, 1), ...relevant.slice(0, RELEVANT), ...seen.current, ...always.slice(1)];
  const few = available.length <= ALL_OF;
  const entries = few
    ? available
    : [...new Set(kinds)].flatMap((kind) => available.find((entry) => entry.kind === kind) ?? []);
  const stops = [...entries.map(({ kind }) => kind), LAUNCH];
  const stop = stops.includes(current) ? current : stops[0];
  const without = available.filter(({ kind }) => kind in lacking);

  const toggle = (kind: string) => {
    setCurrent(kind);
    const before = shown.value;
    if (before.includes(kind)) shown.value = before.filter((other) => other !== kind);
    else {
      opened(kind);
      shown.value = [...before, kind];
    }
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (combined(event)) return;
    const to = step(event.key, stops.indexOf(stop ?? ""), stops.length, 1);
    const next = to === undefined ? undefined : stops[Math.max(0, Math.min(stops.length - 1, to))];
    if (!next) return;
    consume(event);
    setCurrent(next);
    root.current?.querySelector<HTMLElement>(`[data-kind="${next}"]`)?.focus();
  };

  return (
    <div class="hta-panels-head">
      <div ref={root} class="hta-panel-bar" role="toolbar" aria-label="Panels" onKeyDown={onKeyDown}>
        {entries.map(({ kind, label, title }) => (
          <Button
            key={kind}
            data-kind={kind}
            title={lacking[kind] ?? title}
            tabIndex={kind === stop ? 0 : -1}
            aria-pressed={open.includes(kind)}
            onClick={() => toggle(kind)}
          >
            {label}
          </Button>
        ))}
        <Button
          data-kind={LAUNCH}
          class="hta-launch"
          title="Go to any panel, event name, rank or iteration (/ or Ctrl+K)"
          aria-keyshortcuts="/ Control+K"
          tabIndex={stop === LAUNCH ? 0 : -1}
          onClick={launch}
        >
          {few ? "Go to…" : `All ${available.length} panels…`} <span class="hta-key">/</span>
        </Button>
      </div>
      {without.length > 0 && (
        <details class="hta-lacking">
          <summary class="hta-muted">
            {without.length} {without.length === 1 ? "panel" : "panels"} cannot answer here
          </summary>
          <dl>
            {without.map(({ kind, label }) => (
              <div key={kind} class="hta-help-entry">
                <dt>{label}</dt>
                <dd>{lacking[kind]}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
    </div>
  );
}

/** Stands for the launcher among the kinds. */
const LAUNCH = "launcher";
