// A button that opens a list of counters to choose from.

import { type Signal, signal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Button } from "../button";
import { consume } from "../page";
import { visible } from "../visible";
import type { Counters } from "./counters";

export interface CounterMenuProps {
  counters: Counters;
  /** names of those that are drawn */
  chosen: Signal<string[] | undefined>;
  /** learn which there are */
  ask(): void;
}

export function CounterMenu({ counters, chosen, ask }: CounterMenuProps) {
  const open = useMemo(() => signal(false), []);
  const root = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    if (open.value) ask();
  }, [open.value]);
  const names = chosen.value ?? [];
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys of the list inside
    <span
      ref={root}
      class="hta-menu"
      onFocusOut={(event) => {
        if (event.relatedTarget && !root.current?.contains(event.relatedTarget as Node)) open.value = false;
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !open.value) return;
        consume(event);
        open.value = false;
        root.current?.querySelector<HTMLElement>("button")?.focus();
      }}
    >
      <Button
        title="Queue lengths, memory, bandwidth and what the recording counts, over time under the lanes"
        aria-expanded={open.value}
        aria-pressed={names.length > 0}
        onClick={() => {
          open.value = !open.value;
        }}
      >
        Counters
      </Button>
      {open.value && (
        <fieldset class="hta-timeline-counters" aria-label="Counters">
          {choices(counters, names).map((name) => (
            <label key={name}>
              <input
                type="checkbox"
                checked={names.includes(name)}
                onChange={(event) => {
                  const others = names.filter((one) => one !== name);
                  chosen.value = event.currentTarget.checked ? [...others, name] : others;
                }}
              />
              {visible(name)}
            </label>
          ))}
          <p role="status" class="hta-muted">
            {counters.known.value === null ? "Looking for counters…" : counters.missing.value}
          </p>
        </fieldset>
      )}
    </span>
  );
}

/** What there is, and what was chosen on other ranks. */
function choices(counters: Counters, names: readonly string[]): string[] {
  return [...new Set([...(counters.known.value ?? []).map(({ name }) => name), ...names])];
}
