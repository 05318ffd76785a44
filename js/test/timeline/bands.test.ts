import { describe, expect, it } from "vitest";
import { Bands, bandsByRank } from "../../src/timeline/bands";
import type { IterationInfo } from "../../src/timeline/types";

const band = (start: number, end: number, rank = 0): IterationInfo => ({
  rank,
  iteration: start,
  label: "",
  start,
  end,
});

describe("iterations on the axis", () => {
  it("of a view are those that reach into it", () => {
    const bands = new Bands([band(0, 10), band(10, 20), band(25, 30), band(30, 40)]);
    expect(bands.shown({ t0: 12, t1: 26 })).toEqual([1, 3]);
    expect(bands.shown({ t0: 21, t1: 24 })).toEqual([2, 2]);
    expect(bands.shown({ t0: -5, t1: 100 })).toEqual([0, 4]);
    expect(bands.shown({ t0: 50, t1: 60 })).toEqual([4, 4]);
  });

  it("of a view are all found where replayed ones overlap or change places", () => {
    const all = [band(0, 100), band(10, 20), band(50, 60), band(40, 45)];
    const bands = new Bands(all);
    for (const [t0, t1] of [
      [70, 80],
      [41, 44],
      [55, 58],
      [15, 42],
    ] as const) {
      const [from, to] = bands.shown({ t0, t1 });
      const found = all.slice(from, to);
      expect(found).toEqual(expect.arrayContaining(all.filter(({ start, end }) => start < t1 && end > t0)));
    }
  });

  it("are each rank's own, in order", () => {
    const ranks = bandsByRank([band(0, 1, 3), band(0, 1, 0), band(1, 2, 3)]);
    expect([...ranks.keys()]).toEqual([3, 0]);
    expect(ranks.get(3)?.all.map(({ start }) => start)).toEqual([0, 1]);
  });
});
