// A line at the bottom of what is visible: what has changed elsewhere, with a way there or back.

import type { Signal } from "@preact/signals";
import { Button } from "./button";

export interface Told {
  text: string;
  actions: { label: string; run(): void }[];
}

/** The place is always there: a live region must exist before its words do. */
export function Toast({ told }: { told: Signal<Told | null> }) {
  const { value } = told;
  return (
    <div class="hta-toast" role="status" aria-live="polite">
      {value && (
        <div>
          <span>{value.text}</span>
          {value.actions.map(({ label, run }) => (
            <Button key={label} onClick={run}>
              {label}
            </Button>
          ))}
          <Button
            class="hta-quiet"
            aria-label="Dismiss"
            title="Dismiss"
            onClick={() => {
              told.value = null;
            }}
          >
            ×
          </Button>
        </div>
      )}
    </div>
  );
}

/** Whether some of an element is visible, or it has no size to be seen. */
export function inSight(el: Element | null): boolean {
  if (!el) return true;
  const { top, bottom } = el.getBoundingClientRect();
  if (top === bottom) return true;
  for (let at = el.parentElement; at; at = at.parentElement) {
    if (!/auto|scroll/.test(getComputedStyle(at).overflowY)) continue;
    const frame = at.getBoundingClientRect();
    if (bottom <= frame.top || top >= frame.bottom) return false;
  }
  return bottom > 0 && top < innerHeight;
}
