import { describe, expect, it } from "vitest";
import type { Place } from "../../src/timeline/frame";
import { describeMeasured, drawMeasured, measured } from "../../src/timeline/measure";
import type { Palette } from "../../src/timeline/palette";
import type { Outline, Slice } from "../../src/timeline/types";
import { pen } from "./pen";

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

  it("is an arrow between their rows, with the time on a box in its middle", () => {
    const done: [string, ...unknown[]][] = [];
    const context = pen((name: string, ...given: unknown[]) => {
      if (name === "measureText") return { width: 6 * String(given[0]).length };
      return done.push([name, ...given]);
    });
    const place: Place = { view: { t0: 0, t1: 1000 }, gutter: 100, width: 1100, height: 300, scroll: 0 };
    const rows = new Map([0, 1].map((lane) => [lane, { lane, y: 100 * lane, h: 20 }] as const));
    const draw = (a: Slice, b: Slice) => {
      done.length = 0;
      const found = measured(a, b);
      if (found) drawMeasured(context, place, rows as never, found, {} as Palette);
      const lines = done.filter(([name]) => name === "moveTo" || name === "lineTo").slice(0, 3);
      const [, box, , width] = done.find(([name]) => name === "fillRect") as [string, number, number, number];
      const [, text, at] = done.find(([name]) => name === "fillText") as [string, string, number];
      expect(at - box).toBe((width - 6 * text.length) / 2); // as much room left as right
      return { across: lines.map(([, x]) => x), text, middle: box + width / 2 };
    };
    expect(draw(slice(0, 100, 100), slice(1, 500, 50))).toEqual({
      across: [300, 300, 600],
      text: "300 ns",
      middle: 450,
    });
    expect(draw(slice(0, 100, 600), slice(1, 500, 50))).toMatchObject({
      across: [200, 200, 600],
      text: "400 ns",
    });
  });
});
