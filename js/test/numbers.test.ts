import { expect, it } from "vitest";
import { bisectRight, max, min, ticks } from "../src/charts/numbers";

it("finds the ends of a list, past what is missing", () => {
  const values = [Number.NaN, -3, undefined, 5, Number.NaN];
  expect([min(values), max(values)]).toEqual([-3, 5]);
  expect([min([]), max([Number.NaN])]).toEqual([undefined, undefined]);
  expect(max(new Float64Array([-2, -1]))).toBe(-1);
});

it("counts what is not above a value", () => {
  expect([0, 1, 2, 5, 9].map((value) => bisectRight([1, 2, 2, 5], value))).toEqual([0, 1, 3, 4, 4]);
});

it("puts ticks on round numbers, as near to the count as they allow", () => {
  expect(ticks(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
  expect(ticks(0, 0.3, 3)).toEqual([0, 0.1, 0.2, 0.3]);
  expect(ticks(-7, 12, 4)).toEqual([-5, 0, 5, 10]);
  expect(ticks(1234, 1300, 3)).toEqual([1240, 1260, 1280, 1300]);
  expect(ticks(3, 3, 5)).toEqual([3]);
});
