// Iterations of each rank, and which of them a view shows: a long recording has tens of thousands.

import { lowerBound } from "./pyramid";
import type { IterationInfo, View } from "./types";

/** Iterations of one rank, in their order. */
export class Bands {
  /** no iteration from here on begins earlier, and none up to here ends later: replayed ones may overlap */
  #begins: Float64Array;
  #ends: Float64Array;

  constructor(readonly all: readonly IterationInfo[]) {
    this.#begins = Float64Array.from(all, ({ start }) => start);
    this.#ends = Float64Array.from(all, ({ end }) => end);
    for (let at = 1; at < all.length; at++) {
      const back = all.length - 1 - at;
      this.#begins[back] = Math.min(this.#begins[back] as number, this.#begins[back + 1] as number);
      this.#ends[at] = Math.max(this.#ends[at] as number, this.#ends[at - 1] as number);
    }
  }

  /** Positions between which all lie that a view shows. */
  shown({ t0, t1 }: View): [from: number, to: number] {
    const { length } = this.all;
    return [lowerBound(this.#ends, 0, length, t0), lowerBound(this.#begins, 0, length, t1)];
  }
}

export const NO_BANDS = new Bands([]);

export function bandsByRank(iterations: readonly IterationInfo[]): ReadonlyMap<number, Bands> {
  const ranks = new Map<number, IterationInfo[]>();
  for (const band of iterations) {
    const known = ranks.get(band.rank);
    if (known) known.push(band);
    else ranks.set(band.rank, [band]);
  }
  return new Map([...ranks].map(([rank, bands]) => [rank, new Bands(bands)]));
}
