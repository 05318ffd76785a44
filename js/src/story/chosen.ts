// Which finding is shown, and which of its places: by click, by the keys, one after the other.

import { signal as makeSignal, type Signal } from "@preact/signals";
import { isTyping } from "../history";
import { consume } from "../page";
import { combined } from "../shared";

export interface Chosen {
  /** the number of the finding whose place is shown; -1 for none */
  shown: Signal<number>;
  /** the number of that place */
  place: Signal<number>;
  toggle: (finding: number) => void;
  /** goes through the places of the finding that is read */
  step: (by: 1 | -1) => void;
}

/**
 * Digits open findings, "," and "." go through the places of one, Escape goes back.
 *
 * `places`: of each finding, how many it has.
 */
export function choosesPlaces(
  el: HTMLElement,
  shown: Signal<number>,
  places: () => number[],
  signal: AbortSignal,
): Chosen {
  const place = makeSignal(0);
  const toggle = (finding: number) => {
    place.value = 0;
    shown.value = shown.value === finding ? -1 : finding;
  };
  const step = (by: 1 | -1) => {
    const at = Math.max(0, shown.value);
    const many = places()[at] ?? 0;
    if (!many) return;
    if (shown.value < 0) toggle(at);
    else place.value = (place.value + by + many) % many;
  };
  const key = (event: KeyboardEvent) => {
    if (combined(event) || isTyping(event)) return;
    const number = /^[1-9]$/.test(event.key) ? Number(event.key) - 1 : -1;
    if (number >= 0 && number < places().length) toggle(number);
    else if (event.key === "," || event.key === ".") step(event.key === "." ? 1 : -1);
    else if (event.key === "Escape" && shown.value >= 0) toggle(shown.value);
    else return;
    consume(event);
  };
  const root = el.closest<HTMLElement>(".hta-explorer") ?? el;
  root.addEventListener("keydown", key, { signal });
  return { shown, place, toggle, step };
}
