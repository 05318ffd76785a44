// Links the traits of one name, for each run on its own, as Python's Selection does for live parts.

import { signal as makeSignal, type ReadonlySignal } from "@preact/signals";
import type { Model } from "../model";

/** Which part of a job is shown: Python recomputes when these change, a report cannot. */
const SCOPE = ["ranks", "iterations", "window", "streams"];
const LINKED = [...SCOPE, "names", "query"];

export class FrozenSelection {
  #links: Link[] = [];
  #moved = makeSignal(false);

  constructor(models: readonly Model[]) {
    const runs = new Set(models.map(runOf));
    for (const run of runs) {
      const ofRun = models.filter((model) => runOf(model) === run);
      for (const name of LINKED) this.#link(name, ofRun);
    }
  }

  /** Whether something else is selected than what the figures are for. */
  get moved(): ReadonlySignal<boolean> {
    return this.#moved;
  }

  /** Select again what the figures are for. */
  restore(): void {
    for (const { name, first, start } of this.#links) if (SCOPE.includes(name)) first.set(name, start);
  }

  #link(name: string, models: readonly Model[]): void {
    const having = models.filter((model) => model.get(name) !== undefined);
    const [first] = having;
    if (!first) return;
    this.#links.push({ name, first, start: first.get(name) });
    for (const model of having) {
      model.on(`change:${name}`, () => {
        const value = model.get(name);
        for (const other of having) if (!same(other.get(name), value)) other.set(name, value);
        if (SCOPE.includes(name)) this.#moved.value = this.#links.some(differs);
      });
    }
  }
}

/** A trait that some parts share: one of them, and what was selected when it was saved. */
interface Link {
  name: string;
  first: Model;
  start: unknown;
}

function differs({ name, first, start }: Link): boolean {
  return SCOPE.includes(name) && !same(first.get(name), start);
}

/** The run of a timeline in a comparison. */
function runOf(model: Model): string {
  return model.get("run") ?? "";
}

/** Selected values are texts, or short lists of numbers or texts. */
function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
