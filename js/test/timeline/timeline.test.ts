// The timeline as its users drive it: keys, clicks and drags, and what others show in it.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ClientSource } from "../../src/timeline/client";
import type { Counters } from "../../src/timeline/counters";
import type { Flows } from "../../src/timeline/decode";
import { TOP, timeAt, xOf } from "../../src/timeline/frame";
import { ALL_LANES } from "../../src/timeline/lane_choice";
import { HEADER_HEIGHT } from "../../src/timeline/layout";
import { type Listeners, Timeline } from "../../src/timeline/timeline";
import type { Outline, Slice } from "../../src/timeline/types";
import { Waits } from "../../src/timeline/waits";
import { standIns } from "./canvas";
import { outline, slices } from "./two_ranks";

const WIDTH = 620;
const ITEMS = slices();
const GUTTER = 172;

let over = new AbortController();
let frames: FrameRequestCallback[] = [];

standIns();

beforeEach(() => {
  over = new AbortController();
  frames = [];
  vi.stubGlobal("requestAnimationFrame", (draw: FrameRequestCallback) => frames.push(draw));
});

afterEach(() => over.abort());

/** A timeline of two ranks, with the first slice of rank 0's thread as what launched the tenth kernel. */
function shown(changed: Partial<Outline> = {}, height = 400) {
  const el = document.body.appendChild(document.createElement("div"));
  Object.defineProperties(el, { clientWidth: { value: WIDTH }, clientHeight: { value: height } });
  const all = { ...outline, ...changed };
  const flows = { source: [caller.id], target: [kernel.id] } as unknown as Flows;
  const source = new ClientSource(all, ITEMS, flows, over.signal);
  const counters = { at: () => null, known: { value: [] } } as unknown as Counters;
  const waits = new Waits(
    all,
    async () => Promise.reject(new Error("a report")),
    () => {},
  );
  const names = [
    "view",
    "pointed",
    "window",
    "focus",
    "gap",
    "announce",
    "flags",
    "pin",
    "hide",
    "order",
    "wanted",
    "found",
  ];
  const told = Object.fromEntries(names.map((name) => [name, vi.fn()])) as unknown as {
    [name in keyof Listeners]: ReturnType<typeof vi.fn>;
  };
  const timeline = new Timeline(el, all, source, counters, waits, told as unknown as Listeners, over.signal);
  timeline.widenGutter(GUTTER); // and measures its element
  timeline.showLanes(ALL_LANES);
  timeline.showRanks([0, 3], [0, 3]);
  return { timeline, told, el, source };
}

/** The slice of a lane by its place in it. */
function slice(lane: number, at: number): Slice {
  const id = (ITEMS.first[lane] as number) + at;
  return {
    id,
    lane,
    start: ITEMS.start[id] as number,
    dur: ITEMS.dur[id] as number,
    kind: ITEMS.kind[id] as number,
    count: 1,
  };
}

const STREAM = 0;
const THREAD = 3; // the outermost of six rows
const kernel = slice(STREAM, 10);
const caller = slice(THREAD + 4, 5);

const rest = async () => {
  for (let i = 0; i < 8; i++) await Promise.resolve();
};

async function press(el: HTMLElement, key: string, given: KeyboardEventInit = {}): Promise<boolean> {
  const code = /^[a-z]$/i.test(key) ? `Key${key.toUpperCase()}` : key;
  const event = new KeyboardEvent("keydown", { key, code, bubbles: true, cancelable: true, ...given });
  el.dispatchEvent(event);
  el.dispatchEvent(new KeyboardEvent("keyup", { key, code }));
  await rest();
  return event.defaultPrevented;
}

/** Where a slice is on the screen: the middle of it, in its row. */
function at(timeline: Timeline, one: Slice): [x: number, y: number] {
  const row = timeline.layout.rows.find(({ lane }) => lane === one.lane);
  if (!row) throw new Error("its lane is not shown");
  return [xOf(timeline.place, one.start + one.dur / 2), TOP + row.y + 5 - timeline.place.scroll];
}

async function drag(
  el: HTMLElement,
  from: [number, number],
  to: [number, number],
  given: PointerEventInit = {},
) {
  const send = (type: string, [clientX, clientY]: [number, number]) =>
    el.dispatchEvent(new PointerEvent(type, { clientX, clientY, pointerId: 1, bubbles: true, ...given }));
  send("pointerdown", from);
  if (to !== from) send("pointermove", to);
  send("pointerup", to);
  await rest();
}
const click = (el: HTMLElement, where: [number, number], given: PointerEventInit = {}) =>
  drag(el, where, where, given);

