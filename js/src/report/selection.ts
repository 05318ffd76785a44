// What Python's Selection does for live parts: traits of one name move together.

import { signal as makeSignal, type ReadonlySignal } from "@preact/signals";
import type { Model } from "../model";

/** What a part of a job is looked at: Python computes anew when these change, a report cannot. */
const SCOPE = ["ranks", "iterations", "window", "streams"];
const LINKED = [...SCOPE, "names", "query"];

export class FrozenSelection {
  #start = new Map<string, unknown>();
  #moved = makeSignal(false);

  constructor(private readonly models: readonly Model[]) {
    for (const name of LINKED) this.#link(name);
  }

  /** Whether something else is selected than what the figures are for. */
  get moved(): ReadonlySignal<boolean> {
    return this.#moved;
  }

  /** Select again what the figures are for. */
  restore(): void {
    for (const name of SCOPE) {
      const [model] = this.#having(name);
      model?.set(name, this.#start.get(name));
    }
  }

  #link(name: string): void {
    const having = this.#having(name);
    const [first] = having;
    if (!first) return;
    this.#start.set(name, first.get(name));
    for (const model of having) {
      model.on(`change:${name}`, () => {
        const value = model.get(name);
        for (const other of having) if (!same(other.get(name), value)) other.set(name, value);
        if (SCOPE.includes(name)) this.#moved.value = SCOPE.some((one) => this.#differs(one));
      });
    }
  }

  #having(name: string): Model[] {
    return this.models.filter((model) => model.get(name) !== undefined);
  }

  #differs(name: string): boolean {
    const [model] = this.#having(name);
    return model !== undefined && !same(model.get(name), this.#start.get(name));
  }
}

/** Selected values are texts, or short lists of numbers or texts. */
function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
