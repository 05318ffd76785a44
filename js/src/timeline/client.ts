// A trace that the browser holds whole: everything is answered here, also while the kernel is busy or gone.

import { onAbort } from "../page";
import type { Flows } from "./decode";
import { type Choice, type Found, Levels, Matches, NOTHING } from "./matches";
import { lowerBound } from "./pyramid";
import { findIn, type Gap, gapIn, type Relation, type Source, sliceAt } from "./source";
import { trackOf } from "./tooltip";
import type { Flow, Items, Outline, Slice } from "./types";
import { type WindowSums, windowSums } from "./window_sums";

export class ClientSource implements Source {
  #levels: Levels;
  #matches: Matches | null = null;
  #resolution = 0;

  constructor(
    private readonly outline: Outline,
    private readonly base: Items,
    private readonly links: Flows,
    signal: AbortSignal,
  ) {
    this.#levels = new Levels(base);
    void this.#levels.refine(outline.extent[1] - outline.extent[0]);
    onAbort(signal, () => {
      this.#levels.drop();
      this.#matches?.levels.drop();
    });
  }

  items(t0: number, t1: number, pixels: number): Items {
    this.#resolution = (t1 - t0) / pixels;
    return this.#levels.at(this.#resolution);
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

  async relative(slice: Slice, to: Relation): Promise<Slice | null> {
    const track = trackOf(this.outline, slice.lane);
    if (!track) return null;
    const { start, dur, first, last } = this.base;
    const end = slice.start + slice.dur;
    const step = to === "parent" ? -1 : 1;
    for (let lane = slice.lane + step; lane >= track.first && lane < track.first + track.sizes.length; ) {
      const [from, stop] = [first[lane] as number, last[lane] as number];
      const after = lowerBound(start, from, stop, to === "parent" ? slice.start + 1 : slice.start);
      const at = to === "parent" ? after - 1 : after;
      const found = at >= from && at < stop;
      const itsEnd = found ? (start[at] as number) + (dur[at] as number) : 0;
      if (found && (to === "parent" ? itsEnd >= end : (start[at] as number) < end && itsEnd <= end))
        return sliceAt(this.base, at, lane);
      lane += step;
    }
    return null;
  }

  knownGap(lanes: readonly number[], t: number): Gap | null {
    return gapIn(this.base, lanes, t, this.outline.extent);
  }

  async gap(lanes: readonly number[], t: number): Promise<Gap | null> {
    return this.knownGap(lanes, t);
  }

  async sums(t0: number, t1: number, lanes: readonly number[]): Promise<WindowSums> {
    return windowSums(this.outline, this.base, t0, t1, lanes);
  }

  async choose(choice: Choice | null): Promise<Found> {
    this.#matches?.levels.drop();
    this.#matches = choice && new Matches(this.base, this.outline, choice);
    return this.#matches?.found(this.outline.extent) ?? NOTHING;
  }

  matchItems(): Items | null {
    return this.#matches?.levels.at(this.#resolution) ?? null;
  }

  async matchPage(order: "start" | "dur", offset: number, limit: number): Promise<Slice[]> {
    const ids = this.#matches?.page(order, offset, limit) ?? [];
    return ids.map((id) => this.#slice(id)).filter((slice) => slice !== null);
  }

  async nextMatch(from: { start: number; id: number }, step: 1 | -1): Promise<Slice | null> {
    return this.#slice(this.#matches?.beyond(from, step) ?? -1);
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
