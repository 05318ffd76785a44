// A trace too large for the browser: the kernel answers windows, three screens wide, at a power-of-two resolution.
//
// One request is in flight; of those that come up meanwhile only the newest waits. Until the answer is there, the
// coarser data at hand is drawn, so the timeline is never blank.

import { decodeWindow, unpacked, type WindowLayout } from "./decode";
import { BINS, type Choice, type Found, NOTHING, only } from "./matches";
import { findIn, type Gap, gapIn, type Relation, type Source } from "./source";
import type { Flow, Items, Outline, Slice } from "./types";
import type { WindowSums } from "./window_sums";

const WINDOWS_KEPT = 16;
const OVERVIEW_PIXELS = 1600;

export type Call = <T>(method: string, params: object) => Promise<{ result: T; buffers: DataView[] }>;

interface Request {
  t0: number;
  t1: number;
  lanes: readonly number[];
  /** ns per pixel, a power of two */
  resolution: number;
}

interface Loaded extends Request {
  lanesHeld: Set<number>;
  items: Items;
}

interface SliceFacts {
  id: number;
  lane: number;
  start: number;
  dur: number;
  kind: number;
  was?: [number, number];
}

export class KernelSource implements Source {
  #loaded: Loaded[] = [];
  #drawn: Items | null = null;
  #inFlight = false;
  #waiting: Request | null = null;
  #flows = new Map<number, Flow[]>();
  #choice: Choice | null = null;
  #matches: { of: Items; items: Items } | null = null;

  constructor(
    private readonly outline: Outline,
    private readonly call: Call,
    private readonly changed: () => void,
  ) {}

  /** Fetch the whole trace at a coarse resolution: what is drawn whenever nothing better has come yet. */
  async overview(): Promise<void> {
    const [t0, t1] = this.outline.extent;
    const lanes = this.outline.tracks.flatMap((track) => track.sizes.map((_, i) => track.first + i));
    const resolution = 2 ** Math.ceil(Math.log2(Math.max((t1 - t0) / OVERVIEW_PIXELS, 1)));
    await this.#fetch({ t0, t1, lanes, resolution });
  }

  items(t0: number, t1: number, pixels: number, lanes: readonly number[]): Items | null {
    const resolution = 2 ** Math.floor(Math.log2((t1 - t0) / pixels));
    // Nothing lies outside the extent: asking for it would never be satisfied.
    const a = Math.max(t0, this.outline.extent[0]);
    const b = Math.min(t1, this.outline.extent[1]);
    const wanted = { t0: a, t1: b, lanes, resolution };
    const exact = this.#loaded.find((w) => covers(w, wanted) && w.resolution === resolution);
    if (!exact && b > a) this.#request(wanted);
    if (exact) this.#touch(exact);
    const best = exact ?? this.#closest(wanted);
    this.#drawn = best?.items ?? null;
    return this.#drawn;
  }

  find(lane: number, t: number, tolerance: number): Slice | null {
    return this.#drawn && findIn(this.#drawn, lane, t, tolerance);
  }

  async slice(id: number): Promise<Slice | null> {
    if (!(id >= 0 && id < this.outline.n)) return null;
    const { result } = await this.call<{ slice: SliceFacts; flows: [SliceFacts, SliceFacts][] }>("slice", {
      id,
    });
    const flows = result.flows.map(
      ([from, to]): Flow => [
        { ...from, count: 1 },
        { ...to, count: 1 },
      ],
    );
    this.#flows.set(id, flows);
    return { ...result.slice, count: 1 };
  }

  async neighbour(slice: Slice, step: 1 | -1): Promise<Slice | null> {
    const next = await this.slice(slice.id + step);
    return next?.lane === slice.lane ? next : null;
  }

  knownFlows(slice: Slice): Flow[] {
    return this.#flows.get(slice.id) ?? [];
  }

