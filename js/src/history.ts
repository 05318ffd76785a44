// Undo and redo from the keyboard, while the focus is inside a part.

import { consume } from "./page";
import type { Rpc } from "./rpc";

/** Whether a key goes to a text field. */
export function isTyping(event: Event): boolean {
  const target = event.composedPath()[0];
  return (
    target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"))
  );
}

/** Ctrl/Cmd+Z and Shift+Ctrl/Cmd+Z (or Ctrl+Y) undo and redo the selection; the notebook does not see the keys. */
export function bindUndo(el: HTMLElement, rpc: Rpc, signal: AbortSignal): void {
  el.addEventListener(
    "keydown",
    (event) => {
      const method = methodOf(event);
      if (!method || isTyping(event)) return;
      consume(event);
      requestStep(rpc, method);
    },
    { signal },
  );
}

/** The answer is not awaited: the traits show what happened. */
export function requestStep(rpc: Rpc, method: "undo" | "redo"): void {
  rpc.call(method).catch(() => undefined);
}

function methodOf(event: KeyboardEvent): "undo" | "redo" | undefined {
  if (event.altKey || !(event.ctrlKey || event.metaKey)) return undefined;
  const key = event.key.toLowerCase();
  if (key === "z") return event.shiftKey ? "redo" : "undo";
  return key === "y" && !event.shiftKey ? "redo" : undefined;
}
