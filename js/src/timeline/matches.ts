// The slices that a reader chose by name. Names are compared once per kind, never once per slice.

import { coarserLevels, type Level } from "./pyramid";
import type { Items, Outline } from "./types";

/** Chosen slices of some ranks; no names, query or ranks mean any. */
export interface Choice {
  names: readonly string[];
  query: string;
  ranks: readonly number[];
  /** per kind: 1 if its slices are chosen */
  kinds: Uint8Array;
}

/** How many slices are chosen, and how many begin in each of equal parts of the trace. */
export interface Found {
  count: number;
  bins: ArrayLike<number>;
}

export const BINS = 1024;
export const NOTHING: Found = { count: 0, bins: [] };

/** The choice, or null if neither names nor a query are given. */
export function choiceOf(
  outline: Outline,
  names: readonly string[],
  query: string,
  ranks: readonly number[],
): Choice | null {
  const part = query.trim().toLowerCase();
  if (names.length === 0 && !part) return null;
  const wanted = new Set(names);
  const kinds = Uint8Array.from(outline.names, (name) =>
    (wanted.size === 0 || wanted.has(name)) && name.toLowerCase().includes(part) ? 1 : 0,
  );
  return { names, query: part, ranks, kinds };
}

type Column = Float64Array | Float32Array | Uint32Array | Uint16Array | Uint8Array;

/** Only the items of the chosen kinds, with their ids, on the lanes that `lanes` allows. */
export function only(items: Items, kinds: Uint8Array, lanes?: Uint8Array): Items {
  const chosen = new Uint32Array(items.start.length);
  const first = new Uint32Array(items.first.length);
  const last = new Uint32Array(items.first.length);
  let n = 0;
  for (let lane = 0; lane < first.length; lane++) {
    first[lane] = n;
    const stop = lanes && !lanes[lane] ? 0 : (items.last[lane] as number);
    for (let i = items.first[lane] as number; i < stop; i++)
      if (kinds[items.kind[i] as number]) chosen[n++] = i;
    last[lane] = n;
  }
  const picked = chosen.subarray(0, n);
  const take = <T extends Column>(from: T): T => {
    const to = from.slice(0, n) as T;
    for (let i = 0; i < n; i++) to[i] = from[picked[i] as number] as number;
    return to;
  };
  return {
    start: take(items.start),
    dur: take(items.dur),
    kind: take(items.kind),
    eventClass: take(items.eventClass),
    id: items.id ? take(items.id) : picked.slice(),
    count: items.count && take(items.count),
    busy: items.busy && take(items.busy),
    first,
    last,
  };
}

/** Items that are all at hand, drawn from the coarsest of their levels that is fine enough. */
export class Levels {
  #levels: Level[];
  #dropped = false;

  constructor(readonly base: Items) {
    this.#levels = [{ width: 0, items: base }];
  }

  /** Build the coarser levels in the background, between frames, once the items themselves have been drawn. */
  async refine(span: number): Promise<void> {
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    if (this.#dropped) return;
    // Items that stand for others carry their ids; a level names its longest by position.
    for (const level of coarserLevels({ ...this.base, id: null }, span)) {
      if (this.#dropped) return;
      this.#levels.push({ width: level.width, items: drawn(level.items) });
      await new Promise((resolve) => setTimeout(resolve));
    }
  }

  /** Stop refining. */
  drop(): void {
    this.#dropped = true;
  }

  at(resolution: number): Items {
    return (this.#levels.filter((level) => level.width <= resolution).at(-1) as Level).items;
  }
}

/** What is drawn of a level. Which slice is the longest, and how many more there are, only the next level asks. */
function drawn(items: Items): Items {
  const count = new Uint8Array(items.start.length);
  for (let i = 0; i < count.length; i++) count[i] = Math.min(items.count?.[i] ?? 1, 2);
  return { ...items, id: null, count };
}

/** Chosen slices of a trace that is at hand as a whole. */
export class Matches {
  readonly levels: Levels;
  #orders: { start?: Uint32Array; dur?: Uint32Array } = {};

  constructor(
    items: Items,
    outline: Outline,
    readonly choice: Choice,
  ) {
    this.levels = new Levels(only(items, choice.kinds, lanesOf(outline, choice.ranks)));
    void this.levels.refine(outline.extent[1] - outline.extent[0]);
  }

  found([from, to]: readonly [number, number]): Found {
    const { start } = this.levels.base;
    const bins = new Uint32Array(BINS);
    const scale = BINS / (to - from || 1);
    for (const t of start) {
      const bin = Math.min(Math.floor((t - from) * scale), BINS - 1);
      bins[bin] = (bins[bin] as number) + 1;
    }
    return { count: start.length, bins };
  }

  /** Ids of some matches: by start and id, or the longest first. */
  page(order: "start" | "dur", offset: number, limit: number): number[] {
    const { start, dur } = this.levels.base;
    const ids = this.levels.base.id as Uint32Array;
    this.#orders[order] ??= Uint32Array.from(ids.keys()).sort(
      (a, b) =>
        (order === "dur" ? (dur[b] as number) - (dur[a] as number) : 0) ||
        (start[a] as number) - (start[b] as number) ||
        (ids[a] as number) - (ids[b] as number),
    );
    return [...this.#orders[order].slice(offset, offset + limit)].map((at) => ids[at] as number);
  }

  /** Id of the match next to a place by (start, id), around the end of the trace if need be; -1 if nothing matches. */
  beyond(from: { start: number; id: number }, step: 1 | -1): number {
    const { start } = this.levels.base;
    const ids = this.levels.base.id as Uint32Array;
    const after = (i: number, t: number, id: number) =>
      step * ((start[i] as number) - t || (ids[i] as number) - id) > 0;
    let nearest = -1;
    let outermost = -1;
    for (let i = 0; i < start.length; i++) {
      if (
        after(i, from.start, from.id) &&
        !(nearest >= 0 && after(i, start[nearest] as number, ids[nearest] as number))
      )
        nearest = i;
      if (!(outermost >= 0 && after(i, start[outermost] as number, ids[outermost] as number))) outermost = i;
    }
    const best = nearest >= 0 ? nearest : outermost;
    return best < 0 ? -1 : (ids[best] as number);
  }
}

function lanesOf(outline: Outline, ranks: readonly number[]): Uint8Array | undefined {
  if (ranks.length === 0) return undefined;
  return Uint8Array.from(
    outline.tracks.flatMap((track) => track.sizes.map(() => (ranks.includes(track.rank) ? 1 : 0))),
  );
}
