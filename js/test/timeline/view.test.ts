// The view of a timeline: it loads what the kernel arranged, and ties it to the traits both ways.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { FrozenHost, FrozenModel } from "../../src/host";
import { BUILT, MOVED } from "../../src/timeline/linking";
import type { Timeline } from "../../src/timeline/timeline";
import { drawn, mount, views } from "../support";
import { standIns } from "./canvas";
import { outline, shuffled, slices } from "./two_ranks";

const open: AbortController[] = [];
afterEach(() => {
  for (const view of open.splice(0)) view.abort();
});

standIns();

class Streamed {
  constructor(private readonly parts: Uint8Array<ArrayBuffer>[]) {}

  stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    const { parts } = this;
    return new ReadableStream({
      start(controller) {
        for (const part of parts) controller.enqueue(part);
        controller.close();
      },
    });
  }
}

beforeEach(() => {
  vi.stubGlobal("Blob", Streamed); // jsdom's cannot be
  for (const [name, px] of [
    ["clientWidth", 620],
    ["clientHeight", 300],
  ] as const)
    vi.spyOn(Element.prototype, name, "get").mockReturnValue(px);
});

/** The slices as Python sends them: starts as the time since the one before ended. */
function packed(): { layout: object; parts: Uint8Array<ArrayBuffer>[] } {
  const { start, dur, kind, first } = slices();
  const gaps = Array.from(start, (begin, at) =>
    first.includes(at) ? begin : begin - (start[at - 1] as number) - (dur[at - 1] as number),
  );
  const layout = {
    n: start.length,
    origin: 0,
    gap_escapes: 0,
    dur_escapes: 0,
    kind_bytes: 2,
    flows: 0,
    chunks: 1,
  };
  return { layout, parts: [shuffled(gaps, 4), shuffled(dur, 4), shuffled(kind, 2)] };
}

async function sent(...parts: Uint8Array<ArrayBuffer>[]): Promise<DataView> {
  const small = new Streamed(parts).stream().pipeThrough(new CompressionStream("deflate"));
  return new DataView(await new Response(small).arrayBuffer());
}

/** A kernel that answers what a timeline asks first. */
class Kernel extends FrozenModel {
  readonly asked: string[] = [];
  outline: object = outline;

  constructor(state: Record<string, unknown>) {
    super({
      _view: "timeline",
      status: "idle",
      message: "",
      version: 1,
      view: null,
      window: null,
      height: 300,
      ...state,
    });
    this.on(
      "test:sent",
      (content: unknown) => void this.#answer(content as { call: string; method: string }),
    );
  }

  async #answer({ call, method }: { call: string; method: string }) {
    this.asked.push(method);
    const { layout, parts } = packed();
    if (method === "meta") {
      const text = new TextEncoder().encode(JSON.stringify(this.outline));
      this.emit("msg:custom", { rpc: 1, call, result: { chunks: 1 } }, [await sent(text)]);
    } else if (method === "base")
      this.emit("msg:custom", { rpc: 1, call, result: layout }, [await sent(...parts)]);
    else this.emit("msg:custom", { rpc: 1, call, error: { type: "NoAnswer", message: "not here" } });
  }
}

const TRAITS = {
  ...{
    ranks: [],
    iterations: [],
    names: [],
    query: "",
    focus_slice: -1,
    focus_gap: null,
    critical_path: false,
  },
  ...{ moved_window: null, times: "recorded", times_note: "", switchable: false, python: "nested" },
  ...{ lane_filter: "", pinned: [], lane_groups: "rank", lane_order: [], flags: [], counters: [] },
  ...{ first_ranks: [], added_ranks: [], every_rank: false },
};

async function shown(state: Record<string, unknown> = {}, more: object = {}) {
  const model = new Kernel({ ...TRAITS, ...state });
  model.outline = { ...outline, ...more };
  const el = document.body.appendChild(document.createElement("div"));
  const over = new AbortController();
  open.push(over);
  let timeline: Timeline | undefined;
  const moves = vi.fn();
  el.addEventListener(BUILT, (event) => {
    timeline = (event as CustomEvent).detail;
  });
  el.addEventListener(MOVED, moves);
  await mount({ model, el, signal: over.signal, host: new FrozenHost({}, views) });
  const ready = async () => {
    await vi.waitFor(() => expect(timeline).toBeDefined(), 3000);
    timeline?.widenGutter(172); // and measures its element
    return timeline as Timeline;
  };
  return { model, el, over, moves, ready };
}