const width = ({ view }: Timeline) => view.t1 - view.t0;
const middle = ({ view }: Timeline) => (view.t0 + view.t1) / 2;

it("zooms about its middle and pans by keys, and leaves combinations to the page", async () => {
  const { timeline, el, told } = shown();
  timeline.look({ t0: 4000, t1: 5000 });
  expect(await press(el, "w")).toBe(true);
  expect([middle(timeline), width(timeline)]).toEqual([4500, 950]);
  await press(el, "s");
  expect(width(timeline)).toBeCloseTo(1000);
  await press(el, "d", { shiftKey: true });
  expect(middle(timeline)).toBeCloseTo(4750);
  await press(el, "ArrowLeft");
  expect(middle(timeline)).toBeCloseTo(4700);
  const seen = told.view.mock.calls.length;
  expect(await press(el, "w", { ctrlKey: true })).toBe(false);
  expect(await press(el, "q")).toBe(false);
  expect(told.view).toHaveBeenCalledTimes(seen);
  await press(el, "0");
  expect(timeline.view).toEqual({ t0: 0, t1: 9000 });
});

it("zooms about the pointer", async () => {
  const { timeline, el } = shown();
  timeline.look({ t0: 4000, t1: 5000 });
  timeline.hoverAt(GUTTER + (WIDTH - GUTTER) / 4, 60);
  await press(el, "w");
  expect(timeline.view.t0).toBeCloseTo(4250 - 950 / 4);
});

it("zooms evenly while a key is held", async () => {
  vi.useFakeTimers();
  const { timeline, el } = shown();
  timeline.look({ t0: 4000, t1: 5000 });
  const send = (type: string, code: string) => el.dispatchEvent(new KeyboardEvent(type, { key: "w", code }));
  send("keydown", "KeyW");
  for (let i = 0; i < 7; i++) {
    vi.advanceTimersByTime(50);
    send("keydown", "KeyW"); // as the keyboard repeats it
  }
  const seconds = -Math.log(width(timeline) / 950) / 3.2;
  expect(Math.abs(seconds - 0.2)).toBeLessThan(0.02); // a frame: it counts as held after 0.15 s
  send("keyup", "KeyD");
  vi.advanceTimersByTime(100);
  const before = width(timeline);
  expect(before).toBeLessThan(950 * Math.exp(-3.2 * 0.25));
  send("keyup", "KeyW");
  vi.advanceTimersByTime(500);
  expect(width(timeline)).toBe(before);
  vi.useRealTimers();
});

it("steps through iterations", async () => {
  const { timeline, el } = shown();
  timeline.look({ t0: 2500, t1: 3000 }); // within step 1
  for (const [key, start] of [
    ["]", 4300],
    ["]", 6300],
    ["]", 6300],
    ["[", 4300],
  ] as const) {
    await press(el, key);
    expect(timeline.view.t0).toBeCloseTo(start - 50);
  }
});

it("focuses the slice that is clicked, and the next ones by keys", async () => {
  const { timeline, el, told } = shown();
  timeline.look({ t0: kernel.start - 300, t1: kernel.start + 300 });
  await click(el, at(timeline, kernel));
  expect(told.focus.mock.lastCall).toEqual([kernel]);
  expect(told.wanted).not.toHaveBeenCalled(); // it is in sight
  expect(told.pin).not.toHaveBeenCalled(); // as by a click on a name
  const went = async (key: string) => {
    await press(el, key);
    return told.focus.mock.lastCall?.[0]?.id - kernel.id;
  };
  expect([await went("."), await went("."), await went(",")]).toEqual([1, 2, 1]);
  await went(",");
  await press(el, "g");
  expect(told.focus.mock.lastCall).toEqual([caller]); // what launched it
  await press(el, "g");
  expect(told.focus.mock.lastCall).toEqual([kernel]);
  await press(el, "f");
  expect(width(timeline)).toBeCloseTo(kernel.dur + 100);
  await press(el, "r");
  expect(told.window.mock.lastCall).toEqual([[kernel.start, kernel.start + kernel.dur]]);
  await press(el, "Escape");
  expect([told.window.mock.lastCall, told.focus.mock.lastCall]).toEqual([[null], [null]]);
});

