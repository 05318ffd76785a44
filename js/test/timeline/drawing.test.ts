import { describe, expect, it } from "vitest";
import { actionOf } from "../../src/timeline/keys";
import { shortName } from "../../src/timeline/labels";
import { hiding, isShown } from "../../src/timeline/lane_choice";
import { arrange, type Header, headerTop, rowAt, rowsBetween, scrolled } from "../../src/timeline/layout";
import { rasterise } from "../../src/timeline/scanline";
import type { Items, Outline, TrackInfo } from "../../src/timeline/types";

const stream: TrackInfo = { rank: 0, kind: "stream", label: "GPU 0 stream 7", first: 0, sizes: [50] };
const thread: TrackInfo = { rank: 0, kind: "thread", label: "main", first: 1, sizes: [1, 1, 1, 1, 500, 900] };
const other: TrackInfo = { rank: 3, kind: "stream", label: "GPU 3 stream 7", first: 7, sizes: [9] };
const outline: Outline = {
  n: 0,
  mode: "client",
  extent: [0, 100],
  ranks: [
    { rank: 0, label: "0" },
    { rank: 3, label: "3" },
  ],
  tracks: [stream, thread, other],
  names: [],
  categories: [],
  category_of: [],
  class_of: [],
  iterations: [],
  activity: [[]],
};
const open = { collapsedRanks: new Set<number>(), unfolded: new Set<number>() };

