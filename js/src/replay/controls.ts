// Sliders and switches as an edit of a graph.

import { type Graph, spread } from "./graph";
import type { Edit } from "./pass";

/** A slider, or a switch; what it means was read off Python's edit (hta_widgets/widgets/what_if_controls.py). */
export interface Control {
  name: string;
  label: string;
  hint: string;
  /** what a switch does when it is on; empty for a slider */
  off: string;
  /** Python's edit takes how many times as fast it gets */
  speed: boolean;
  /** it can be had at most in part if no time is left */
  bound: boolean;
  /** groups of edges */
  scaled: number[];
  removed: number[];
  /** the recording has nothing that it would change */
  nothing: boolean;
  /** whose colour its saving takes */
  time_class: string;
}

/** By name of a control, the share of the time that is left; what is not listed is as recorded. */
export type Settings = Readonly<Record<string, number>>;

/** The controls that are in use, in their order. */
export function inUse(controls: readonly Control[], settings: Settings): Control[] {
  return controls.filter(({ name }) => settings[name] !== undefined);
}

export function editOf(graph: Graph, controls: readonly Control[], settings: Settings): Edit {
  const factor = new Float64Array(graph.groups).fill(1);
  const removed = new Uint8Array(graph.groups);
  let weight = graph.weight;
  for (const { name, ...control } of inUse(controls, settings)) {
    for (const g of control.scaled) factor[g] = (factor[g] as number) * (settings[name] as number);
    for (const g of control.removed) removed[g] = 1;
    const cut = graph.cuts[name];
    if (!cut) continue;
    weight = weight.slice();
    spread(weight, cut.edge, cut.weight);
  }
  return { factor, removed, weight };
}
