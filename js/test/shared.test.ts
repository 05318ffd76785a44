import { describe, expect, it } from "vitest";
import { pick, ranges } from "../src/shared";

const none = { shiftKey: false, ctrlKey: false, metaKey: false };
const all = [0, 1, 2, 5, 6];

describe("pick", () => {
  it("selects one alone, and all when it was the only one", () => {
    expect(pick(all, [0, 1], 2, null, none)).toEqual([2]);
    expect(pick(all, [2], 2, null, none)).toEqual([]);
  });
  it("toggles with Ctrl or Cmd, in order", () => {
    expect(pick(all, [5], 1, null, { ...none, ctrlKey: true })).toEqual([1, 5]);
    expect(pick(all, [1, 5], 5, null, { ...none, metaKey: true })).toEqual([1]);
  });
  it("selects a range with Shift, either way round", () => {
    expect(pick(all, [], 1, 5, { ...none, shiftKey: true })).toEqual([1, 2, 5]);
    expect(pick(all, [], 6, 0, { ...none, shiftKey: true })).toEqual([]); // everything is "all"
  });
});

it("names runs of numbers", () => {
  expect(ranges([0, 1, 2, 5, 7, 8])).toBe("0–2, 5, 7–8");
  expect(ranges([])).toBe("all");
});
