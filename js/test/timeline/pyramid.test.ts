import { describe, expect, it } from "vitest";
import { coarserLevels, firstMerges, type Level, merge, range } from "../../src/timeline/pyramid";
import type { Items } from "../../src/timeline/types";

/** Two lanes of disjoint slices of mixed length, from a fixed seed. */
function slices(n: number): Items {
  let seed = 7;
  const random = () => {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff;
    return seed / 0x7fffffff;
  };
  const start = new Float64Array(n);
  const dur = new Float64Array(n);
  for (let i = 0, t = 0; i < n; i++) {
    if (i === n >> 1) t = 0;
    t += Math.floor(random() ** 4 * 20_000);
    start[i] = t;
    dur[i] = Math.floor(random() ** 6 * 30_000);
    t += dur[i] as number;
  }
  return {
    start,
    dur,
    kind: Uint16Array.from({ length: n }, () => Math.floor(random() * 9)),
    eventClass: Uint8Array.from({ length: n }, () => Math.floor(random() * 3)),
    id: null,
    count: null,
    busy: null,
    first: Uint32Array.of(0, n >> 1),
    last: Uint32Array.of(n >> 1, n),
  };
}

const sum = (values: ArrayLike<number>) => Array.from(values).reduce((a, b) => a + b, 0);

describe("pyramid", () => {
  const base = slices(20_000);
  const span = Math.max(...Array.from(base.start, (s, i) => s + (base.dur[i] as number)));

  it("conserves counts and busy time at every level", () => {
    const levels = [...coarserLevels(base, span)];
    expect(levels.length).toBeGreaterThan(1);
    for (const { items } of levels) {
      expect(sum(items.count as Uint32Array)).toBe(20_000);
      expect(sum(items.busy as Float64Array)).toBe(sum(base.dur));
    }
  });

  it("has the same levels where times need 32 bits, and 64 for what is longer when merged", () => {
    const short = { ...base, dur: Uint32Array.from(base.dur) };
    const [wide, narrow] = [merge(base, 8192, base), merge(short, 8192, short)];
    expect(narrow.dur).toBeInstanceOf(Uint32Array);
    expect([...narrow.dur]).toEqual([...wide.dur]);
    expect([...(narrow.busy ?? [])]).toEqual([...(wide.busy ?? [])]);
    const start = Float64Array.of(0, 3e9);
    const two = { ...base, start, dur: Uint32Array.of(3e9, 4e9) };
    const one = { ...two, first: Uint32Array.of(0), last: Uint32Array.of(2) };
    const { dur, busy } = merge(one, 2 ** 32, one);
    expect([...dur, ...(busy ?? [])]).toEqual([7e9, 7e9]);
  });

  it("gives the same level from a finer one as from the slices", () => {
    const direct = merge(base, 8192, base);
    const stepwise = merge(merge(merge(base, 2048, base), 4096, base), 8192, base);
    // The class is a vote of votes; all else is exact.
    expect({ ...stepwise, eventClass: null }).toEqual({ ...direct, eventClass: null });
  });

  it("knows the size of every level before it makes one", () => {
    const later = { ...base, start: base.start.map((start) => start + 2 ** 40 - 2 ** 25) };
    const before = { ...base, start: base.start.map((start) => start - 2 ** 26) };
    const long = { ...base, dur: base.dur.map((dur, i) => (i % 100 === 0 ? dur + 2 ** 33 : dur)) };
    for (const items of [base, later, before, long]) {
      const merges = firstMerges(items);
      let left = items.start.length;
      for (let bits = 0; bits < 45; bits++) {
        left -= merges[bits] as number;
        expect(merge(items, 2 ** bits, items).start.length).toBe(left);
      }
    }
  });

  it("keeps the levels that are much smaller than the slices", () => {
    const widths = Array.from({ length: 30 }, (_, i) => 1024 * 2 ** i).filter(
      (width) => width * 256 <= span && merge(base, width, base).start.length <= 0.25 * 20_000,
    );
    expect([...coarserLevels(base, span)].map(({ width }) => width)).toEqual(widths);
  });

  it("names the longest of what it merged, and spans all of it", () => {
    const { items } = [...coarserLevels(base, span)].at(-1) as Level;
    let at = 0;
    for (let lane = 0; lane < 2; lane++) {
      for (let i = items.first[lane] as number; i < (items.last[lane] as number); i++) {
        const merged = Array.from({ length: items.count?.[i] as number }, (_, k) => at + k);
        at += merged.length;
        const longest = Math.max(...merged.map((k) => base.dur[k] as number));
        expect(base.dur[items.id?.[i] as number]).toBe(longest);
        const [first, last] = [merged[0] as number, merged.at(-1) as number];
        expect(items.start[i]).toBe(base.start[first]);
        const end = (base.start[last] as number) + (base.dur[last] as number);
        expect((items.start[i] as number) + (items.dur[i] as number)).toBe(end);
      }
    }
    expect(at).toBe(20_000);
  });

  it("finds the item that began before a window and reaches into it", () => {
    const i = base.dur.indexOf(Math.max(...base.dur.subarray(0, 10_000)));
    const inside = (base.start[i] as number) + (base.dur[i] as number) / 2;
    expect(range(base, 0, inside, inside + 1)).toEqual([i, i + 1]);
    const end = (base.start[i] as number) + (base.dur[i] as number);
    expect(range(base, 0, end, end)).toEqual([i + 1, i + 1]);
  });

  it("finds every item that touches a window", () => {
    for (const [t0, t1] of [
      [0, span],
      [span / 3, span / 2],
      [span * 0.7, span * 0.7001],
    ] as const) {
      for (const lane of [0, 1]) {
        const [a, b] = range(base, lane, t0, t1);
        const found = new Set(Array.from({ length: b - a }, (_, i) => a + i));
        for (let i = base.first[lane] as number; i < (base.last[lane] as number); i++) {
          const start = base.start[i] as number;
          if (start < t1 && start + (base.dur[i] as number) > t0) expect(found.has(i)).toBe(true);
        }
      }
    }
  });
});
