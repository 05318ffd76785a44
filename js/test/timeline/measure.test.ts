import { describe, expect, it } from "vitest";
import { describeMeasured, measured } from "../../src/timeline/measure";
import type { Outline, Slice } from "../../src/timeline/types";

const outline = { names: ["gemm", "copy"] } as unknown as Outline;
const slice = (id: number, start: number, dur: number): Slice => ({
  id,
  lane: id,
  start,
  dur,
  kind: id % 2,
  count: 1,
});
const told = (a: Slice, b: Slice) => {
  const found = measured(a, b);
  return found && describeMeasured(outline, found).lines;
};

describe("the time between two slices", () => {
  it("is told from the first to the second, whichever was chosen first", () => {
    const [a, b] = [slice(0, 1000, 500), slice(1, 4000, 2000)];
    const lines = [
      "start to start 3.00 µs (3,000 ns)",
      "end to start 2.50 µs (2,500 ns)",
      "first start to last end 5.00 µs (5,000 ns)",
      "gemm → copy",
    ];
    expect(told(a, b)).toEqual(lines);
    expect(told(b, a)).toEqual(lines);
  });

  it("is an overlap where the second begins before the first ends", () => {
    expect(told(slice(0, 0, 900), slice(1, 300, 100))).toEqual([
      "start to start 300 ns (300 ns)",
      "overlap 100 ns (100 ns)",
      "first start to last end 900 ns (900 ns)",
      "gemm → copy",
    ]);
  });

  it("needs two of them", () => {
    expect(measured(slice(0, 0, 9), null)).toBeNull();
    expect(measured(null, slice(0, 0, 9))).toBeNull();
    expect(measured(slice(0, 0, 9), slice(0, 0, 9))).toBeNull();
  });
});
