import { describe, expect, it } from "vitest";
import type { Outline, Slice } from "../../src/timeline/types";
import { describeWaits, type Exchange, Waits } from "../../src/timeline/waits";

const outline: Outline = {
  n: 3,
  mode: "client",
  extent: [0, 100],
  ranks: [
    { rank: 0, label: "0" },
    { rank: 1, label: "one" },
  ],
  tracks: [
    { rank: 0, kind: "stream", label: "stream 7", process: "GPU 0", alike: "stream 7", first: 0, sizes: [1] },
    { rank: 1, kind: "stream", label: "stream 7", process: "GPU 0", alike: "stream 7", first: 1, sizes: [2] },
  ],
  names: ["gemm", "all reduce"],
  categories: [],
  category_of: [0, 0],
  class_of: [0, 1],
  iterations: [],
  activity: [[]],
};
const slice = (id: number, lane: number, kind = 1): Slice => ({
  id,
  lane,
  start: 10,
  dur: 5,
  kind,
  count: 1,
});
const exchange: Exchange = { last: slice(1, 1), waiting: [[slice(0, 0), 2_000_000]], through: [] };

describe("waits", () => {
  it("say who waits for whom", () => {
    expect(describeWaits(outline, exchange, slice(0, 0))).toBe("waits 2.00 ms for rank one");
    expect(describeWaits(outline, exchange, slice(1, 1))).toBe("1 rank waits for this one, up to 2.00 ms");
    expect(describeWaits(outline, exchange, slice(2, 1))).toBe("");
  });

  it("say through whom", () => {
    const hop = { last: slice(2, 1), waiting: [[slice(3, 0), 500_000] as const], whole: 1_500_000 };
    const chain: Exchange = { ...exchange, through: [hop] };
    expect(describeWaits(outline, chain, slice(0, 0))).toBe(
      "waits 2.00 ms for rank one, which waits 1.50 ms of that for rank one",
    );
    expect(describeWaits(outline, chain, slice(1, 1))).toBe(
      "1 rank waits for this one, up to 2.00 ms, and through it for rank one",
    );
  });

  it("are asked for of communication only, and the newest answer counts", async () => {
    const asked: number[] = [];
    const answers: (() => void)[] = [];
    let changed = 0;
    const waits = new Waits(
      outline,
      (_: string, params: object) => {
        const { id } = params as { id: number };
        asked.push(id);
        const result = { last: { ...slice(id + 10, 1) }, waiting: [[slice(id, 0), 7]], through: [] };
        return new Promise((resolve) =>
          answers.push(() => resolve({ result: result as never, buffers: [] })),
        );
      },
      () => {
        changed++;
      },
    );
    waits.look(slice(5, 0, 0));
    waits.look(slice(1, 0));
    waits.look(slice(1, 0));
    waits.look(slice(2, 0));
    expect(asked).toEqual([1, 2]);
    for (const answer of answers.reverse()) answer();
    await new Promise((resolve) => setTimeout(resolve));
    expect([changed, waits.exchange?.last.id]).toEqual([1, 12]);
    waits.look(null);
    expect(waits.exchange).toBeNull();
  });

  it("are not asked for where there is no other rank", () => {
    const alone = { ...outline, ranks: outline.ranks.slice(0, 1) };
    const asked: string[] = [];
    const call = (what: string) => {
      asked.push(what);
      return Promise.reject(new Error("no kernel"));
    };
    const look = (one: Outline) => new Waits(one, call, expect.unreachable).look(slice(1, 0));
    look(alone);
    expect(asked).toEqual([]);
    look(outline);
    expect(asked).toEqual(["waits"]);
  });

  it("are silent where nobody knows", async () => {
    const waits = new Waits(outline, () => Promise.reject(new Error("no kernel")), expect.unreachable);
    waits.look(slice(1, 0));
    await new Promise((resolve) => setTimeout(resolve));
    expect(waits.exchange).toBeNull();
  });
});