it("goes to the caller, and back to the first call", async () => {
  const { timeline, el, told } = shown();
  const inner = slice(THREAD + 4, 0);
  await timeline.choose(inner, true);
  await press(el, "ArrowUp");
  const outer = told.focus.mock.lastCall?.[0] as Slice;
  expect(outer.lane).toBeLessThan(inner.lane);
  expect([outer.start <= inner.start, outer.start + outer.dur >= inner.start + inner.dur]).toEqual([
    true,
    true,
  ]);
  await press(el, "ArrowDown");
  expect(told.focus.mock.lastCall?.[0].lane).toBeGreaterThan(outer.lane);
});

it("moves to a slice that is out of sight, and only then", async () => {
  const { timeline, told } = shown();
  timeline.look({ t0: kernel.start + kernel.dur, t1: kernel.start + 500 }); // it ends where the view begins
  const before = timeline.view;
  await timeline.choose(kernel, true);
  expect(timeline.view).toBe(before);
  expect(told.wanted.mock.lastCall).toEqual([0]);
  timeline.look({ t0: 5000, t1: 6000 });
  await timeline.choose(kernel, true);
  expect([middle(timeline), width(timeline)]).toEqual([kernel.start + kernel.dur / 2, 1000]);
  expect(told.view.mock.lastCall?.[1]).toBe(false);
  const early = slice(STREAM, 0);
  timeline.look({ t0: 5000, t1: 6000 });
  await timeline.showFocus(early.id);
  expect(told.view.mock.lastCall?.[1]).toBe(true); // others have a place of their own to show
  expect(timeline.view.t0).toBeLessThan(early.start + early.dur);
  expect(told.focus).toHaveBeenCalledTimes(2); // what others focus is not told to them
});

it("chooses the idle time of a stream by a click, and tells when it begins", async () => {
  const { timeline, el, told } = shown();
  const [one, next] = [slice(STREAM, 10), slice(STREAM, 11)];
  const end = one.start + one.dur;
  expect(next.start).toBeGreaterThan(end);
  timeline.look({ t0: end - 100, t1: next.start + 100 });
  const between = { ...one, start: end, dur: next.start - end };
  await click(el, at(timeline, between));
  expect(told.gap.mock.lastCall).toEqual([STREAM, end]);
  expect(timeline.gap).toEqual({ lane: STREAM, start: end, dur: next.start - end });
  await press(el, "r");
  expect(timeline.window).toEqual([end, next.start]);
  await timeline.choose(kernel, false);
  expect(timeline.gap).toBeNull(); // a slice takes its place
});

it("marks the gap that others look for", async () => {
  const { timeline, told } = shown();
  const [one, next] = [slice(STREAM, 10), slice(STREAM, 11)];
  const end = one.start + one.dur;
  await timeline.showGap([STREAM, end]);
  expect(timeline.gap).toEqual({ lane: STREAM, start: end, dur: next.start - end });
  expect(told.gap).not.toHaveBeenCalled();
  expect(timeline.view.t0).toBeLessThan(end);
  expect(timeline.view.t1).toBeGreaterThan(next.start);
  const seen = told.announce.mock.calls.length;
  for (const t of [end, next.start - 1]) await timeline.showGap([STREAM, t]); // the same gap
  expect(told.announce).toHaveBeenCalledTimes(seen);
  await timeline.showGap([STREAM, one.start]); // no gap
  expect(timeline.gap?.start).toBe(end);
  await timeline.showGap(null);
  expect(timeline.gap).toBeNull();
});

it("selects time by a drag, inside what was recorded, and moves an edge of it", async () => {
  const { timeline, el, told } = shown();
  timeline.look({ t0: 0, t1: 8000 });
  const y = TOP + HEADER_HEIGHT + 4;
  const x = (t: number) => xOf(timeline.place, t);
  await drag(el, [x(5000), y], [x(3000), y]);
  expect(told.window.mock.lastCall).toEqual([[3000, 5000]]);
  await drag(el, [x(5000), y], [x(6000), y]); // its edge
  expect(told.window.mock.lastCall).toEqual([[3000, 6000]]);
  await drag(el, [x(7000), y], [x(7000) + 2, y]); // a click that trembles
  expect(told.window.mock.lastCall).toEqual([[3000, 6000]]);
  timeline.brush(-500, 99_999);
  expect(timeline.window).toEqual([0, 9000]);
  timeline.brush(700, 700);
  expect(told.window.mock.lastCall).toEqual([null]);
});

