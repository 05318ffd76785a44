// The states that every panel has besides its content: busy, empty, error.

import type { Signal } from "@preact/signals";

export type Status = "idle" | "busy" | "error" | "empty";

export interface State {
  status: Signal<Status>;
  message: Signal<string>;
}

/** The message shown instead of, or above, the content; nothing while all is well. */
export function StateNotice({ status, message }: State) {
  if (!message.value || status.value === "busy") return null;
  return (
    <p class="hta-notice" role="status" data-severity={status.value === "error" ? "error" : "info"}>
      {message.value}
    </p>
  );
}

/** Shown at once for screen readers, and to the eye only if it lasts: most answers are there before a blink. */
export function BusyMark({ status }: { status: Signal<Status> }) {
  if (status.value !== "busy") return null;
  return (
    <span class="hta-busy" role="status">
      computing…
    </span>
  );
}
