// Whole pictures, kept as they are (`npx vitest run -u` keeps new ones): what changes one is seen, meant or not.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { bandsByRank } from "../../src/timeline/bands";
import { ClientSource } from "../../src/timeline/client";
import type { Counters } from "../../src/timeline/counters";
import { type Place, TOP } from "../../src/timeline/frame";
import { type Hit, hit } from "../../src/timeline/hit";
import { ALL_LANES, type LaneChoice } from "../../src/timeline/lane_choice";
import { arrange } from "../../src/timeline/layout";
import { choiceOf } from "../../src/timeline/matches";
import { drawOverlay, hasMarks, type Marks } from "../../src/timeline/overlay";
import { readPalette } from "../../src/timeline/palette";
import { Picture, type Scene } from "../../src/timeline/picture";
import { Pixels } from "./pen";
import { outline, slices } from "./two_ranks";

const folding = { collapsed: new Set(["Rank 3"]), unfolded: new Set<number>() };
const CHOICES: Record<string, Partial<LaneChoice>> = {
  "by rank": {},
  "by lane": { groups: "lane" },
  pinned: { pinned: [[3, "lane 0 of 3"]] },
  filtered: { filter: "-annotation" },
};
const place: Place = { view: { t0: 250, t1: 5250 }, gutter: 120, width: 620, height: 260, scroll: 0 };

/** What lies where, as runs of pixels down some columns. */
function hits(choice: Partial<LaneChoice>, scroll: number): string[] {
  const layout = arrange(outline, [], folding, { ...ALL_LANES, ...choice });
  const here = { ...place, scroll };
  const window = [1250, 3250] as const; // at 220 and 420
  const told = (one: Hit) => {
    const { on, ...rest } = one;
    return [
      on,
      ...Object.values(rest).map((value) => (value && typeof value === "object" ? value.lane : value)),
    ].join(" ");
  };
  const runs = (x: number) => {
    const found: string[] = [];
    for (let y = 0; y <= TOP + layout.height - scroll + 2; y++) {
      const now = told(hit(here, layout, window, x, y));
      if (found.at(-1)?.split(": ")[1] !== now) found.push(`${y}: ${now}`);
    }
    return `${x} | ${found.join(", ")}`;
  };
  const across: string[] = [];
  for (let x = 100; x < 620; x++) {
    const now = told(hit(here, layout, window, x, TOP - 1));
    if (across.at(-1)?.split(": ")[1] !== now) across.push(`${x}: ${now}`);
  }
  return [across.join(", "), ...[0, 119, 120, 215, 300].map(runs)];
}

it.each(Object.entries(CHOICES))("what is under each pixel, %s", (_, choice) => {
  expect([hits(choice, 0), hits(choice, 37)]).toMatchSnapshot();
});

/** A number that changes with any of these. */
function sum(bytes: ArrayLike<number>): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
  return (hash >>> 0).toString(16);
}

/** A canvas's pen that notes all that is drawn; of pixels their digest. */
function noted(): { pen: CanvasRenderingContext2D; told: string[] } {
  const told: string[] = [];
  const value = (one: unknown): string => {
    if (one instanceof Lines) return one.told.join(", ");
    if (one instanceof ImageData) return `pixels ${sum(one.data)}`;
    if (typeof one === "number") return String(Math.round(one * 100) / 100);
    return typeof one === "object" ? (one?.constructor.name ?? "null") : String(one);
  };
  const pen = new Proxy({} as CanvasRenderingContext2D, {
    get:
      (_, name) =>
      (...given: unknown[]) => {
        if (name === "measureText") return { width: 6 * String(given[0]).length };
        told.push(`${String(name)}(${given.map(value).join(", ")})`);
        return undefined;
      },
    set: (_, name, given) => {
      told.push(`${String(name)} = ${value(given)}`);
      return true;
    },
  });
  return { pen, told };
}

/** A path that notes its lines. */
class Lines {
  readonly told: string[] = [];
  rect(...given: number[]): void {
    this.told.push(`rect ${given.map(Math.round).join(" ")}`);
  }
  moveTo(...given: number[]): void {
    this.told.push(`from ${given.map(Math.round).join(" ")}`);
  }
  lineTo(...given: number[]): void {
    this.told.push(`to ${given.map(Math.round).join(" ")}`);
  }
}

