// Lets a part fill the window, or the screen where the browser allows that; Escape ends it.

import { signal as makeSignal, type ReadonlySignal } from "@preact/signals";
import { consume, onAbort } from "./page";

export interface Filling {
  filled: ReadonlySignal<boolean>;
  toggle(): void;
}

export function fillingOf(el: HTMLElement, signal: AbortSignal): Filling {
  const filled = makeSignal(false);
  const set = (on: boolean) => {
    filled.value = on;
    el.toggleAttribute("data-filled", on);
  };
  // a shadow tree knows its own
  const onScreen = () => (el.getRootNode() as Document | ShadowRoot).fullscreenElement === el;
  const leave = () => {
    if (onScreen()) void document.exitFullscreen();
    set(false);
  };
  el.addEventListener("fullscreenchange", () => set(onScreen()), { signal });
  el.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !filled.value || onScreen()) return;
      consume(event);
      leave();
    },
    { signal },
  );
  onAbort(signal, leave);
  const enter = () => {
    set(true);
    // a page may forbid the screen to a frame; the window is filled all the same
    el.requestFullscreen?.().catch(() => undefined);
  };
  return { filled, toggle: () => (filled.value ? leave() : enter()) };
}
