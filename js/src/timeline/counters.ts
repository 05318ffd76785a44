// Counters: which there are, and their values, as the kernel reduces them to the screen's resolution.
//
// As with slices, one request is in flight, and of those that come up meanwhile only the newest waits; until its answer
// is there, what is at hand is drawn.

import type { Signal } from "@preact/signals";
import { signal as makeSignal } from "@preact/signals";
import { amount, counted, percent, type Quantity } from "../format";
import { decodeCounters, inflate } from "./decode";
import { type Call, fetchChunks } from "./kernel";
import type { View } from "./types";

const WINDOWS_KEPT = 8;

/** As hta_widgets/widgets/counter_questions.py lists it. */
export interface Counter {
  rank: number;
  name: string;
  key: string;
  unit: string;
  /** first lane of the stream that it belongs to, -1 for none */
  lane: number;
  least: number;
  most: number;
  /** ends of its scale */
  bottom: number;
  top: number;
}

/** The least and the greatest value in each of equal parts of a time; NaN: not known yet. */
export interface Values {
  least: Float64Array;
  most: Float64Array;
}

interface Loaded extends View {
  px: number;
  of: Map<Counter, Values>;
}

interface Wanted extends View {
  resolution: number;
  counters: readonly Counter[];
}

export class Counters {
  /** those of the ranks on display; null: not asked for yet */
  readonly known: Signal<readonly Counter[] | null> = makeSignal(null);
  /** why there are none */
  readonly missing = makeSignal("");
  #loaded: Loaded[] = [];
  #waiting: Wanted | null = null;
  #inFlight = false;
  #asked = 0;
  /** the ranks that were asked for last */
  #listed = "";

  constructor(
    private readonly extent: readonly [number, number],
    private readonly call: Call,
    /** better values have come */
    private readonly changed: () => void,
  ) {}

  /** Learn which counters some ranks have; no ranks mean all. */
  async list(ranks: readonly number[]): Promise<void> {
    const key = JSON.stringify(ranks);
    if (key === this.#listed) return;
    this.#listed = key;
    const asked = ++this.#asked;
    let found: readonly Counter[] = [];
    let why = "";
    try {
      found = (await this.call<{ counters: Counter[] }>("counter_list", { ranks })).result.counters;
      if (found.length === 0) why = "The recording has no launches, copies, memory events or counter events.";
    } catch (error) {
      if (error instanceof DOMException) return;
      why = error instanceof Error ? error.message : String(error);
    }
    if (asked !== this.#asked) return;
    this.#loaded = [];
    this.missing.value = why;
    this.known.value = found;
  }

  /** The best values at hand for what is on the screen; asks for better ones. */
  at({ t0, t1 }: View, pixels: number, counters: readonly Counter[]): Loaded | null {
    const [from, to] = this.extent;
    const a = Math.max(t0, from);
    const b = Math.min(t1, to);
    if (counters.length === 0 || b <= a) return null;
    const resolution = 2 ** Math.floor(Math.log2((t1 - t0) / pixels));
    const wanted = { t0: a, t1: b, resolution, counters };
    const covering = this.#loaded.filter((one) => covers(one, wanted));
    const exact = covering.find((one) => stepOf(one) <= resolution);
    if (!exact) this.#request(wanted);
    return exact ?? covering.sort((x, y) => stepOf(x) - stepOf(y))[0] ?? this.#loaded[0] ?? null;
  }

  #request(wanted: Wanted): void {
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
        if (next && !this.#loaded.some((one) => covers(one, next) && stepOf(one) <= next.resolution))
          this.#request(next);
      });
  }

  async #fetch({ t0, t1, resolution, counters }: Wanted): Promise<void> {
    const asked = this.#asked;
    const width = t1 - t0;
    const from = Math.max(this.extent[0], Math.floor(t0 - width));
    const to = Math.min(this.extent[1], Math.ceil(t1 + width));
    const { result, chunks } = await fetchChunks<Pick<Loaded, "t0" | "t1" | "px">>(
      this.call,
      "counter_values",
      {
        t0: from,
        t1: to,
        px: Math.max(1, Math.ceil((to - from) / resolution)),
        counters: counters.map(({ rank, name, key }) => [rank, name, key]),
      },
    );
    const columns = decodeCounters(await inflate(chunks), result.px);
    if (asked !== this.#asked) return;
    const of = new Map(
      counters.map((counter, i) => [
        counter,
        { least: columns[2 * i] as Float64Array, most: columns[2 * i + 1] as Float64Array },
      ]),
    );
    this.#loaded.unshift({ ...result, of });
    this.#loaded.length = Math.min(this.#loaded.length, WINDOWS_KEPT);
    this.changed();
  }
}

/** The values within a time: [least, greatest]; null where none is known. */
export function valuesIn(
  loaded: Loaded,
  counter: Counter,
  from: number,
  to: number,
): [number, number] | null {
  const values = loaded.of.get(counter);
  if (!values || to <= loaded.t0 || from >= loaded.t1) return null;
  const step = stepOf(loaded);
  const first = Math.max(0, Math.floor((from - loaded.t0) / step));
  const last = Math.min(loaded.px, Math.max(first + 1, Math.ceil((to - loaded.t0) / step)));
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (let i = first; i < last; i++) {
    // comparisons with NaN are false
    if ((values.least[i] as number) < low) low = values.least[i] as number;
    if ((values.most[i] as number) > high) high = values.most[i] as number;
  }
  return low <= high ? [low, high] : null;
}

/** A value of a counter, in words. */
export function valueText({ unit }: Counter, value: number): string {
  if (unit === "launches") return counted(value, "launch", "launches");
  if (unit === "%") return percent(value);
  const quantity = ({ bytes: "bytes", "GB/s": "gbps" } as Record<string, Quantity>)[unit] ?? "";
  return `${amount(value, quantity)}${quantity === "" && unit ? ` ${unit}` : ""}`;
}

function stepOf({ t0, t1, px }: Pick<Loaded, "t0" | "t1" | "px">): number {
  return (t1 - t0) / px;
}

function covers(loaded: Loaded, { t0, t1, counters }: Wanted): boolean {
  return loaded.t0 <= t0 && loaded.t1 >= t1 && counters.every((counter) => loaded.of.has(counter));
}