describe("layout", () => {
  it("has one row per lane, in order, without overlap", () => {
    const { rows, height } = arrange(outline, [], open);
    expect(rows.map((row) => row.lane)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    rows.reduce((before, row) => {
      expect(row.y).toBeGreaterThanOrEqual(before.y + before.h);
      return row;
    });
    expect(height).toBeGreaterThan((rows.at(-1)?.y ?? 0) + 1);
  });

  it("shows the chosen ranks only, and no lanes of a collapsed one", () => {
    expect(arrange(outline, [3], open).rows.map((row) => row.lane)).toEqual([7]);
    const folded = arrange(outline, [], { ...open, collapsedRanks: new Set([0]) });
    expect(folded.rows.map((row) => row.lane)).toEqual([7]);
    expect(folded.headers).toHaveLength(2);
  });

  it("shows the lanes that words choose, and pinned ones first, whatever the words", () => {
    const lanes = (filter: string, pinned: [number, string][] = []) =>
      arrange(outline, [], open, { filter, pinned }).rows.map((row) => row.lane);
    expect(lanes("STREAM")).toEqual([0, 7]);
    expect(lanes("stream, rank 3")).toEqual([7]);
    expect([lanes("gpu 3 stream 7,"), lanes("rank 30"), lanes("ank 3"), lanes("stream 77")]).toEqual([
      [7],
      [],
      [7],
      [],
    ]);
    expect(lanes("-stream")).toEqual([1, 2, 3, 4, 5, 6]);
    expect(lanes("nothing like it")).toEqual([]);
    expect(lanes(hiding(outline, other, ""))).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(lanes(hiding(outline, other, " stream "))).toEqual([0]);
    const odd = { ...thread, label: "a, b" };
    expect(isShown({ ...outline, tracks: [odd] }, odd, hiding(outline, odd, ""))).toBe(false);
    expect(lanes("main", [[3, "GPU 3 stream 7"]])).toEqual([7, 1, 2, 3, 4, 5, 6]);
    expect(
      arrange(outline, [], open, { filter: "main", pinned: [] }).headers.map(({ rank }) => rank),
    ).toEqual([0]);
  });

  it("keeps what is pinned in place, over the rows that scroll under it", () => {
    const choice = { filter: "", pinned: [[3, "GPU 3 stream 7"]] as [number, string][] };
    const layout = arrange(outline, [], open, choice);
    expect(scrolled(layout, 0)).toBe(layout);
    const moved = scrolled(layout, 40);
    expect(moved.rows[0]).toEqual({ ...layout.rows[0], y: (layout.rows[0]?.y ?? 0) + 40 });
    expect(moved.tracks[0]?.text).toBe("▴ 3 · GPU 3 stream 7");
    expect(moved.rows.slice(1)).toEqual(layout.rows.slice(1).filter(({ y }) => y >= layout.pinned + 40));
    expect(moved.rows.length).toBeLessThan(layout.rows.length);
    const [first, last] = layout.headers as [Header, Header];
    // a header stays below what is pinned while its rank scrolls past, then the next one pushes it away
    expect(headerTop(moved, first, 40)).toBe(moved.pinned);
    expect(headerTop(moved, last, 40)).toBe(last.y - 40);
    expect(headerTop(moved, first, first.bottom - moved.pinned - 15)).toBe(moved.pinned - 5);
    expect(headerTop(moved, first, first.bottom - moved.pinned)).toBeNull();
    const bare = arrange(outline, [], open);
    expect([0, 40].map((scroll) => headerTop(bare, bare.headers[0] as Header, scroll))).toEqual([0, 0]);
  });

  it("folds outer frames until they are unfolded", () => {
    expect(arrange(outline, [0], open).rows[1]?.h).toBe(2);
    expect(arrange(outline, [0], { ...open, unfolded: new Set([1]) }).rows[1]?.h).toBe(14);
  });

  it("finds rows by height", () => {
    const { rows } = arrange(outline, [], open);
    for (const row of rows) {
      expect(rowAt(rows, row.y)).toBe(row);
      expect(rowAt(rows, row.y + row.h - 0.5)).toBe(row);
    }
    expect(rowAt(rows, 5)).toBeNull();
    const visible = rowsBetween(rows, 25, 60);
    expect(visible).toEqual(rows.filter((row) => row.y + row.h > 25 && row.y < 60));
  });
});

describe("scanline", () => {
  const items: Items = {
    start: Float64Array.of(0, 40, 60),
    dur: Float64Array.of(20, 0, 40),
    kind: Uint16Array.of(0, 0, 0),
    eventClass: Uint8Array.of(0, 0, 0),
    id: null,
    count: null,
    busy: null,
    first: Uint32Array.of(0),
    last: Uint32Array.of(3),
  };
  const palette = { classes: [[255, 0, 0] as const], kinds: Uint32Array.of(0xff0000ff) };
  const WHITE = 0xffffffff;

  it("fills wide slices, and shows a slice without length", () => {
    const pixels = new Uint32Array(10).fill(WHITE);
    const sums = new Float32Array(40);
    const names = { least: 4, found: [] };
    rasterise(items, 0, { t0: 0, t1: 100 }, palette, pixels, 0, 10, sums, names);
    expect(pixels[0]).toBe(0xff0000ff);
    expect(pixels[2]).toBe(WHITE);
    expect((pixels[4] as number) >>> 24, "stays opaque").toBe(255);
    expect((pixels[4] as number) & 0xff).toBe(255);
    expect((pixels[4] as number) & 0xff00, "tinted").toBeLessThan(0xe000);
    expect(pixels[7]).toBe(0xff0000ff);
    expect(sums.every((v) => v === 0)).toBe(true);
    expect(names.found, "wide enough for a name").toEqual([2]);
  });

  it("leaves a gap between neighbours, which are two and not one", () => {
    const touching = { ...items, start: Float64Array.of(0, 40, 60), dur: Float64Array.of(40, 20, 40) };
    const pixels = new Uint32Array(20).fill(WHITE);
    const names = { least: 99, found: [] };
    rasterise(touching, 0, { t0: 0, t1: 100 }, palette, pixels, 0, 20, new Float32Array(80), names);
    expect([...pixels].flatMap((colour, x) => (colour === WHITE ? [x] : []))).toEqual([7, 11, 19]);
  });
});

describe("names", () => {
  it("keeps a kernel's own name", () => {
    expect(shortName("void at::native::(anonymous namespace)::softmax<float, 4>(float*)")).toBe("softmax");
    expect(shortName("/usr/lib/torch/module.py(12): forward")).toBe("module.py(12): forward");
    expect(shortName("<built-in method to>")).toBe("<built-in method to>");
    expect(shortName("aten::mm")).toBe("mm");
  });
});

describe("keys", () => {
  const plain = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };
  const key = (code: string, text: string, shiftKey = false) =>
    actionOf({ ...plain, code, key: text, shiftKey });

  it("reads zoom and pan by position, the rest by character, and leaves combinations alone", () => {
    expect(key("KeyW", "z")).toMatchObject({ do: "zoom" });
    expect(key("KeyF", "f")).toEqual({ do: "fit" });
    expect(key("BracketRight", "]")).toEqual({ do: "iteration", step: 1 });
    for (const combination of ["ctrlKey", "metaKey", "altKey"])
      expect(actionOf({ ...plain, code: "KeyS", key: "s", [combination]: true })).toBeNull();
    expect(key("Tab", "Tab")).toBeNull();
  });

  it("steps through matches with N and Enter, backwards with Shift", () => {
    expect(key("KeyN", "n")).toEqual({ do: "match", step: 1 });
    expect(key("KeyN", "N", true)).toEqual({ do: "match", step: -1 });
    expect(key("Enter", "Enter", true)).toEqual({ do: "match", step: -1 });
  });
});
