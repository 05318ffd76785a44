// What keeps its colour while the rest fades: slices chosen by name, and the critical path.

import { type Choice, choiceOf, type Found } from "./matches";
import type { CriticalPath } from "./path";
import type { Source } from "./source";
import type { Outline } from "./types";

export class Highlight {
  /** null if no slices are chosen */
  choice: Choice | null = null;
  /** null until they are counted */
  found: Found | null = null;
  path: CriticalPath | null = null;
  #names: readonly string[] = [];
  #query = "";

  constructor(
    private readonly outline: Outline,
    private readonly source: Source,
    private readonly changed: () => void,
    private readonly counted: (found: Found | null) => void,
  ) {}

  /** Choose the slices of some ranks that have one of the names and hold the query. */
  async named(names: readonly string[], query: string, ranks: readonly number[]): Promise<void> {
    this.#names = names;
    this.#query = query;
    const choice = choiceOf(this.outline, names, query, ranks);
    if (!choice && !this.choice) return;
    this.choice = choice;
    this.found = null;
    const answer = this.source.choose(choice);
    this.changed();
    const found = await answer.catch(() => null); // the view or the kernel is gone
    if (this.choice !== choice) return;
    this.found = choice && found;
    this.counted(this.found);
    this.changed();
  }

  /** The same choice among other ranks. */
  among(ranks: readonly number[]): Promise<void> {
    return this.named(this.#names, this.#query, ranks);
  }

  show(path: CriticalPath | null): void {
    this.path?.levels.drop();
    this.path = path;
    this.changed();
  }
}
