// @vitest-environment node
import { expect, it } from "vitest";
import type { Items, Outline, TrackInfo } from "../../src/timeline/types";
import { describeWindow, windowSums } from "../../src/timeline/window_sums";

const track = (rank: number, kind: TrackInfo["kind"], first: number, sizes: number[]): TrackInfo => ({
  rank,
  kind,
  label: `${kind} ${first}`,
  process: "GPU 0",
  alike: kind,
  first,
  sizes,
});
const outline: Outline = {
  n: 0,
  mode: "client",
  extent: [0, 1000],
  ranks: [0, 1, 2, 3, 4].map((rank) => ({ rank, label: `${rank}` })),
  tracks: [track(0, "stream", 0, [40, 40]), track(1, "stream", 2, [40]), track(1, "thread", 3, [40, 40])],
  names: ["gemm", "add", "void at::native::copy<float>(int)", "AllReduce"],
  categories: [""],
  category_of: [0, 0, 0, 0],
  class_of: [0, 0, 0, 1],
  iterations: [],
  activity: [[]],
};

/** Slices of five lanes, disjoint on each, some of them without a duration. */
function randomItems(next: () => number): Items {
  const [start, dur, kind]: [number[], number[], number[]] = [[], [], []];
  const first: number[] = [];
  for (let lane = 0; lane < 5; lane++) {
    first.push(start.length);
    let t = Math.floor(next() * 50);
    for (let i = 0; i < 40; i++) {
      const length = Math.floor(next() * 20);
      start.push(t);
      dur.push(length);
      kind.push(Math.floor(next() * 4));
      t += length + Math.floor(next() * 12) + (length ? 0 : 1);
    }
  }
  return {
    start: Float64Array.from(start),
    dur: Float64Array.from(dur),
    kind: Uint16Array.from(kind),
    eventClass: new Uint8Array(start.length),
    id: null,
    count: null,
    busy: null,
    first: Uint32Array.from(first),
    last: Uint32Array.from(first, (from) => from + 40),
  };
}

it("sums up what lies in a window as a count of every nanosecond does", () => {
  let seed = 7;
  const next = () => {
    seed = (seed * 48271) % 2147483647;
    return seed / 2147483647;
  };
  for (let round = 0; round < 40; round++) {
    const items = randomItems(next);
    const t0 = Math.floor(next() * 700);
    const t1 = t0 + 1 + Math.floor(next() * 300);
    const lanes = round % 4 === 0 ? [3, 4] : [0, 1, 2, 3].slice(round % 3);
    const found = windowSums(outline, items, t0, t1, lanes);
    let slices = 0;
    const time = new Map<number, [ns: number, count: number]>();
    const busy = new Map<number, Set<number>>();
    for (const lane of lanes) {
      const of = outline.tracks.find((one) => lane >= one.first && lane < one.first + one.sizes.length);
      const covered = busy.get(of?.rank as number) ?? new Set();
      if (of?.kind === "stream") busy.set(of.rank, covered);
      for (let at = lane * 40; at < lane * 40 + 40; at++) {
        const [a, d, k] = [items.start[at], items.dur[at], items.kind[at]] as [number, number, number];
        if (a >= t1 || (a + d <= t0 && a < t0)) continue;
        slices++;
        if ((of?.kind === "stream") === lanes.some((one) => one < 3)) {
          const [ns, count] = time.get(k) ?? [0, 0];
          time.set(k, [ns + Math.min(a + d, t1) - Math.max(a, t0), count + 1]);
        }
        if (of?.kind !== "stream") continue;
        for (let t = Math.max(a, t0); t < Math.min(a + d, t1); t++) covered.add(t);
      }
    }
    expect(found.slices).toBe(slices);
    expect(new Map(found.busy)).toEqual(new Map([...busy].map(([rank, covered]) => [rank, covered.size])));
    const longest = [...time].filter(([, [ns]]) => ns > 0).sort((a, b) => b[1][0] - a[1][0] || a[0] - b[0]);
    expect(found.longest).toEqual(longest.slice(0, 3).map(([kind, [ns, count]]) => [kind, ns, count]));
  }
});

it("tells what a window holds: of few ranks each, of many the least and the most", () => {
  const told = (busy: [number, number][], longest: [number, number, number][] = []) =>
    describeWindow(outline, 100, 1100, { slices: 1234, busy, longest }).lines;
  expect(describeWindow(outline, 100, 1100, { slices: 1, busy: [], longest: [] })).toEqual({
    name: "1.00 µs (1,000 ns)",
    lines: ["1 slice on the lanes shown"],
  });
  expect(told([[0, 250]], [[2, 600, 3]])).toEqual([
    "1,234 slices on the lanes shown",
    "streams busy 25.0 %",
    "600 ns in 3 × copy",
  ]);
  const pair: [number, number][] = [
    [1, 500],
    [0, 250],
  ];
  expect(told(pair)[1]).toBe("streams busy 50.0 % (rank 1), 25.0 % (rank 0)");
  const many: [number, number][] = [
    [0, 500],
    [1, 250],
    [2, 750],
    [3, 500],
    [4, 500],
  ];
  expect(told(many)[1]).toBe("streams busy 25.0 % (rank 1) to 75.0 % (rank 2), 50.0 % on average");
  expect(told([], [[0, 600, 3]])[1]).toBe("600 ns in 3 × gemm, with what it calls");
});