it("pans by a drag with Shift, and measures by a click with it", async () => {
  const { timeline, el } = shown();
  timeline.look({ t0: 3000, t1: 4000 });
  const y = TOP + HEADER_HEIGHT + 4;
  await drag(el, [400, y], [400 - (WIDTH - GUTTER) / 2, y], { shiftKey: true });
  expect(timeline.view.t0).toBeCloseTo(3500);
  expect(timeline.window).toBeNull();
  timeline.look({ t0: kernel.start - 300, t1: kernel.start + 300 });
  await click(el, at(timeline, kernel));
  const next = slice(STREAM, 11);
  await click(el, at(timeline, next), { shiftKey: true });
  expect([timeline.held, timeline.focus.slice]).toEqual([kernel, next]);
  await click(el, at(timeline, kernel));
  expect(timeline.held).toBeNull();
});

it("measures from the focused slice by a key, and no more by the same again", async () => {
  const { timeline, el } = shown();
  await timeline.choose(kernel, true);
  await press(el, "x");
  expect(timeline.held).toEqual(kernel);
  await press(el, "x");
  expect(timeline.held).toBeNull();
});

it("shows a window that others set, and moves there only if it is out of sight", () => {
  const { timeline, told } = shown();
  timeline.look({ t0: 0, t1: 4000 });
  const before = timeline.view;
  timeline.showWindow([1000, 2000]);
  expect([timeline.window, timeline.view]).toEqual([[1000, 2000], before]);
  timeline.showWindow([7000, 8000]);
  expect(timeline.view.t0).toBeCloseTo(6850);
  expect(told.window).not.toHaveBeenCalled();
  timeline.look({ t0: 0, t1: 4000 });
  const seen = told.view.mock.calls.length;
  timeline.showWindow([7000, 8000]); // it is known
  expect(told.view).toHaveBeenCalledTimes(seen);
  timeline.showWindow(null);
  expect(timeline.window).toBeNull();
});

it("marks a place with the lanes of its ranks, and the slice that causes it", () => {
  const { timeline, el } = shown();
  const cause = [caller.start, caller.start + caller.dur] as const;
  timeline.mark({ span: [3000, 4000], label: "idle", cause }, [3, 7]);
  expect([el.dataset.place, el.dataset.ranks]).toEqual(["3000 4000", "3"]);
  expect(new Set(timeline.layout.tracks.map(({ track }) => track.rank))).toEqual(new Set([3]));
  timeline.mark({ span: [3000, 4000], label: "idle", cause }, [0]);
  const kinds = timeline.layout.tracks.map(({ track }) => track.kind);
  expect(kinds.sort()).toEqual(["stream", "thread"]); // the host, and the device alone
  for (const draw of frames.splice(0)) draw(0);
  expect(el.dataset.cause).toBe(cause.join(" "));
  timeline.mark({ span: [3000, 4000], label: "late", cause: [1, 2] }, [0, 3]);
  // of several ranks only the devices: they are recorded
  expect(timeline.layout.tracks.map(({ track }) => track.kind)).toEqual(["stream", "stream"]);
  timeline.mark(null, []);
  expect(["place", "ranks", "cause"].filter((name) => name in el.dataset)).toEqual([]);
  expect(new Set(timeline.layout.tracks.map(({ track }) => track.rank))).toEqual(new Set([0, 3]));
});

it("shows only some ranks, but those of a marked place while one is marked", () => {
  const { timeline } = shown();
  const ranks = () => [...new Set(timeline.layout.tracks.map(({ track }) => track.rank))];
  timeline.mark({ span: [3000, 4000], label: "idle", cause: null }, [3]);
  timeline.showRanks([0], [0]);
  expect(ranks()).toEqual([3]);
  timeline.mark(null, []);
  expect(ranks()).toEqual([0]);
});

