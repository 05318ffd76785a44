import { describe, expect, it } from "vitest";
import { ClientSource } from "../../src/timeline/client";
import { BINS, type Choice, choiceOf, Levels, Matches } from "../../src/timeline/matches";
import { pinch } from "../../src/timeline/pinch";
import { gapIn } from "../../src/timeline/source";
import type { Items, Outline } from "../../src/timeline/types";

// two ranks with a stream and a thread each; the threads have two lanes
const outline: Outline = {
  n: 10,
  mode: "client",
  extent: [0, 1024],
  ranks: [
    { rank: 0, label: "0" },
    { rank: 1, label: "1" },
  ],
  tracks: [
    {
      rank: 0,
      kind: "stream",
      label: "GPU 0 stream 7",
      process: "GPU 0",
      alike: "stream 7",
      first: 0,
      sizes: [2],
    },
    {
      rank: 0,
      kind: "thread",
      label: "main",
      process: "process 1",
      alike: "threads",
      first: 1,
      sizes: [2, 3],
    },
    {
      rank: 1,
      kind: "stream",
      label: "GPU 1 stream 7",
      process: "GPU 1",
      alike: "stream 7",
      first: 3,
      sizes: [2],
    },
    { rank: 1, kind: "thread", label: "main", process: "process 1", alike: "threads", first: 4, sizes: [1] },
  ],
  names: ["gemm_kernel", "aten::mm", "launch", "AllReduce"],
  categories: [""],
  category_of: [0, 0, 0, 0],
  class_of: [0, 5, 6, 1],
  iterations: [],
  activity: [[]],
};
const items: Items = {
  start: Float64Array.of(100, 500, 0, 400, 10, 60, 410, 120, 700, 0),
  dur: Float64Array.of(100, 50, 90, 100, 20, 30, 20, 80, 10, 600),
  kind: Uint16Array.of(0, 3, 1, 1, 2, 2, 2, 0, 3, 1),
  eventClass: Uint8Array.of(0, 1, 5, 5, 6, 6, 6, 0, 1, 5),
  id: null,
  count: null,
  busy: null,
  first: Uint32Array.of(0, 2, 4, 7, 9),
  last: Uint32Array.of(2, 4, 7, 9, 10),
};
const source = () =>
  new ClientSource(
    outline,
    items,
    { source: new Int32Array(), target: new Int32Array() },
    new AbortController().signal,
  );

describe("levels", () => {
  it("tell what stands for several slices: their names are not drawn", async () => {
    const n = 4096;
    const start = Float64Array.from({ length: n }, (_, i) => i * 128);
    const dur = new Uint32Array(n).fill(100);
    start[n - 1] = n * 128;
    dur[n - 1] = 1500; // longer than a bucket
    const many: Items = {
      ...items,
      start,
      dur,
      kind: new Uint16Array(n),
      eventClass: new Uint8Array(n),
      first: Uint32Array.of(0),
      last: Uint32Array.of(n),
    };
    const levels = new Levels(many);
    await levels.refine(2 ** 19);
    const { count } = levels.at(1024);
    expect(count?.length).toBe(n / 8 + 1);
    expect([count?.[0], count?.at(-1)]).toEqual([2, 1]);
  });
});

describe("choice", () => {
  it("takes slices whose name is one of the names and holds the text, whatever the case", () => {
    const kinds = (names: string[], query: string) => [...(choiceOf(outline, names, query, [])?.kinds ?? [])];
    expect(kinds([], "  MM")).toEqual([1, 1, 0, 0]);
    expect(kinds([], "allreduce")).toEqual([0, 0, 0, 1]);
    expect(kinds(["aten::mm", "no such name"], "")).toEqual([0, 1, 0, 0]);
    expect(kinds(["aten::mm"], "gemm")).toEqual([0, 0, 0, 0]);
    expect(choiceOf(outline, [], "  ", [])).toBeNull();
  });
});

