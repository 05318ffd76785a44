import { describe, expect, it } from "vitest";
import { type Flag, flagAt, nextFlag, withFlag, withoutFlag } from "../../src/timeline/flags";
import { MINIMAP_HEIGHT, type Place, TOP } from "../../src/timeline/frame";
import { actionOf } from "../../src/timeline/keys";

const place: Place = { view: { t0: 0, t1: 1000 }, gutter: 100, width: 1100, height: 400, scroll: 0 };
const flags: Flag[] = [
  [100, "a"],
  [103, "b"],
  [700, ""],
];

describe("flags", () => {
  it("stand by their time, one at each", () => {
    expect(withFlag(flags, [500, "c"]).map(([time]) => time)).toEqual([100, 103, 500, 700]);
    expect(withFlag(flags, [103, "other"])).toEqual([
      [100, "a"],
      [103, "other"],
      [700, ""],
    ]);
    expect(withoutFlag(flags, 103).map(([time]) => time)).toEqual([100, 700]);
    expect(withoutFlag(flags, 104)).toEqual(flags);
  });

  it("follow one another, and after the last comes the first", () => {
    expect(nextFlag(flags, 0)?.[0]).toBe(100);
    expect(nextFlag(flags, 100)?.[0]).toBe(103);
    expect(nextFlag(flags, 700)?.[0]).toBe(100);
    expect(nextFlag([], 0)).toBeUndefined();
  });

  it("are hit on the time axis only, the one in front first", () => {
    expect(flagAt(place, flags, 800, TOP - 1)?.[0]).toBe(700);
    expect(flagAt(place, flags, 805, MINIMAP_HEIGHT)?.[0]).toBe(700);
    expect(flagAt(place, flags, 806, TOP - 1)).toBeUndefined();
    expect(flagAt(place, flags, 800, TOP)).toBeUndefined();
    expect(flagAt(place, flags, 800, MINIMAP_HEIGHT - 1)).toBeUndefined();
    expect(flagAt(place, flags, 201, TOP - 1)?.[0]).toBe(103);
    expect(flagAt({ ...place, view: { t0: 102, t1: 202 } }, flags, 99, TOP - 1)).toBeUndefined();
  });

  it("have keys", () => {
    const key = { code: "", key: "m", ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };
    expect(actionOf(key)).toEqual({ do: "flag" });
    expect(actionOf({ ...key, key: "M", shiftKey: true })).toEqual({ do: "nextFlag" });
    expect(actionOf({ ...key, ctrlKey: true })).toBeNull();
  });
});
