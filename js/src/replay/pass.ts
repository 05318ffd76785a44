// The passes over a dependency graph, the same to the nanosecond as hta_widgets/analysis/replay/passes.py.
//
// An edit changes weights, never the pass. A factor rounds each edge by floor(x + 0.5).

import type { Graph } from "./graph";

/** What becomes of a residual beside edited work; see `MODES` in Python. */
export const [PINNED, ESTIMATE, MOST] = [0, 1, 2];

const GONE = -(2 ** 52); // weight of a removed edge: before any time

/** An edit on a graph: by group of edges, and the weights of all edges where it cuts some. */
export interface Edit {
  factor: Float64Array;
  removed: Uint8Array;
  weight: Float64Array;
}

/** The weight of each edge under an edit, written to `into`. */
export function weights(graph: Graph, edit: Edit, mode: number, into: Float64Array): Float64Array {
  const { group, residual } = graph;
  const { factor, removed, weight } = edit;
  for (let e = 0; e < into.length; e++) {
    const g = group[e] as number;
    const f = factor[g] as number;
    const w = weight[e] as number;
    if (removed[g]) into[e] = GONE;
    // a weight below zero is slack between the clocks, no time that could be scaled
    else into[e] = (f === 1 || w < 0 ? w : Math.floor(w * f + 0.5)) + (residual[e] as number);
  }
  stretch(graph, edit, mode, into);
  return into;
}

/** Whether an edit changes work beside a residual: without any, the replay is the same in all modes. */
export function besideResiduals({ group, pairDevice }: Graph, { factor }: Edit): boolean {
  return pairDevice.some((e) => factor[group[e] as number] !== 1);
}

/** Change the pinned weights of an edit to those of a mode: they differ where work was beside a residual. */
export function stretch(graph: Graph, edit: Edit, mode: number, into: Float64Array): void {
  if (mode === ESTIMATE) shareResiduals(graph, edit, into);
  else if (mode === MOST) scaleResiduals(graph, edit, into);
}

/** The part of each event beside a residual changes with that event. */
function shareResiduals(graph: Graph, { factor, removed }: Edit, into: Float64Array): void {
  const { group, pairEdge, pairDevice, pairShare } = graph;
  for (let p = 0; p < pairEdge.length; p++) {
    const e = pairEdge[p] as number;
    const f = factor[group[pairDevice[p] as number] as number] as number;
    if (f === 1 || removed[group[e] as number]) continue;
    const share = pairShare[p] as number;
    into[e] = (into[e] as number) + Math.floor(share * f + 0.5) - share;
  }
}

/** A whole residual changes with the most edited event beside it. */
function scaleResiduals(graph: Graph, { factor, removed }: Edit, into: Float64Array): void {
  const { group, pairEdge, pairDevice, residual } = graph;
  for (let p = 0; p < pairEdge.length; ) {
    const e = pairEdge[p] as number;
    let f = 1;
    for (; p < pairEdge.length && pairEdge[p] === e; p++) {
      const beside = factor[group[pairDevice[p] as number] as number] as number;
      if (beside < 1 && f <= 1) f = Math.min(f, beside);
      else if (beside > 1 && f >= 1) f = Math.max(f, beside);
    }
    if (f === 1 || removed[group[e] as number]) continue;
    const rest = residual[e] as number;
    into[e] = (into[e] as number) + Math.floor(rest * f + 0.5) - rest;
  }
}

/**
 * When each node happens, written to `into`: at the latest of its causes, no earlier than the origin.
 * Returns when the last one does.
 */
export function times({ first, source }: Graph, weight: Float64Array, into: Float64Array): number {
  into[0] = 0;
  let last = 0;
  let e = first[1] as number;
  for (let node = 1; node < into.length; node++) {
    let latest = 0;
    for (const end = first[node + 1] as number; e < end; e++) {
      const ready = (into[source[e] as number] as number) + (weight[e] as number);
      if (ready > latest) latest = ready;
    }
    into[node] = latest;
    if (latest > last) last = latest;
  }
  return last;
}