describe("matches", () => {
  it("are counted in all, and by where they begin", async () => {
    const found = await source().choose(choiceOf(outline, [], "gemm", []));
    expect(found.count).toBe(2);
    expect(found.bins).toHaveLength(BINS);
    expect([...(found.bins as Uint32Array)].flatMap((n, bin) => (n ? [bin] : []))).toEqual([100, 120]);
  });

  it("count what begins at the very end", () => {
    const last = { ...items, start: Float64Array.from(items.start, (t) => t + 324) }; // 700 becomes 1024
    const choice = choiceOf(outline, [], "AllReduce", []);
    const { count, bins } = new Matches(last, outline, choice as Choice).found(outline.extent);
    expect([count, [...(bins as Uint32Array)].reduce((a, b) => a + b)]).toEqual([2, 2]);
    expect(bins[BINS - 1]).toBe(1);
  });

  it("are those of the chosen ranks", async () => {
    const chosen = source();
    expect((await chosen.choose(choiceOf(outline, [], "gemm", [1]))).count).toBe(1);
    expect(chosen.matchItems()?.start).toEqual(Float64Array.of(120));
    expect((await chosen.choose(null)).count).toBe(0);
    expect(chosen.matchItems()).toBeNull();
  });

  it("are listed page by page, by start or the longest first", async () => {
    const chosen = source();
    await chosen.choose(choiceOf(outline, [], "e", []));
    const all = await chosen.matchPage("start", 0, 100);
    const key = (one: (typeof all)[number]) => [one.start, one.id];
    expect(all.map(key)).toEqual(
      all.map(key).sort(([a, b], [c, d]) => Number(a) - Number(c) || Number(b) - Number(d)),
    );
    expect([
      ...(await chosen.matchPage("start", 0, 2)),
      ...(await chosen.matchPage("start", 2, 100)),
    ]).toEqual(all);
    const longest = await chosen.matchPage("dur", 0, 100);
    expect(longest.map(({ dur }) => dur)).toEqual(all.map(({ dur }) => dur).sort((a, b) => b - a));
    expect(longest.map(({ id }) => id).sort()).toEqual(all.map(({ id }) => id).sort());
    expect(await chosen.matchPage("dur", all.length, 5)).toEqual([]);
    await chosen.choose(null);
    expect(await chosen.matchPage("dur", 0, 5)).toEqual([]);
  });

  it("follow each other in time over all lanes, and around the end", async () => {
    const chosen = source();
    await chosen.choose(choiceOf(outline, [], "e", [])); // gemm_kernel, aten::mm, AllReduce
    const walk = async (step: 1 | -1) => {
      const ids: number[] = [];
      let at = { start: -1, id: -1 };
      for (let i = 0; i < 8; i++) {
        const next = await chosen.nextMatch(at, step);
        if (next) at = next;
        ids.push(at.id);
      }
      return ids;
    };
    expect(await walk(1)).toEqual([2, 9, 0, 7, 3, 1, 8, 2]);
    expect(await walk(-1)).toEqual([8, 1, 3, 7, 0, 9, 2, 8]);
    await chosen.choose(choiceOf(outline, [], "no such name", []));
    expect(await chosen.nextMatch({ start: 0, id: 0 }, 1)).toBeNull();
  });
});

describe("relatives", () => {
  it("are the call around and the first call inside", async () => {
    const known = source();
    const id = async (of: number, to: "parent" | "child") => {
      const slice = await known.slice(of);
      return slice && (await known.relative(slice, to))?.id;
    };
    expect(await id(4, "parent")).toBe(2);
    expect(await id(6, "parent")).toBe(3);
    expect(await id(2, "child")).toBe(4);
    expect(await id(2, "parent")).toBeUndefined();
    expect(await id(9, "child")).toBeUndefined();
    expect(await id(0, "child")).toBeUndefined(); // a stream's slice calls nothing
  });
});

describe("gaps", () => {
  it("reach from slice to slice, or to the end of the trace", () => {
    expect(gapIn(items, [0], 300, outline.extent)).toEqual([200, 500]);
    expect(gapIn(items, [0], 20, outline.extent)).toEqual([0, 100]);
    expect(gapIn(items, [0], 800, outline.extent)).toEqual([550, 1024]);
    expect(gapIn(items, [0], 150, outline.extent)).toBeNull();
  });

  it("are gaps on all lanes of a stream", () => {
    expect(gapIn(items, [0, 3], 300, outline.extent)).toEqual([200, 500]);
    expect(gapIn(items, [0, 4], 300, outline.extent)).toBeNull();
  });
});

describe("pinch", () => {
  it("zooms by how far the fingers spread and moves with them", () => {
    const before = [
      { x: 100, y: 0 },
      { x: 200, y: 0 },
    ] as const;
    const now = [
      { x: 60, y: 10 },
      { x: 260, y: 10 },
    ] as const;
    expect(pinch(before, now)).toEqual({ factor: 0.5, from: { x: 150, y: 0 }, to: { x: 160, y: 10 } });
    const closed = [
      { x: 150, y: 0 },
      { x: 150, y: 0 },
    ] as const;
    expect(pinch(closed, closed).factor).toBe(1);
  });
});
