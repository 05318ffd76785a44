import { describe, expect, it } from "vitest";
import { decodeSlices, decodeWindow } from "../../src/timeline/decode";
import { findIn, sliceAt } from "../../src/timeline/source";
import type { Items, Outline } from "../../src/timeline/types";
import { shuffled } from "./two_ranks";

const ESCAPE = 0xffffffff;

const float64 = (values: readonly number[]) => [...new Uint8Array(Float64Array.from(values).buffer)];

it("finds the slice at a time, or near it, on its own lane only", () => {
  const items = {
    start: Float64Array.from([0, 50, 20, 40]),
    dur: Float64Array.from([10, 50, 10, 10]),
    kind: Uint16Array.from([0, 1, 2, 3]),
    first: Uint32Array.from([0, 2]),
    last: Uint32Array.from([2, 4]),
  } as unknown as Items;
  const found = (lane: number, t: number, tolerance = 0) => findIn(items, lane, t, tolerance)?.kind;
  expect([5, 10, 30, 60].map((t) => found(0, t))).toEqual([0, 0, undefined, 1]);
  expect([found(0, 14, 5), found(0, 47, 5), found(0, 30, 5)]).toEqual([0, 1, undefined]);
  expect([found(1, 10), found(1, 99, 30), found(0, 15, 3)]).toEqual([undefined, undefined, undefined]);
  expect([found(1, 36, 8), found(1, 34, 8)]).toEqual([3, 2]);
  const other = { ...items, start: Float64Array.from([0, 5, 20, 40]) };
  expect([findIn(other, 0, 10, 0)?.kind, findIn(other, 1, 10, 0)]).toEqual([1, null]);
});

describe("decode", () => {
  it("restores exact times, escapes, kinds and flows", () => {
    const bytes = Uint8Array.from([
      ...shuffled([5, ESCAPE, 0], 4),
      ...shuffled([10, 1, ESCAPE], 4),
      ...float64([6_000_000_000]),
      ...float64([2 ** 40 + 1]),
      ...shuffled([1, 0, 1], 2),
      ...shuffled([2], 4),
      ...shuffled([0], 4),
    ]);
    const outline = {
      tracks: [{ sizes: [2, 1] }],
      class_of: [4, 6],
    } as unknown as Outline;
    const layout = { n: 3, origin: 100, gap_escapes: 1, dur_escapes: 1, kind_bytes: 2, flows: 1 };
    const { items, flows } = decodeSlices(bytes, layout, outline);
    expect([...items.start]).toEqual([105, 6_000_000_115, 100]);
    expect([...items.dur]).toEqual([10, 1, 2 ** 40 + 1]);
    expect([...items.eventClass]).toEqual([6, 4, 6]);
    expect([...items.first]).toEqual([0, 2]);
    expect([...flows.source, ...flows.target]).toEqual([2, 0]);
  });

  it("has the recorded times beside replayed ones", () => {
    const bytes = Uint8Array.from([
      ...shuffled([5, 2], 4),
      ...shuffled([10, 4], 4),
      ...shuffled([0, 0], 2),
      ...float64([0, 7]), // recorded starts, as differences
      ...float64([10, 0]),
    ]);
    const outline = { tracks: [{ sizes: [2] }], class_of: [4] } as unknown as Outline;
    const layout = {
      n: 2,
      origin: 100,
      gap_escapes: 0,
      dur_escapes: 0,
      kind_bytes: 2,
      flows: 0,
      moved: true,
    };
    const { items } = decodeSlices(bytes, layout, outline);
    expect([...items.start, ...items.dur]).toEqual([105, 117, 10, 4]);
    expect(sliceAt(items, 1, 0).was).toEqual([124, 4]);
    expect(sliceAt(items, 0, 0).was).toEqual([105, 20]);
  });

  it("puts a window's items on the requested lanes", () => {
    const bytes = Uint8Array.from([
      ...shuffled([5], 4),
      ...shuffled([10], 4),
      ...shuffled([0], 2),
      ...shuffled([77], 4),
      ...shuffled([3], 4),
      1,
      255,
    ]);
    const layout = { n: 1, origin: 0, gap_escapes: 0, dur_escapes: 0, kind_bytes: 2, sizes: [0, 1] };
    const items = decodeWindow(bytes, layout, [4, 2], 6);
    expect([items.first[2], items.last[2], items.first[4], items.last[4]]).toEqual([0, 1, 0, 0]);
    expect([items.id?.[0], items.count?.[0], items.busy?.[0]]).toEqual([77, 3, 10]);
  });
});
