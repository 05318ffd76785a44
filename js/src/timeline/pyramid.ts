// Level of detail in the browser: the same definition as hta_widgets/timeline/pyramid.py, which explains it.

import type { Items } from "./types";

const FINEST_WIDTH_NS = 1024;
const KEPT_FRACTION = 0.25;
const COARSEST_BUCKETS = 256;
const TWO_TO_32 = 2 ** 32;

export interface Level {
  width: number;
  items: Items;
}

/** First position in [from, to) whose value is not below `value`. */
export function lowerBound(values: Float64Array, from: number, to: number, value: number): number {
  let lo = from;
  let hi = to;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if ((values[mid] as number) < value) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/** Positions of a lane's items that touch [t0, t1): they are disjoint, so only one can reach in from before. */
export function range(items: Items, lane: number, t0: number, t1: number): [number, number] {
  const from = items.first[lane] as number;
  const to = items.last[lane] as number;
  let a = lowerBound(items.start, from, to, t0);
  if (a > from && (items.start[a - 1] as number) + (items.dur[a - 1] as number) > t0) a--;
  return [a, lowerBound(items.start, a, to, t1)];
}

/** The coarser levels of `base`, finest first, one per step so that the caller can give way between them. */
export function* coarserLevels(base: Items, span: number): Generator<Level> {
  const merges = firstMerges(base);
  let finer = base;
  let left = base.start.length;
  for (let bits = 0, width = 1; width * COARSEST_BUCKETS <= span; bits++, width *= 2) {
    left -= merges[bits] as number;
    if (width < FINEST_WIDTH_NS || left > KEPT_FRACTION * base.start.length) continue;
    finer = merge(finer, width, base);
    yield { width, items: finer };
  }
}

/**
 * How many pairs of neighbours are first merged at each width 2^k: both are shorter, and begin in one of its buckets.
 * What was merged once stays merged, so this tells the size of every level before any is made.
 */
export function firstMerges({ start, dur, first, last }: Items): Uint32Array {
  const pairs = new Uint32Array(65);
  for (let lane = 0; lane < first.length; lane++) {
    const stop = last[lane] as number;
    for (let i = (first[lane] as number) + 1; i < stop; i++) {
      const a = start[i - 1] as number; // a list of the two would be made anew for each slice
      const b = start[i] as number;
      const longer = Math.max(dur[i - 1] as number, dur[i] as number);
      const high = (Math.floor(a / TWO_TO_32) ^ Math.floor(b / TWO_TO_32)) | Math.floor(longer / TWO_TO_32);
      const bits = high === 0 ? 32 - Math.clz32((a ^ b) | longer) : 64 - Math.clz32(high);
      pairs[bits] = (pairs[bits] as number) + 1;
    }
  }
  return pairs;
}

/** Merge runs of neighbours that are each shorter than `width` and start in the same bucket of `width`. */
export function merge(items: Items, width: number, base: Items): Items {
  const lanes = items.first.length;
  const out = empty(countRuns(items, width), lanes, base, width);
  const classBusy = new Float64Array(256);
  let n = 0;
  for (let lane = 0; lane < lanes; lane++) {
    out.first[lane] = n;
    const stop = items.last[lane] as number;
    for (let i = items.first[lane] as number; i < stop; ) {
      const j = runEnd(items, i, stop, width);
      combine(items, i, j, base, out, n++, classBusy);
      i = j;
    }
    out.last[lane] = n;
  }
  return out;
}

function runEnd(items: Items, i: number, stop: number, width: number): number {
  if ((items.dur[i] as number) >= width) return i + 1;
  const bucket = Math.floor((items.start[i] as number) / width);
  let j = i + 1;
  while (
    j < stop &&
    (items.dur[j] as number) < width &&
    Math.floor((items.start[j] as number) / width) === bucket
  )
    j++;
  return j;
}

function countRuns(items: Items, width: number): number {
  let runs = 0;
  for (let lane = 0; lane < items.first.length; lane++) {
    const stop = items.last[lane] as number;
    for (let i = items.first[lane] as number; i < stop; runs++) i = runEnd(items, i, stop, width);
  }
  return runs;
}

interface Merged extends Items {
  id: Uint32Array;
  count: Uint32Array;
  busy: Float64Array | Uint32Array;
}

function empty(n: number, lanes: number, base: Items, width: number): Merged {
  // What is merged begins in one bucket and ends before the end of the next.
  const short = base.dur instanceof Uint32Array && 2 * width <= TWO_TO_32;
  const times = () => (short ? new Uint32Array(n) : new Float64Array(n));
  return {
    start: new Float64Array(n),
    dur: times(),
    kind: base.kind.slice(0, n), // for its type
    eventClass: new Uint8Array(n),
    id: new Uint32Array(n),
    count: new Uint32Array(n),
    busy: times(),
    first: new Uint32Array(lanes),
    last: new Uint32Array(lanes),
  };
}

function combine(
  items: Items,
  i: number,
  j: number,
  base: Items,
  out: Merged,
  at: number,
  classBusy: Float64Array,
): void {
  const busyOf = items.busy ?? items.dur;
  let busy = 0;
  let count = 0;
  let longest = items.id ? (items.id[i] as number) : i;
  for (let k = i; k < j; k++) {
    busy += busyOf[k] as number;
    count += items.count ? (items.count[k] as number) : 1;
    const c = items.eventClass[k] as number;
    classBusy[c] = (classBusy[c] as number) + (busyOf[k] as number);
    const id = items.id ? (items.id[k] as number) : k;
    if ((base.dur[id] as number) > (base.dur[longest] as number)) longest = id;
  }
  let dominant = items.eventClass[i] as number;
  for (let k = i; k < j; k++) {
    const c = items.eventClass[k] as number;
    if ((classBusy[c] as number) > (classBusy[dominant] as number)) dominant = c;
  }
  for (let k = i; k < j; k++) classBusy[items.eventClass[k] as number] = 0;
  out.start[at] = items.start[i] as number;
  out.dur[at] = (items.start[j - 1] as number) + (items.dur[j - 1] as number) - (items.start[i] as number);
  out.kind[at] = base.kind[longest] as number;
  out.eventClass[at] = dominant;
  out.id[at] = longest;
  out.count[at] = count;
  out.busy[at] = busy;
}
