// What a view saves in a notebook besides the traits that Python knows: it stands in where no kernel runs.

import type { Model } from "./model";

/**
 * Save with the model, under a name that Python does not know, what `read` gives then. It is read as the model is written:
 * what is saved is what is on display, and until then nothing is spent on it.
 */
export function keep(model: Model, name: string, read: () => unknown): void {
  model.set(name, {
    get saved() {
      return read();
    },
  });
}

/** What was saved under the name, if the model came from a notebook (see ended.ts). */
export function kept<T>(model: Model, name: string): T | undefined {
  return model.get("silent") ? model.get(name)?.saved : undefined;
}
