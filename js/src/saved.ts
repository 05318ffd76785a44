// State that a view saves in a notebook besides its traits, to be shown where no kernel runs.

import type { Model } from "./model";
import { onAbort } from "./page";

/**
 * Save the result of `read` with the model, under a name that Python does not know. `read` is called when the model is
 * serialised: what is saved is what is on display, and it costs nothing until then.
 *
 * A host may keep a closed model as long as its page lives, so what the model keeps lets go of the view with `signal`.
 */
export function saveState(model: Model, name: string, read: () => unknown, signal: AbortSignal): void {
  let reading: (() => unknown) | undefined = read;
  onAbort(signal, () => {
    reading = undefined;
  });
  model.set(name, {
    get saved() {
      return reading?.();
    },
  });
}

/** What was saved under the name, if the model came from a notebook (see kernel_gone.ts). */
export function savedState<T>(model: Model, name: string): T | undefined {
  return model.get("no_kernel") ? model.get(name)?.saved : undefined;
}
