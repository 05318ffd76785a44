// Where a replay's time goes: compute, communication that it does not hide, copies that neither hides, and nothing.

import type { Graph } from "./graph";

export const PARTS = 4;
const IDLE = PARTS - 1;
const MOST_MOVES = 8; // of a value on average: beyond, the built-in sort is faster

/** Divides the times of a graph; it keeps the order of the nodes as recorded, which few edits change much. */
export class Parts {
  /** of the events of a part or of one before it: the nodes where they begin, and where they end */
  #begins: Int32Array[] = [];
  #ends: Int32Array[] = [];

  constructor({ event, eventPart }: Pick<Graph, "event" | "eventPart">, recorded: Float64Array) {
    const inOrder = (nodes: Int32Array) =>
      nodes.sort((a, b) => (recorded[a] as number) - (recorded[b] as number));
    for (let part = 0; part < IDLE; part++) {
      const begins = event.filter((_, i) => (eventPart[i] as number) <= part);
      this.#ends.push(inOrder(begins.map((node) => node + 1)));
      this.#begins.push(inOrder(begins));
    }
  }

  /** The four parts of [0, whole) in ns; they add up to it. Of work that runs at once, the first part counts. */
  of(time: Float64Array, whole: number): number[] {
    const parts: number[] = [];
    let before = 0;
    for (let part = 0; part < IDLE; part++) {
      const [begins, ends] = [this.#begins[part], this.#ends[part]] as [Int32Array, Int32Array];
      const busy = covered(sorted(begins, time), sorted(ends, time));
      parts.push(busy - before);
      before = busy;
    }
    return [...parts, whole - before];
  }
}

/** How long at least one of some intervals is open, from their begins and their ends, each in order. */
function covered(begin: Float64Array, end: Float64Array): number {
  if (!begin.length) return 0;
  const last = begin.length - 1;
  let sum = (end[last] as number) - (begin[0] as number);
  // none is open between the i-th end and the next begin if that many have begun and ended
  for (let i = 0; i < last; i++) sum -= Math.max(0, (begin[i + 1] as number) - (end[i] as number));
  return sum;
}

/** The times of nodes that are nearly in order: most have few others to pass. */
function sorted(nodes: Int32Array, time: Float64Array): Float64Array {
  const values = new Float64Array(nodes.length);
  for (let i = 0; i < nodes.length; i++) values[i] = time[nodes[i] as number] as number;
  let moves = MOST_MOVES * values.length;
  for (let i = 1; i < values.length; i++) {
    const value = values[i] as number;
    let at = i;
    for (; at > 0 && (values[at - 1] as number) > value; at--) values[at] = values[at - 1] as number;
    values[at] = value;
    moves -= i - at;
    if (moves < 0) return values.sort();
  }
  return values;
}
