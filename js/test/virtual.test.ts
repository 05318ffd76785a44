import { describe, expect, it } from "vitest";
import { Virtual } from "../src/virtual";

function list(rows: number, tallest = 8_000_000): Virtual {
  const virtual = new Virtual(20, tallest);
  virtual.rows = rows;
  virtual.viewport = 200;
  return virtual;
}

describe("a list that the browser can lay out", () => {
  it("shows the rows in sight, where they belong", () => {
    const virtual = list(1000);
    expect([virtual.height, virtual.range, virtual.perPage]).toEqual([20_000, [0, 10], 10]);
    virtual.scrolled(115);
    expect([virtual.range, virtual.offset(6)]).toEqual([[5, 16], 120]);
    expect(virtual.settle()).toBe(115);
    virtual.scrolled(19_800);
    expect(virtual.range).toEqual([990, 1000]);
  });

  it("scrolls no further than needed to show a row", () => {
    const virtual = list(1000);
    expect(virtual.reveal(5)).toBe(0);
    expect(virtual.reveal(10)).toBe(20);
    expect(virtual.reveal(0)).toBe(0);
    expect(virtual.reveal(500, true)).toBe(500 * 20 - 90);
    expect(virtual.reveal(999)).toBe(19_800);
  });

  it("has no rows to show if there are none, or no room", () => {
    expect(list(0).range).toEqual([0, 0]);
    const virtual = list(50);
    virtual.viewport = 0;
    expect(virtual.range).toEqual([0, 0]);
    expect(list(3).range).toEqual([0, 3]);
  });
});

describe("a list too tall for the browser", () => {
  const ROWS = 1_000_000;

  it("is as tall as it may be, and its scrollbar leads through all rows", () => {
    const virtual = list(ROWS, 100_000);
    expect(virtual.height).toBe(100_000);
    virtual.scrolled(99_800);
    expect(virtual.range).toEqual([ROWS - 10, ROWS]);
    expect(virtual.offset(ROWS - 1)).toBe(100_000 - 20);
    virtual.scrolled(49_900);
    expect(virtual.range[0]).toBe(ROWS / 2 - 5);
    virtual.scrolled(0);
    expect(virtual.range).toEqual([0, 10]);
  });

  it("moves pixel by pixel with the wheel, and puts the scrollbar right when that rests", () => {
    const virtual = list(ROWS, 100_000);
    virtual.scrolled(50_000);
    const [before] = virtual.range;
    for (let i = 1; i <= 30; i++) virtual.scrolled(50_000 + 100 * i);
    expect(virtual.range[0]).toBe(before + 150); // 3,000 px are 150 rows
    const y = virtual.offset(before + 150) - 53_000;
    const to = virtual.settle();
    expect(to).toBeGreaterThan(49_990);
    expect(to).toBeLessThan(50_030);
    virtual.scrolled(to); // the browser reports it
    expect(virtual.range[0]).toBe(before + 150);
    expect(virtual.offset(before + 150) - to).toBeCloseTo(y);
  });

  it("reveals every row at a place in the list", () => {
    const virtual = list(ROWS, 100_000);
    for (const row of [0, 7, 123_456, 999_999, 500_000]) {
      const scroll = virtual.reveal(row, true);
      virtual.scrolled(scroll);
      const y = virtual.offset(row) - scroll;
      expect(y).toBeGreaterThanOrEqual(0);
      expect(y).toBeLessThanOrEqual(180);
      expect(virtual.offset(row) + 20).toBeLessThanOrEqual(virtual.height);
    }
  });
});
