import { describe, expect, it } from "vitest";
import { Bands } from "../../src/timeline/bands";
import { drawAxis, MINIMAP_HEIGHT, shortened, TOP } from "../../src/timeline/frame";
import { actionOf } from "../../src/timeline/keys";
import { shortName } from "../../src/timeline/labels";
import { ALL_LANES, hiding, isShown, type LaneChoice } from "../../src/timeline/lane_choice";
import { LaneView } from "../../src/timeline/lane_view";
import { arrange, type Header, headerTop, rowAt, rowsBetween, scrolled } from "../../src/timeline/layout";
import type { Palette } from "../../src/timeline/palette";
import { rasterise } from "../../src/timeline/scanline";
import type { Items, Outline, TrackInfo } from "../../src/timeline/types";
import { pen } from "./pen";

const stream: TrackInfo = {
  rank: 0,
  kind: "stream",
  label: "GPU 0 stream 7",
  process: "GPU 0",
  alike: "stream 7",
  first: 0,
  sizes: [50],
};
const thread: TrackInfo = {
  rank: 0,
  kind: "thread",
  label: "main",
  process: "process 1",
  alike: "threads",
  first: 1,
  sizes: [1, 1, 1, 1, 500, 900],
};
const other: TrackInfo = {
  rank: 3,
  kind: "stream",
  label: "GPU 3 stream 7",
  process: "GPU 3",
  alike: "stream 7",
  first: 7,
  sizes: [9],
};
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
const open = { collapsed: new Set<string>(), unfolded: new Set<number>() };

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
    const folded = arrange(outline, [], { ...open, collapsed: new Set(["Rank 0"]) });
    expect(folded.rows.map((row) => row.lane)).toEqual([7]);
    expect(folded.headers).toHaveLength(2);
  });

  it("shows the lanes that words choose, and pinned ones first, whatever the words", () => {
    const lanes = (filter: string, pinned: [number, string][] = []) =>
      arrange(outline, [], open, { ...ALL_LANES, filter, pinned }).rows.map((row) => row.lane);
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
    expect(lanes("-")).toEqual([]); // a minus alone is looked for, and in no name
    const odd = { ...thread, label: "a, b" };
    expect(isShown({ ...outline, tracks: [odd] }, odd, hiding(outline, odd, ""))).toBe(false);
    expect(lanes("main", [[3, "GPU 3 stream 7"]])).toEqual([7, 1, 2, 3, 4, 5, 6]);
    expect(
      arrange(outline, [], open, { ...ALL_LANES, filter: "main" }).headers.map(({ rank }) => rank),
    ).toEqual([0]);
  });

  it("keeps what is pinned in place, over the rows that scroll under it", () => {
    const choice = { ...ALL_LANES, pinned: [[0, "GPU 0 stream 7"]] as [number, string][] };
    const layout = arrange(outline, [], open, choice);
    expect(scrolled(layout, 0)).toBe(layout);
    const moved = scrolled(layout, 40);
    expect(moved.rows[0]).toEqual({ ...layout.rows[0], y: (layout.rows[0]?.y ?? 0) + 40 });
    expect(moved.tracks[0]?.text).toBe("▴ 0 · GPU 0 stream 7");
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

  it("scrolls to a lane that is out of sight, and not to one that is pinned or not there", () => {
    const lanes = new LaneView(
      outline,
      () => 60,
      () => {},
    );
    const last = lanes.layout.rows.at(-1)?.lane as number;
    lanes.reveal(last);
    const row = lanes.layout.rows.find(({ lane }) => lane === last);
    expect(lanes.scroll).toBeGreaterThan(0);
    expect((row?.y ?? 0) + (row?.h ?? 0) - lanes.scroll).toBeLessThanOrEqual(60);
    const { scroll } = lanes;
    lanes.reveal(99);
    expect(lanes.scroll).toBe(scroll);
    lanes.reveal(0);
    expect(lanes.scroll).toBe(0);
    lanes.choose({ ...ALL_LANES, pinned: [[0, "GPU 0 stream 7"]] });
    lanes.reveal(last);
    const there = lanes.scroll;
    lanes.reveal(0); // in sight wherever the others are
    expect([lanes.scroll, there > 0]).toEqual([there, true]);
  });

  describe("groups and order", () => {
    const wide: Outline = {
      ...outline,
      tracks: [
        stream,
        {
          ...stream,
          kind: "sync",
          label: "GPU 0 stream 7 sync",
          alike: "stream 7 sync",
          first: 8,
          sizes: [1],
        },
        { ...thread, sizes: [4] },
        other,
        { ...thread, rank: 3, label: "main", process: "process 9", first: 9, sizes: [3] },
      ],
    };
    const told = (choice: Partial<LaneChoice>, collapsed: string[] = []) => {
      const folding = { ...open, collapsed: new Set(collapsed) };
      const { headers, tracks } = arrange(wide, [], folding, { ...ALL_LANES, ...choice });
      return [...headers, ...tracks].sort((a, b) => a.y - b.y).map(({ text }) => text);
    };

    it("stand by rank, by process or device, or beside their like of other ranks", () => {
      expect(told({})).toEqual([
        ...["Rank 0", "GPU 0 stream 7", "GPU 0 stream 7 sync", "main"],
        ...["Rank 3", "GPU 3 stream 7", "main"],
      ]);
      expect(told({ groups: "process" })).toEqual([
        ...["Rank 0 · GPU 0", "GPU 0 stream 7", "GPU 0 stream 7 sync", "Rank 0 · process 1", "main"],
        ...["Rank 3 · GPU 3", "GPU 3 stream 7", "Rank 3 · process 9", "main"],
      ]);
      expect(told({ groups: "lane" }, ["stream 7 sync of each rank"])).toEqual([
        ...[
          "stream 7 of each rank",
          "0 · GPU 0 stream 7",
          "3 · GPU 3 stream 7",
          "stream 7 sync of each rank",
        ],
        ...["threads of each rank", "0 · main", "3 · main"],
      ]);
    });

    it("tint the iterations of each rank behind its own lanes", () => {
      const { stretches, tracks, height } = arrange(wide, [], open, { ...ALL_LANES, groups: "lane" });
      expect(stretches.map(({ rank }) => rank)).toEqual([0, 3, 0, 0, 3]);
      for (const { track, y, h } of tracks) {
        const around = stretches.find((one) => one.y <= y && one.bottom >= y + h);
        expect(around?.rank).toBe(track.rank);
      }
      expect(stretches.at(-1)?.bottom).toBe(height);
    });

    it("moves lanes inside their group, by a drag or one by one", () => {
      let order: LaneChoice["order"] = [];
      const lanes = new LaneView(
        wide,
        () => 1000,
        () => {},
      );
      const texts = () => lanes.layout.tracks.map(({ text }) => text);
      const put = (next: LaneChoice["order"] | null | undefined) => {
        order = next ?? order;
        lanes.choose({ ...ALL_LANES, order });
      };
      const main = wide.tracks[2] as TrackInfo;
      put(lanes.movedBy(main, -1));
      expect(texts().slice(0, 3)).toEqual(["GPU 0 stream 7", "main", "GPU 0 stream 7 sync"]);
      put(lanes.movedBy(main, -1));
      expect(texts().slice(0, 3)).toEqual(["main", "GPU 0 stream 7", "GPU 0 stream 7 sync"]);
      expect(lanes.movedBy(main, -1)).toBeNull();
      put(lanes.movedBy(main, 1));
      expect(texts().slice(0, 3)).toEqual(["GPU 0 stream 7", "main", "GPU 0 stream 7 sync"]);
      // a drag to the lower half of the last one, then to the top, then to where it is
      const bottom = (lanes.layout.tracks[2]?.y ?? 0) + 12;
      put(lanes.movedTo(main, bottom)?.order);
      expect(texts().slice(0, 3)).toEqual(["GPU 0 stream 7", "GPU 0 stream 7 sync", "main"]);
      put(lanes.movedTo(main, 0)?.order);
      expect(texts().slice(0, 3)).toEqual(["main", "GPU 0 stream 7", "GPU 0 stream 7 sync"]);
      expect(lanes.movedTo(main, 0)?.y).toBe(lanes.layout.tracks[0]?.y);
      put(lanes.movedTo(main, (lanes.layout.tracks[0]?.y ?? 0) + 1)?.order);
      expect(texts()).toEqual(["main", "GPU 0 stream 7", "GPU 0 stream 7 sync", "GPU 3 stream 7", "main"]);
      expect(lanes.movedBy(wide.tracks[3] as TrackInfo, 1)).toEqual([
        ...order,
        [3, "main"],
        [3, "GPU 3 stream 7"],
      ]);
    });
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

  it("fills a stretch of many slices as densely as they stand", () => {
    const shades = [40, 20, 4].map((busy) => {
      const stretch = { ...items, start: Float64Array.of(20), dur: Float64Array.of(40) };
      const pixels = new Uint32Array(10).fill(WHITE);
      const names = { least: 99, found: [] };
      const one = { ...stretch, busy: Float64Array.of(busy), last: Uint32Array.of(1) };
      rasterise(one, 0, { t0: 0, t1: 100 }, palette, pixels, 0, 10, new Float32Array(40), names);
      return ((pixels[3] as number) >>> 8) & 255; // of green, which red has none of
    }) as [number, number, number];
    expect(shades[0]).toBe(0);
    expect(Math.abs(shades[1] - 127)).toBeLessThan(3);
    expect(shades[2]).toBeGreaterThan(shades[1]);
    expect(shades[2]).toBeLessThan(250); // few, and still to be seen
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
    expect(shortName("autograd::engine::evaluate_function: MmBackward0")).toBe("MmBackward0");
  });
});

describe("the axis", () => {
  it("covers what lies between the minimap and the lanes", () => {
    const filled: number[][] = [];
    const context = pen((name: string, ...box: number[]) => {
      if (name === "fillRect") filled.push(box);
      return { width: 0 };
    });
    const place = { view: { t0: 0, t1: 1e6 }, gutter: 100, width: 1000, height: 300, scroll: 0 };
    drawAxis(context, place, new Bands([]), [], {} as Palette);
    expect(filled[0]).toEqual([100, MINIMAP_HEIGHT, 900, TOP - MINIMAP_HEIGHT]);
  });

  it("has the titles of iterations in the strip that is theirs", () => {
    const filled: number[][] = [];
    const titles: [string, number, number][] = [];
    const context = pen((name, ...given: never[]) => {
      if (name === "fillRect") filled.push(given);
      if (name === "fillText" && String(given[0]).startsWith("step")) titles.push(given as never);
      return { width: 6 * String(given[0]).length }; // as in other files: widths of texts are kept for the page
    });
    const place = { view: { t0: 0, t1: 1000 }, gutter: 100, width: 1100, height: 300, scroll: 0 };
    const step = { rank: 0, iteration: 7, label: "step 7", start: 200, end: 600 };
    drawAxis(context, place, new Bands([step]), [], {} as Palette);
    const [left = 0, top = 0, width = 0, height = 0] = filled.at(-1) ?? [];
    expect([left, width]).toEqual([300, 399]);
    expect(top).toBeGreaterThanOrEqual(MINIMAP_HEIGHT);
    const [[, x, y] = ["", 0, 0]] = titles;
    expect(x).toBe(left + 4);
    expect(Math.abs(y - (top + height / 2))).toBeLessThan(1);
  });

  it("measures no title without room, and each text once", () => {
    const measured: string[] = [];
    const written: string[] = [];
    const context = pen((name: string, text: string) => {
      if (name === "measureText") measured.push(text);
      if (name === "fillText") written.push(text);
      return { width: 6 * text?.length };
    });
    const bands = (count: number) =>
      new Bands(
        Array.from({ length: count }, (_, at) => ({
          rank: 0,
          iteration: at,
          label: `step ${at}`,
          start: (at * 1e6) / count,
          end: ((at + 1) * 1e6) / count,
        })),
      );
    const place = { view: { t0: 0, t1: 1e6 }, gutter: 0, width: 1000, height: 300, scroll: 0 };
    const draw = (count: number) => drawAxis(context, place, bands(count), [], {} as Palette);
    draw(500);
    expect(measured.filter((text) => text.startsWith("step"))).toEqual([]);
    draw(4);
    expect(written).toContain("step 3 · 250 µs");
    measured.length = 0;
    draw(4);
    expect(measured).toEqual([]);
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

it("keeps the end of a lane's name, by which lanes that begin alike are told apart", () => {
  const context = { measureText: (text: string) => ({ width: 7 * text.length }) } as CanvasRenderingContext2D;
  const short = (text: string) => shortened(context, text, 77);
  expect(short("thread 7")).toBe("thread 7");
  expect(short("GPU 0 stream 7")).toBe("GPU 0 · 7");
  expect(short("GPU 0 stream 40 sync")).toBe("GPU 0… sync");
  expect(short("thread 41000 (python3)")).toBe("41000");
  expect(short("thread 4 (main)")).toBe("4 (main)");
  expect(short("PyTorch Profiler")).toBe("PyTor…filer");
  expect(shortened(context, "thread 41000", 1)).toBe("4…0");
  const uneven = {
    measureText: (text: string) => ({ width: 7 * text.length + 40 * text.split("0").length - 40 }),
  };
  const name = "annotations · thread 900000";
  for (const room of [300, 260, 220])
    expect(
      uneven.measureText(shortened(uneven as CanvasRenderingContext2D, name, room)).width,
    ).toBeLessThanOrEqual(room);
});