const line = (el: HTMLElement) => el.querySelector(".hta-timeline-focus")?.textContent ?? "";
const lanesOf = (timeline: Timeline) => [...new Set(timeline.layout.tracks.map(({ track }) => track.rank))];
const settle = () => new Promise((resolve) => setTimeout(resolve, 200));

it("loads the slices, says how many, and shows all of them", async () => {
  const { el, model, ready } = await shown();
  const timeline = await ready();
  await drawn();
  expect([el.dataset.slices, el.dataset.mode, el.dataset.times]).toEqual([
    String(outline.n),
    "client",
    "recorded",
  ]);
  expect(model.asked.slice(0, 2)).toEqual(["meta", "base"]);
  expect(timeline.view).toEqual({ t0: 0, t1: 9000 });
  expect(line(el)).toContain("drag: select");
  const items = slices();
  const found = timeline.source.find(0, items.start[20] as number, 0);
  expect([found?.start, found?.dur]).toEqual([items.start[20], items.dur[20]]);
  await settle();
  expect(model.get("view")).toEqual([0, 9000]);
});

it("says what goes on while Python arranges the slices, and why it cannot", async () => {
  const { el, model } = await shown({ status: "busy", message: "Reading rank 3" });
  expect(el.textContent).toContain("Reading rank 3");
  expect(el.querySelector(".hta-progress")).not.toBeNull();
  expect(model.asked).toEqual([]);
  model.set("message", "No memory");
  model.set("status", "error");
  await drawn();
  expect(el.querySelector(".hta-notice")?.getAttribute("data-severity")).toBe("error");
  expect(el.querySelector(".hta-progress")).toBeNull();
});

it("shows what others select", async () => {
  const { model, ready } = await shown({ window: [1000, 3000], iterations: [1], flags: [[700, "here"]] });
  const timeline = await ready();
  expect([timeline.window, timeline.flagging.flags]).toEqual([[1000, 3000], [[700, "here"]]]);
  model.set("window", null);
  model.set("view", [4000, 5000]);
  expect([timeline.window, timeline.view]).toEqual([null, { t0: 4000, t1: 5000 }]);
  timeline.look({ t0: 4000.4, t1: 5000.4 });
  model.set("view", [4001, 5001]); // Python knows whole ns: that is the same
  expect(timeline.view.t0).toBeCloseTo(4000.4);
  model.set("ranks", [3]);
  expect(lanesOf(timeline)).toEqual([3]);
  model.set("focus_slice", 7);
  await vi.waitFor(() => expect(timeline.focus.slice?.id).toBe(7));
  model.set("lane_filter", "-annotation");
  expect(timeline.layout.tracks.every(({ track }) => track.kind !== "annotation")).toBe(true);
});

it("tells others what is selected here, a moving view once it rests", async () => {
  const { model, moves, ready } = await shown();
  const timeline = await ready();
  await settle();
  timeline.look({ t0: 100.3, t1: 900.6 });
  timeline.look({ t0: 200.3, t1: 1000.6 });
  timeline.brush(300, 800);
  expect([model.get("view"), model.get("window"), moves.mock.calls.length]).toEqual([[0, 9000], null, 2]);
  await settle();
  expect([model.get("view"), model.get("window")]).toEqual([
    [200, 1001],
    [300, 800],
  ]);
  timeline.follow({ t0: 0, t1: 500 });
  expect(moves).toHaveBeenCalledTimes(2); // another one leads
  const slice = await timeline.source.slice(5);
  await timeline.choose(slice, false);
  expect(model.get("focus_slice")).toBe(5);
  timeline.chooseGap(0, [40, 70]);
  expect(model.get("focus_gap")).toEqual([0, 40]);
  await timeline.choose(null, false);
  expect([model.get("focus_slice"), model.get("focus_gap")]).toEqual([-1, null]);
});