beforeEach(() => {
  vi.stubGlobal("ImageData", Pixels);
  vi.stubGlobal("Path2D", Lines);
  // a colour for each variable
  vi.stubGlobal("getComputedStyle", ({ style }: HTMLElement) => {
    const code = Number.parseInt(sum([...style.color].map((letter) => letter.charCodeAt(0))), 16);
    return { color: `rgb(${code & 255}, ${(code >> 8) & 255}, ${(code >> 16) & 255})` };
  });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const VIEWS: [name: string, scroll: number, view: [number, number], chosen: string][] = [
  ["all", 0, [0, 9000], ""],
  ["a part, scrolled", 37, [250, 1250], ""],
  ["chosen slices", 0, [250, 5250], "aten::mm"],
];

const MARKED: Record<string, Partial<Marks>> = {
  nothing: {},
  "a window, and a slice under the pointer": {
    window: [1250, 3250],
    hover: { lane: 0, start: 400, dur: 61 },
    focus: { lane: 4, start: 500, dur: 7 },
  },
  "a place with its cause, and flows": {
    place: { span: [1000, 4000], label: "idle", cause: [900, 1000] },
    cause: { lane: 1, start: 900, dur: 100 },
    flows: [
      [
        { id: 1, lane: 8, start: 600, dur: 40, kind: 0, count: 1 },
        { id: 2, lane: 0, start: 900, dur: 61, kind: 1, count: 1 },
      ],
    ],
  },
  "the time between two slices": {
    held: { lane: 0, start: 400, dur: 61 },
    measured: [
      { id: 1, lane: 0, start: 400, dur: 61, kind: 1, count: 1 },
      { id: 2, lane: 8, start: 1600, dur: 40, kind: 0, count: 1 },
    ],
  },
  "flags, a flash and lanes that move": {
    flags: [
      [700, "here"],
      [750, "and here, with more to say"],
      [900, ""],
      [9999, "out of sight"],
    ],
    flash: { extent: [800, 2400], strength: 0.5 },
    drop: 66,
  },
};

it.each(Object.entries(MARKED))("marks: %s", (_, marks) => {
  const none: Marks = {
    ...{ place: null, cause: null, window: null, hover: null, focus: null, held: null, measured: null },
    ...{ flows: [], exchange: null, flags: [], drop: null, flash: null },
  };
  const { pen, told } = noted();
  const layout = arrange(outline, [], folding, { ...ALL_LANES, groups: "lane" });
  const palette = readPalette(document.createElement("div"), outline);
  drawOverlay(pen, { ...place, scroll: 12 }, layout, { ...none, ...marks }, palette);
  expect([hasMarks({ ...none, ...marks }), ...told]).toMatchSnapshot();
});

it.each(VIEWS)("the picture of %s", async (_, scroll, [t0, t1], chosen) => {
  const { pen, told } = noted();
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(pen as never);
  const source = new ClientSource(outline, slices(), null as never, new AbortController().signal);
  const choice = chosen ? choiceOf(outline, [chosen], "", []) : null;
  const found = choice ? await source.choose(choice) : null;
  const counter = {
    rank: 0,
    name: "queue",
    key: "q",
    unit: "",
    lane: 0,
    least: 0,
    most: 14,
    bottom: 0,
    top: 14,
  };
  const layout = arrange(outline, [], folding, ALL_LANES, [counter]);
  const bands = bandsByRank(outline.iterations);
  const scene: Scene = {
    place: { ...place, scroll, view: { t0, t1 } },
    layout,
    ratio: 2,
    bands: bands.get(0) as never,
    iterations: [1],
    highlight: { choice, found, path: null } as never,
  };
  const wave = (by: number) =>
    Float64Array.from({ length: 90 }, (_, i) => (i < 80 ? (i * by) % 11 : Number.NaN));
  const of = new Map([[counter, { least: wave(1), most: wave(1).map((value) => value + 3) }]]);
  const counters = { at: () => ({ t0: 0, t1: 9000, px: 90, of }) } as unknown as Counters;
  const picture = new Picture(outline, source, counters, bands);
  const palette = readPalette(document.createElement("div"), outline);
  picture.drawGutter(pen, scene, palette);
  picture.drawLanes(pen, scene, palette);
  expect(told).toMatchSnapshot();
});