it("pins, hides and moves the track under the pointer, else that of the focused slice", async () => {
  const { timeline, el, told } = shown();
  await press(el, "p");
  expect(told.pin).not.toHaveBeenCalled(); // of nothing
  await timeline.choose(caller, false);
  await press(el, "p");
  expect(told.pin.mock.lastCall).toEqual([[0, "lane 2 of 0"]]);
  const [, y] = at(timeline, kernel);
  timeline.hoverAt(400, y);
  await press(el, "h");
  expect(told.hide.mock.lastCall?.[0].label).toBe("lane 0 of 0");
  await press(el, "}");
  const order = told.order.mock.lastCall?.[0].map(([, label]: [number, string]) => label);
  expect(order.indexOf("lane 0 of 0")).toBe(1);
  await click(el, [20, y]); // its name: pins it
  expect(told.pin.mock.lastCall).toEqual([[0, "lane 0 of 0"]]);
});

it("goes by the minimap to where it is clicked", async () => {
  const { timeline, el } = shown();
  timeline.look({ t0: 0, t1: 1000 });
  await click(el, [GUTTER + (WIDTH - GUTTER) / 2, 3]);
  expect(middle(timeline)).toBeCloseTo(4500, -1);
  expect(width(timeline)).toBeCloseTo(1000);
});

it("says what cannot be done at replayed times", async () => {
  const { timeline, el, told } = shown({ replayed: true } as Partial<Outline>);
  timeline.brush(100, 900);
  expect(timeline.window).toBeNull();
  expect(told.announce.mock.lastCall?.[0].lines).toEqual(["select time in the recorded view"]);
  await press(el, "m");
  expect([told.flags.mock.calls, told.announce.mock.lastCall?.[0].lines]).toEqual([
    [],
    ["flag moments in the recorded view"],
  ]);
  timeline.chooseGap(STREAM, [100, 200]);
  expect(told.gap).not.toHaveBeenCalled();
  timeline.showFlags([[700, "here"]]);
  expect(timeline.flagging.flags).toEqual([]);
});

it("flags the moment under the pointer, and goes from flag to flag", async () => {
  const { timeline, el, told } = shown();
  timeline.look({ t0: 3000, t1: 4000 });
  timeline.hoverAt(GUTTER + (WIDTH - GUTTER) / 4, 60);
  await press(el, "m");
  expect(told.flags.mock.lastCall).toEqual([[[3250, ""]]]);
  timeline.showFlags([
    [3250, ""],
    [5000, "slow"],
    [8000, "end"],
  ]);
  for (const time of [5000, 8000, 3250]) {
    await press(el, "M", { shiftKey: true });
    expect(middle(timeline)).toBeCloseTo(time);
  }
});

it("uses the wheel with Ctrl for zoom, and alone only while it has the focus", () => {
  const { timeline, el } = shown({}, 160);
  timeline.look({ t0: 3000, t1: 4000 });
  const wheel = (given: WheelEventInit) => {
    const event = new WheelEvent("wheel", { bubbles: true, cancelable: true, clientX: GUTTER, ...given });
    el.dispatchEvent(event);
    return event.defaultPrevented;
  };
  expect(wheel({ deltaY: 40 })).toBe(false); // the page scrolls
  expect(timeline.place.scroll).toBe(0);
  expect(wheel({ deltaY: -100, ctrlKey: true })).toBe(true);
  expect([timeline.view.t0, width(timeline)].map(Math.round)).toEqual([
    3000,
    Math.round(1000 / 1.0025 ** 100),
  ]);
  el.focus();
  expect(wheel({ deltaY: 40 })).toBe(true);
  expect(timeline.place.scroll).toBe(40);
  while (timeline.scrollBy(50));
  const last = timeline.layout.rows.at(-1);
  expect((last?.y ?? 0) + (last?.h ?? 0)).toBeGreaterThan(timeline.place.scroll); // it is in sight
  expect(wheel({ deltaY: 40 })).toBe(false); // nothing is left to scroll: the page does
});

it("tells where the pointer is, and follows the pointer of another timeline", () => {
  const { timeline, told } = shown();
  timeline.look({ t0: 3000, t1: 4000 });
  timeline.hoverAt(GUTTER + 100, 60);
  expect(told.pointed.mock.lastCall?.[0]).toBeCloseTo(timeAt(timeline.place, GUTTER + 100));
  timeline.leave();
  expect(told.pointed.mock.lastCall).toEqual([null]);
  timeline.follow({ t0: -5000, t1: 20_000 }); // further than its own trace
  expect([timeline.view.t0, told.view.mock.lastCall?.[1]]).toEqual([-5000, true]);
});