it("pins a track, and unpins it", async () => {
  const { model, ready } = await shown({ pinned: [[3, "lane 0 of 3"]] });
  const timeline = await ready();
  await timeline.choose(await timeline.source.slice(2), false); // of rank 0's stream
  timeline.pin();
  expect(model.get("pinned")).toEqual([
    [3, "lane 0 of 3"],
    [0, "lane 0 of 0"],
  ]);
  timeline.pin();
  expect(model.get("pinned")).toEqual([[3, "lane 0 of 3"]]);
  timeline.hide();
  expect(model.get("lane_filter")).toContain("-rank 0 stream lane 0 of 0");
});

it("shows some of many ranks at first, and those that are gone to", async () => {
  const first = [
    { rank: 3, reason: "late" },
    { rank: 9, reason: "not there" },
  ];
  const { model, ready } = await shown({ first_ranks: first });
  const timeline = await ready();
  expect(lanesOf(timeline)).toEqual([3]);
  await timeline.choose(await timeline.source.slice(2), true); // of rank 0
  expect(model.get("added_ranks")).toEqual([0]);
  expect(lanesOf(timeline)).toEqual([3, 0]); // those to begin with stay above
  model.set("added_ranks", []);
  expect(lanesOf(timeline)).toEqual([3]);
  model.set("every_rank", true);
  expect(lanesOf(timeline)).toEqual([0, 3]);
  model.set("every_rank", false);
  model.set("ranks", [0]);
  expect(lanesOf(timeline)).toEqual([0]);
  await timeline.choose(await timeline.source.slice(11), true); // of rank 3, which is not selected
  expect(model.get("added_ranks")).toEqual([]);
});

it("marks of replayed times what has moved, not the recorded window", async () => {
  const { el, ready } = await shown({ window: [10, 20], moved_window: [30, 50] }, { replayed: true });
  const timeline = await ready();
  await drawn();
  expect([timeline.window, el.dataset.times]).toEqual([[30, 50], "what_if"]);
});

it("takes the height that is asked for", async () => {
  const { el, model, ready } = await shown({ height: 333 });
  await ready();
  const height = () => el.querySelector<HTMLElement>(".hta-timeline")?.style.height;
  expect(height()).toBe("333px");
  model.set("height", 500);
  expect(height()).toBe("500px");
});

it.each([
  [480, "504px"],
  [333, "333px"], // as the code asks for
])("remembers how high it was left where nobody asked for a height (%i)", async (height, again) => {
  const heightOf = (el: HTMLElement) => el.querySelector<HTMLElement>(".hta-timeline")?.style.height;
  const { el, ready } = await shown({ height });
  await ready();
  const lower = new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true, cancelable: true });
  el.querySelector('[aria-label="Height of the timeline"]')?.dispatchEvent(lower);
  expect(heightOf(el)).toBe(`${height + 24}px`);
  const next = await shown({ height });
  await next.ready();
  expect(heightOf(next.el)).toBe(again);
  localStorage.clear();
});

it("draws what is arranged anew in place of the old, and nothing once it is gone", async () => {
  const { el, model, over, ready } = await shown();
  await ready();
  model.set("version", 2);
  await vi.waitFor(() => expect(model.asked.filter((method) => method === "base")).toHaveLength(2));
  await drawn();
  expect(el.querySelectorAll(".hta-timeline")).toHaveLength(1);
  over.abort();
  expect(el.children).toHaveLength(0);
});

it("offers to set calls of Python apart where there are any, and a kernel to do so", async () => {
  const offered = async (state: object, more: object) => {
    const { el, ready } = await shown(state as Record<string, unknown>, more);
    await ready();
    await drawn();
    [...el.querySelectorAll("button")].find(({ textContent }) => textContent === "Lanes")?.click();
    await drawn();
    expect(el.textContent).toContain("Group by");
    return el.textContent?.includes("Modules and Python on lanes of their own");
  };
  const python = { class_of: [8, 0, 1, 2] };
  expect(await offered({}, {})).toBe(false);
  expect(await offered({}, python)).toBe(true);
  expect(await offered({ frozen: true }, python)).toBe(false);
});
