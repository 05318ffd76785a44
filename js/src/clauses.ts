// A selection as clauses in words: what the breadcrumb lists.

import type { Signal } from "@preact/signals";
import { duration, grouped } from "./format";
import { type Model, trait } from "./model";
import { ranges } from "./shared";
import { shortName } from "./timeline/labels";

export interface Selected {
  ranks: readonly number[];
  iterations: readonly number[];
  window: readonly [number, number] | null;
  streams: readonly number[];
  names: readonly string[];
  query: string;
}

export interface Clause {
  /** the trait that the clause describes */
  trait: keyof Selected;
  text: string;
  /** the same in full, for the tooltip */
  title: string;
}

/** What each trait is when it selects all. */
export const ALL: Selected = { ranks: [], iterations: [], window: null, streams: [], names: [], query: "" };

/** The traits of a part that select. */
export function selectedIn(
  model: Model,
  signal: AbortSignal,
): { [name in keyof Selected]: Signal<Selected[name]> } {
  const traits = Object.keys(ALL).map((name) => [name, trait(model, name, signal)]);
  return Object.fromEntries(traits);
}

const MOST_TITLES = 20;

/** The clauses of a selection, in the order in which they narrow it; none if all is selected. */
export function clausesOf(selected: Selected): Clause[] {
  const clauses: Clause[] = [];
  const add = (trait: keyof Selected, text: string, title = text) => clauses.push({ trait, text, title });
  const numbers = (trait: "ranks" | "iterations" | "streams") => {
    const values = selected[trait];
    if (values.length) add(trait, `${values.length > 1 ? trait : trait.slice(0, -1)} ${ranges(values)}`);
  };
  numbers("ranks");
  numbers("iterations");
  if (selected.window) {
    const [start, end] = selected.window;
    const exact = `${grouped(start)} to ${grouped(end)} ns since the job's start`;
    add("window", `${duration(end - start)} from ${duration(start)}`, exact);
  }
  numbers("streams");
  const [first] = selected.names;
  if (first !== undefined) {
    const more = selected.names.length - 1;
    const listed = selected.names.slice(0, MOST_TITLES);
    if (listed.length <= more) listed.push("…");
    add("names", `name ${shortName(first)}${more ? ` and ${more} more` : ""}`, listed.join("\n"));
  }
  const query = selected.query.trim();
  if (query) add("query", `search “${query}”`);
  return clauses;
}
