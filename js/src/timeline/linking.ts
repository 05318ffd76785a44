// How timelines and the view that locks them find each other: events that bubble up the page.

import type { Linked, Lock } from "./lock";

/** `detail`: the timeline, which can be moved from outside from now on. */
export const BUILT = "hta-timeline-built";
/** The timeline moved by itself, not because another one leads it. */
export const MOVED = "hta-timeline-moved";
/** `detail`: the time under the pointer, or null. */
export const POINTED = "hta-timeline-pointed";

export function dispatch(el: HTMLElement, event: string, detail?: unknown): void {
  el.dispatchEvent(new CustomEvent(event, { detail, bubbles: true, composed: true }));
}

/** Lock the timelines inside `el`; `runOf` gives the run whose timeline sent an event, or NaN. */
export function bindLock(
  el: HTMLElement,
  lock: Lock,
  runOf: (from: Element) => number,
  signal: AbortSignal,
): void {
  const on = (event: string, act: (run: number, detail: unknown) => void) =>
    el.addEventListener(
      event,
      (received) => {
        const run = runOf(received.target as Element);
        if (run >= 0) act(run, (received as CustomEvent).detail);
      },
      { signal },
    );
  on(BUILT, (run, timeline) => lock.add(run, timeline as Linked));
  on(MOVED, (run) => lock.moved(run));
  on(POINTED, (run, t) => lock.pointed(run, t as number | null));
}
