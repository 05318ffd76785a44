// Instants of several runs that correspond, and what lies between them.

import type { Answer } from "../rpc";
import { lowerBound } from "./pyramid";

/** Row r holds times of run r in ns, strictly increasing; instants in one column correspond. */
export type Rows = readonly Float64Array[];

/** What the kernel answered about a run: it holds while the centre of that run's view is in [from, to]. */
export interface Aligned {
  rows: Rows;
  run: number;
  from: number;
  to: number;
}

export interface AnchorsLayout {
  n: number;
  runs: number;
  from: number;
  to: number;
}

/** The time in `target` that corresponds to `t` in `source`: linear between instants, with slope 1 beyond them. */
export function carry(source: Float64Array, target: Float64Array, t: number): number {
  const after = lowerBound(source, 0, source.length, t);
  const at = Math.min(Math.max(after, 0), source.length - 1);
  const [x, y] = [source[at] as number, target[at] as number];
  if (after === 0 || after === source.length) return y + (t - x);
  const [x0, y0] = [source[at - 1] as number, target[at - 1] as number];
  return y0 + ((t - x0) / (x - x0)) * (y - y0);
}

/** The kernel's answer for the run whose view is around `centre`. */
export function decodeAnchors(
  { result, buffers }: Answer<AnchorsLayout>,
  run: number,
  centre: number,
): Aligned {
  const { n, runs, from, to } = result;
  const { buffer, byteOffset } = buffers[0] as DataView;
  // a copy: the message's own buffer need not be aligned to eight bytes
  const all = new Float64Array(buffer.slice(byteOffset, byteOffset + 8 * n * runs));
  const rows = Array.from({ length: runs }, (_, r) => all.subarray(r * n, (r + 1) * n));
  // the answer covers at least the requested centre
  return { rows, run, from: Math.min(from, centre), to: Math.max(to, centre) };
}

/** The answer that holds where run `run` shows `centre`. */
export function holding(known: readonly Aligned[], run: number, centre: number): Aligned | undefined {
  return known.find((aligned) => {
    const source = aligned.rows[run];
    const answered = aligned.rows[aligned.run];
    if (!source?.length || !answered) return false;
    const t = carry(source, answered, centre);
    return t >= aligned.from && t <= aligned.to;
  });
}
