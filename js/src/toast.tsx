// A line at the bottom of what is visible: what an action has just done, with a way back; gone after five seconds.

import type { Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "./button";

export interface Told {
  text: string;
  actions: { label: string; run(): void }[];
  /** until it is answered: a step of the tour */
  stays?: boolean;
}

const SHOWN_MS = 5000;

/** The place is always there: a live region must exist before its words do. */
export function Toast({ told }: { told: Signal<Told | null> }) {
  const { value } = told;
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!value || value.stays) return undefined;
    // not while somebody is about to answer
    const gone = setInterval(() => {
      if (place.current?.matches(":hover, :focus-within")) return;
      if (told.peek() === value) told.value = null;
    }, SHOWN_MS);
    return () => clearInterval(gone);
  }, [value]);
  return (
    <div ref={place} class="hta-toast" role="status" aria-live="polite">
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
