// Lines of equal value: on a grid of two by two, where anyone can follow them.

import { expect, it } from "vitest";
import { contour, levels, type Point } from "../src/charts/contour";

const place = (column: number, row: number): Point => [10 * column, 100 * row];

it("draws a line where the value is reached, and the area below it", () => {
  // falls from 4 at the first column to 0 at the second
  const { area, lines } = contour({ values: [4, 4, 0, 0], size: 2, place }, 1);
  expect(lines).toEqual([
    [
      [7.5, 100],
      [7.5, 0],
    ],
  ]);
  expect(area).toBe("M7.5 0.0L10.0 0.0L10.0 100.0L7.5 100.0Z");
});

it("joins two low corners of a cell, between two lines", () => {
  const { lines } = contour({ values: [0, 4, 4, 0], size: 2, place }, 1);
  expect(lines).toHaveLength(2);
  for (const [a, b] of lines) expect(Math.abs(a[0] - b[0])).toBe(7.5);
});

it("covers everything, or nothing, without a line", () => {
  const grid = { values: [1, 2, 3, 2], size: 2, place };
  expect(contour(grid, 3)).toMatchObject({ lines: [], area: "M0.0 0.0L10.0 0.0L10.0 100.0L0.0 100.0Z" });
  expect(contour(grid, 0)).toMatchObject({ lines: [], area: "" });
});

it("chooses round levels between the values", () => {
  expect(levels([38, 182], 8, 1)).toEqual([40, 60, 80, 100, 120, 140, 160, 180]);
  expect(levels([99, 101.5], 8, 1)).toEqual([100, 101]);
  expect(levels([100, 100], 8, 1)).toEqual([]);
});
