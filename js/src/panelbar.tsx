// The bar of panels: what there is, in groups; a button shows or hides its panel.

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

export interface PanelBarProps {
  available: readonly Entry[];
  /** the kinds shown, in the order they were opened */
  shown: Signal<string[]>;
  /** called with the kind that was opened by hand */
  opened(kind: string): void;
}

export function PanelBar({ available, shown, opened }: PanelBarProps) {
  const root = useRef<HTMLDivElement>(null);
  // Roving tabindex: one stop for Tab, arrows inside.
  const [current, setCurrent] = useState<string | undefined>(available[0]?.kind);
  const groups = [...new Set(available.map((entry) => entry.group))].map((group) => ({
    group,
    entries: available.filter((entry) => entry.group === group),
  }));

  const toggle = (kind: string) => {
    setCurrent(kind);
    if (shown.value.includes(kind)) shown.value = shown.value.filter((other) => other !== kind);
    else {
      shown.value = [...shown.value, kind];
      opened(kind);
    }
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (combined(event)) return;
    const at = available.findIndex((entry) => entry.kind === current);
    const to = step(event.key, at, available.length, 1);
    const next = to === undefined ? undefined : available[Math.max(0, Math.min(available.length - 1, to))];
    if (!next) return;
    consume(event);
    setCurrent(next.kind);
    root.current?.querySelector<HTMLElement>(`[data-kind="${next.kind}"]`)?.focus();
  };

  return (
    <div ref={root} class="hta-panel-bar" role="toolbar" aria-label="Panels" onKeyDown={onKeyDown}>
      {groups.map(({ group, entries }) => (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
        <div key={group} class="hta-panel-group" role="group" aria-label={group}>
          {entries.some((entry) => entry.label !== group) && (
            <span class="hta-muted" aria-hidden="true">
              {group}
            </span>
          )}
          {entries.map(({ kind, label, title }) => (
            <Button
              key={kind}
              data-kind={kind}
              title={title}
              tabIndex={kind === current ? 0 : -1}
              aria-pressed={shown.value.includes(kind)}
              onClick={() => toggle(kind)}
            >
              {label}
            </Button>
          ))}
        </div>
      ))}
    </div>
  );
}
