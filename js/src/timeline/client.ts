// A trace that the browser holds whole: everything is answered here, also while the kernel is busy or gone.

import type { Flows } from "./decode";
import { coarserLevels, type Level } from "./pyramid";
import { findIn, type Source, sliceAt } from "./source";
import type { Flow, Items, Slice } from "./types";

export class ClientSource implements Source {
  #levels: Level[];

  constructor(
    private readonly base: Items,
    private readonly links: Flows,
  ) {
    this.#levels = [{ width: 0, items: base }];
  }

  /** Build the coarser levels in the background, between frames. */
  async refine(span: number, signal: AbortSignal): Promise<void> {
    for (const level of coarserLevels(this.base, span)) {
      if (signal.aborted) return;
      this.#levels.push(level);
      await new Promise((resolve) => setTimeout(resolve));
    }
  }

  items(t0: number, t1: number, pixels: number): Items {
    const resolution = (t1 - t0) / pixels;
    const fits = this.#levels.filter((level) => level.width <= resolution);
    return (fits.at(-1) as Level).items;
  }

  find(lane: number, t: number, tolerance: number): Slice | null {
    return findIn(this.base, lane, t, tolerance);
  }

  async slice(id: number): Promise<Slice | null> {
    return this.#slice(id);
  }

  async neighbour(slice: Slice, step: 1 | -1): Promise<Slice | null> {
    const next = this.#slice(slice.id + step);
    return next?.lane === slice.lane ? next : null;
  }

  knownFlows(slice: Slice): Flow[] {
    const found: Flow[] = [];
    const { source, target } = this.links;
    for (let i = 0; i < source.length; i++) {
      if (source[i] !== slice.id && target[i] !== slice.id) continue;
      const from = this.#slice(source[i] as number);
      const to = this.#slice(target[i] as number);
      if (from && to) found.push([from, to]);
    }
    return found;
  }

  async flows(slice: Slice): Promise<Flow[]> {
    return this.knownFlows(slice);
  }

  #slice(id: number): Slice | null {
    if (!(id >= 0 && id < this.base.start.length)) return null;
    // Lanes fill the ids without gaps: the lane is the last one that begins at or before the id.
    let lo = 0;
    let hi = this.base.first.length - 1;
    while (lo < hi) {
      const mid = (lo + hi + 1) >>> 1;
      if ((this.base.first[mid] as number) <= id) lo = mid;
      else hi = mid - 1;
    }
    return sliceAt(this.base, id, lo);
  }
}
