// Where a replay's time goes: compute, communication that it does not hide, copies that neither hides, and nothing.

import type { Graph } from "./graph";

export const PARTS = 4;
const IDLE = PARTS - 1;

/** The four parts of [0, whole) in ns; they add up to it. Of work that runs at once, the first part counts. */
export function partsOf({ event, eventPart }: Graph, time: Float64Array, whole: number): number[] {
  // Begins and ends in time order, by part: how many of a part are open tells what the time until the next is.
  const edges: Float64Array[] = [];
  for (let part = 0; part < IDLE; part++) {
    const count = eventPart.reduce((sum, value) => sum + Number(value === part), 0);
    const [begin, end] = [new Float64Array(count), new Float64Array(count)];
    let n = 0;
    for (let i = 0; i < event.length; i++) {
      if (eventPart[i] !== part) continue;
      begin[n] = time[event[i] as number] as number;
      end[n++] = time[(event[i] as number) + 1] as number;
    }
    edges.push(begin.sort(), end.sort());
  }
  const at = new Int32Array(edges.length);
  const parts = new Array<number>(PARTS).fill(0);
  let now = 0;
  while (now < whole) {
    let next = whole;
    for (let k = 0; k < edges.length; k++) {
      const list = edges[k] as Float64Array;
      while ((at[k] as number) < list.length && (list[at[k] as number] as number) <= now)
        at[k] = (at[k] as number) + 1;
      next = Math.min(next, list[at[k] as number] ?? whole);
    }
    let open = 0;
    while (open < IDLE && at[2 * open] === at[2 * open + 1]) open++;
    parts[open] = (parts[open] as number) + next - now;
    now = next;
  }
  return parts;
}