  async flows(slice: Slice): Promise<Flow[]> {
    if (!this.#flows.has(slice.id)) await this.slice(slice.id);
    return this.knownFlows(slice);
  }

  async relative(slice: Slice, to: Relation): Promise<Slice | null> {
    return this.#fetchSlice("relative", { id: slice.id, to });
  }

  /** Beyond what is loaded nothing is known: there the gap ends at the edge of the loaded part. */
  knownGap(lanes: readonly number[], t: number): Gap | null {
    const drawn = this.#loaded.find((w) => w.items === this.#drawn);
    if (!drawn || t < drawn.t0 || t >= drawn.t1 || !lanes.every((lane) => drawn.lanesHeld.has(lane)))
      return null;
    return gapIn(drawn.items, lanes, t, [drawn.t0, drawn.t1]);
  }

  async gap(lanes: readonly number[], t: number): Promise<Gap | null> {
    return (await this.call<{ gap: Gap | null }>("gap", { lanes, t })).result.gap;
  }

  async sums(t0: number, t1: number, lanes: readonly number[]): Promise<WindowSums> {
    return (await this.call<WindowSums>("window_sums", { t0, t1, lanes })).result;
  }

  async choose(choice: Choice | null): Promise<Found> {
    this.#choice = choice;
    this.#matches = null;
    if (!choice) return NOTHING;
    return (await this.call<Found>("matches", { ...paramsOf(choice), bins: BINS })).result;
  }

  /** A merged item is chosen if the longest of its slices is. */
  matchItems(): Items | null {
    if (!this.#choice || !this.#drawn) return null;
    if (this.#matches?.of !== this.#drawn)
      this.#matches = { of: this.#drawn, items: only(this.#drawn, this.#choice.kinds) };
    return this.#matches.items;
  }

  async nextMatch(from: { start: number; id: number }, step: 1 | -1): Promise<Slice | null> {
    return this.#choice && this.#fetchSlice("match", { ...paramsOf(this.#choice), ...from, step });
  }

  async matchPage(order: "start" | "dur", offset: number, limit: number): Promise<Slice[]> {
    if (!this.#choice) return [];
    const params = { ...paramsOf(this.#choice), order, offset, limit };
    const { result } = await this.call<{ slices: SliceFacts[] }>("match_page", params);
    return result.slices.map((slice) => ({ ...slice, count: 1 }));
  }

  async #fetchSlice(method: string, params: object): Promise<Slice | null> {
    const { result } = await this.call<{ slice: SliceFacts | null }>(method, params);
    return result.slice && { ...result.slice, count: 1 };
  }

  #request(wanted: Request): void {
    if (this.#inFlight) {
      this.#waiting = wanted;
      return;
    }
    this.#inFlight = true;
    this.#fetch(wanted)
      .catch((error: unknown) => {
        if (!(error instanceof DOMException)) console.error(error);
        this.#waiting = null;
      })
      .finally(() => {
        this.#inFlight = false;
        const next = this.#waiting;
        this.#waiting = null;
        if (next && !this.#loaded.some((w) => covers(w, next) && w.resolution === next.resolution))
          this.#request(next);
      });
  }

  async #fetch(wanted: Request): Promise<void> {
    const width = wanted.t1 - wanted.t0;
    const t0 = Math.max(this.outline.extent[0], Math.floor(wanted.t0 - width));
    const t1 = Math.min(this.outline.extent[1], Math.ceil(wanted.t1 + width));
    const px = Math.max(1, Math.ceil((t1 - t0) / wanted.resolution));
    const params = { t0, t1, px, lanes: wanted.lanes };
    const { result, chunks } = await fetchChunks<WindowLayout>(this.call, "window", params);
    const laneCount = this.outline.tracks.reduce((sum, track) => sum + track.sizes.length, 0);
    const items = await unpacked(chunks, (bytes) => decodeWindow(bytes, result, wanted.lanes, laneCount));
    this.#loaded.unshift({ ...wanted, t0, t1, lanesHeld: new Set(wanted.lanes), items });
    // The last one is the overview: it stays as the last resort.
    while (this.#loaded.length > WINDOWS_KEPT) this.#loaded.splice(-2, 1);
    this.changed();
  }

  #touch(used: Loaded): void {
    const at = this.#loaded.indexOf(used);
    if (at <= 0 || at === this.#loaded.length - 1) return;
    this.#loaded.splice(at, 1);
    this.#loaded.unshift(used);
  }

  /** The sharpest data that covers the view, else the newest that overlaps it, else the overview. */
  #closest(wanted: Request): Loaded | undefined {
    const covering = this.#loaded.filter((w) => covers(w, wanted) && w.resolution >= wanted.resolution);
    covering.sort((a, b) => a.resolution - b.resolution);
    return covering[0] ?? this.#loaded.at(-1);
  }
}

function paramsOf({ names, query, ranks }: Choice): object {
  return { names, query, ranks };
}

function covers(loaded: Loaded, wanted: Request): boolean {
  return (
    loaded.t0 <= wanted.t0 &&
    loaded.t1 >= wanted.t1 &&
    wanted.lanes.every((lane) => loaded.lanesHeld.has(lane))
  );
}

/** All chunks of a reply that may be larger than one message. */
export async function fetchChunks<T>(
  call: Call,
  method: string,
  params: object = {},
): Promise<{ result: T; chunks: DataView[] }> {
  const first = await call<T & { chunks: number }>(method, { ...params, chunk: 0 });
  const rest = Array.from({ length: first.result.chunks - 1 }, (_, i) =>
    call(method, { ...params, chunk: i + 1 }),
  );
  const chunks = [first, ...(await Promise.all(rest))].map((answer) => answer.buffers[0] as DataView);
  return { result: first.result, chunks };
}
