// WhatIf: the hand moves sliders, the browser answers, and the kernel has the last word.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { FrozenModel } from "../src/host";
import { Replay } from "../src/replay/answer";
import { mount } from "../src/what_if";
import { barOf } from "../src/what_if/story";
import { control, GRAPH, packed } from "./replay";
import { drawn } from "./support";

const KERNELS = control("kernels", { label: "Compute kernels", scaled: [2], speed: true });
const SYNCS = control("syncs", { label: "Synchronisation", removed: [3], off: "does not wait", bound: true });
const COPIES = control("copies", { label: "Copies", nothing: true });

const RECORDED = {
  settings: {},
  further: [] as string[],
  before: 161,
  low: 161,
  after: 161,
  high: 161,
  parts_before: [41, 0, 0, 120],
  parts_after: [41, 0, 0, 120],
  step: {
    before: 80,
    low: 80,
    after: 80,
    high: 80,
    parts_before: [20, 0, 0, 60],
    parts_after: [20, 0, 0, 60],
    chain: [] as unknown[],
    count: 2,
    clock: "host",
  },
  chain: [] as unknown[],
};

const ABOUT = { rank: 0, graph: 1, nodes: 6, live: true, model_error_pct: 3.04, inferred: 12, edges: 3400 };

// jsdom cannot inflate
vi.mock("../src/timeline/decode", () => ({
  inflate: async ([view]: DataView<ArrayBuffer>[]) => new Uint8Array((view as DataView<ArrayBuffer>).buffer),
}));

let closing: AbortController;
beforeEach(() => {
  closing = new AbortController();
});
afterEach(() => {
  closing.abort();
  document.body.replaceChildren();
});

/** A widget whose kernel sends the graph; `graph` false: it does not; "later": it is not used at first. */
async function show(state: Record<string, unknown> = {}, graph: boolean | "later" = true) {
  const model = new FrozenModel({
    _view: "what_if",
    status: "idle",
    message: "",
    rank: null,
    settings: {},
    further: [],
    options: [{ rank: 0, label: "0" }],
    about: ABOUT,
    controls: [KERNELS, COPIES, SYNCS],
    answer: RECORDED,
    expression: "analysis.what_if(trace, [])",
    ...state,
  });
  const bytes = new DataView(packed(GRAPH).buffer);
  model.on("test:sent", (content: { call: string; method: string }) => {
    if (content.method !== "graph" || !graph) return;
    model.emit("msg:custom", { rpc: 1, call: content.call, result: { chunks: 1 } }, [bytes]);
  });
  const el = document.body.appendChild(document.createElement("div"));
  await mount({ model, el, signal: closing.signal, host: { getWidget: () => Promise.reject() } });
  if (graph === true) await vi.waitFor(() => expect(el.querySelector("[data-live=true]")).not.toBeNull());
  await drawn();
  return { model, el };
}

const slider = (el: Element, name: string) =>
  el.querySelector(`[data-control=${name}] input`) as HTMLInputElement;

function drag(input: HTMLInputElement, value: number) {
  input.value = String(value);
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

const frame = () => new Promise(requestAnimationFrame);

const headline = (el: Element) => el.querySelector("h2")?.textContent;

const texts = (el: Element, selector: string) =>
  [...el.querySelectorAll(selector)].map((item) => item.textContent);

it("shows what was recorded, and what cannot change", async () => {
  const { el } = await show();
  expect(headline(el)).toBe("80 ns per step, as recorded");
  expect(el.querySelector(".hta-story p")?.textContent).toBe(
    "The mean of 2 steps. The whole recording: 161 ns.",
  );
  expect(texts(el, ".hta-key-of")).toEqual(["compute 20 ns", "idle 60 ns"]);
  expect(texts(el, "label")).toContain("Compute kernels");
  expect(slider(el, "copies").disabled).toBe(true);
  expect(el.querySelector("[data-control=copies]")?.textContent).toContain("not in this recording");
  expect(el.querySelector(".hta-wi-trust")?.textContent).toContain(
    "Model error 3.04 %; 12 of 3,400 dependencies inferred",
  );
  expect((el.querySelector("button") as HTMLButtonElement).disabled).toBe(true); // nothing to reset
});

it("answers while the hand moves, and tells the kernel when it rests", async () => {
  const { el, model } = await show();
  drag(slider(el, "kernels"), 145);
  const filled = (end: string) => Number(slider(el, "kernels").style.getPropertyValue(`--hta-${end}`));
  await vi.waitFor(() => expect(filled("to")).toBeCloseTo(0.725, 3));
  expect(filled("from")).toBe(0.5);
  const moved = "161 → 141 ns for the recording with compute kernels 1.82× as fast";
  await vi.waitFor(() => expect(headline(el)).toBe(moved));
  expect(model.get("settings")).toEqual({});
  const copy = () => [...el.querySelectorAll("button")].find((each) => each.textContent === "Copy Python");
  expect(copy()?.disabled).toBe(true); // until the kernel has it
  // 55 % of the time is 1.82 times as fast
  expect(el.querySelector("[data-control=kernels]")?.textContent).toContain("55 %, 1.82× as fast");
  await vi.waitFor(() => expect(model.get("settings")).toEqual({ kernels: 1 / 1.82 }));
  const confirmed = { ...RECORDED, settings: { kernels: 1 / 1.82 }, low: 140, after: 141, high: 143 };
  const [link] = [{ name: "kernels", expression: "", bound: false, time_class: "compute" }];
  const chain = [{ ...link, alone: 70, together: 70 }];
  const parts_after = [10, 0, 0, 60];
  model.set("answer", { ...confirmed, step: { ...RECORDED.step, low: 70, after: 70, parts_after, chain } });
  await vi.waitFor(() => expect(headline(el)).toBe("80 → 70 ns per step with compute kernels 1.82× as fast"));
  expect(el.querySelector(".hta-story p")?.textContent).toBe(
    "12.5 % less. Between 70 ns and 80 ns. The mean of 2 steps. The whole recording: 161 → 141 ns.",
  );
  expect(texts(el, ".hta-key-of")).toEqual(["compute 20 → 10 ns", "idle 60 ns"]);
  expect(el.querySelectorAll("[data-stale]")).toHaveLength(0);
  expect(copy()?.disabled).toBe(false);
  expect(el.querySelector("[role=alert]")).toBeNull();
  model.set("answer", { ...confirmed, after: 142 });
  await vi.waitFor(() => expect(el.querySelector("[role=alert]")?.textContent).toContain("142 ns"));
});

it("answers a move at once, and those before the next frame together", async () => {
  const { el } = await show();
  await frame(); // the answer to what was recorded is drawn
  const replayed = vi.spyOn(Replay.prototype, "whole");
  for (const value of [105, 120, 150]) drag(slider(el, "kernels"), value);
  expect(replayed).toHaveBeenCalledTimes(1);
  await frame();
  expect(replayed).toHaveBeenCalledTimes(2);
  await drawn();
  expect(headline(el)).toContain("161 → 139 ns");
  replayed.mockRestore();
});

const place = (el: Element, text: string) =>
  el.querySelector(`.hta-wi-map [aria-label^="${text}"]`) as SVGElement;

it("draws where it is bound, and sets both sliders by a click", async () => {
  const { el, model } = await show({ about: { ...ABOUT, speeds: [0.5, 1, 2] }, settings: { syncs: 0 } });
  await vi.waitFor(() => expect(place(el, "Host 1×, compute kernels 2×")).not.toBeNull());
  // 158 ns without the wait; the kernel of 41 ns, and the 4 ns of its residual, in half the time
  expect(place(el, "Host 1×, compute kernels 2×").getAttribute("aria-label")).toContain(
    "compute kernels 2×: 136 ns, 84.5 % of the recorded time",
  );
  expect(el.querySelectorAll(".hta-wi-map [role=button]")).toHaveLength(9);
  expect(place(el, "Host 1×, compute kernels 1×").getAttribute("aria-pressed")).toBe("true");
  place(el, "Host 1×, compute kernels 2×").dispatchEvent(new MouseEvent("click", { bubbles: true }));
  await vi.waitFor(() => expect(headline(el)).toContain("→ 136 ns"));
  await vi.waitFor(() => expect(model.get("settings")).toEqual({ syncs: 0, kernels: 0.5 }));
  expect(place(el, "Host 1×, compute kernels 2×").getAttribute("aria-pressed")).toBe("true");
  expect(texts(el, ".hta-wi-map tbody tr:last-child td").slice(0, 2)).toEqual(["2", "2"]);
});

it("has the kernel draw the map where the browser has no graph, and forgets it after a change", async () => {
  const { el, model } = await show({ about: { ...ABOUT, live: false, speeds: [1, 2] } }, false);
  const draw = () =>
    [...el.querySelectorAll("button")].find((button) => button.textContent === "Draw the map");
  draw()?.click();
  await drawn();
  const { call } = model.sent
    .map(({ content }) => content as { call: string; method: string })
    .find(({ method }) => method === "speed_map") as { call: string };
  model.emit("msg:custom", { rpc: 1, call, result: { before: 200, after: [200, 150, 180, 100] } }, []);
  await vi.waitFor(() =>
    expect(place(el, "Host 2×, compute kernels 1×").getAttribute("aria-label")).toContain("180 ns, 90.0 %"),
  );
  const side = (name: string) => Number(el.querySelector(".hta-wi-frame")?.getAttribute(name));
  const inside = (at: number, from: number) => at >= from - 0.01 && at <= from + side("width") + 0.01;
  const lines = [...el.querySelectorAll(".hta-wi-line")].map((line) => line.getAttribute("d") ?? "");
  const points = lines.flatMap((line) =>
    line
      .split(/[ML]/)
      .slice(1)
      .map((point) => point.split(",").map(Number)),
  );
  expect(points.length).toBeGreaterThan(4);
  for (const [left = 0, top = 0] of points)
    expect([inside(left, side("x")), inside(top, side("y"))]).toEqual([true, true]);
  drag(slider(el, "kernels"), 150);
  await drawn();
  expect(el.querySelector(".hta-wi-map")).not.toBeNull(); // the map has all speeds
  model.set("further", ["edits.graphs()"]);
  await drawn();
  expect(el.querySelector(".hta-wi-map")).toBeNull();
  expect(draw()).toBeDefined();
});

it("says what each edit saves, the bound, and what they do together, which adds up", async () => {
  const { el } = await show({ settings: { kernels: 0.5, syncs: 0 } });
  await vi.waitFor(() => expect(el.querySelectorAll(".hta-wi-changes li")).toHaveLength(2));
  expect(headline(el)).toBe(
    "161 → 136 ns for the recording with compute kernels 2× as fast and no synchronisation",
  );
  expect(texts(el, ".hta-wi-changes li > span:last-child")).toEqual([
    "Compute kernels: saves 22 ns.",
    "Synchronisation: saves 3 ns at most on top of the changes before it; saves 3 ns at most on its own.",
  ]);
  const second = el.querySelector('[aria-label="Change 2: Synchronisation, −3 ns · upper bound"]');
  (second as HTMLButtonElement).click();
  await drawn();
  expect(texts(el, ".hta-wi-changes [data-shown=true] .hta-number")).toEqual(["2"]);
  expect(el.querySelector(".hta-under")?.textContent).toContain("25 ns saved (15.5 %)136 ns remain");
  expect(el.querySelector(".hta-wi-trust")?.textContent).toContain("An upper bound (synchronisation)");
});

it("has a bar whose parts add up, also where changes cost time or take savings back", () => {
  const times = { before: 100, low: 0, after: 0, high: 0, parts_before: [50, 20, 0, 30] };
  const link = { expression: "", bound: false, time_class: "compute" };
  const told = (after: number, together: number[]) => {
    const chain = together.map((time, at) => ({ ...link, name: `${at}`, alone: time, together: time }));
    const own = barOf({ ...times, after, parts_after: [after - 5, 0, 0, 5], chain }, []);
    expect(own.parts.reduce((sum, { ns }) => sum + ns, 0)).toBe(own.whole_ns);
    return { ...own, savings: own.parts.filter(({ form }) => form !== "rest").map(({ ns }) => ns) };
  };
  expect(told(70, [80, 70])).toMatchObject({ whole_ns: 100, savings: [20, 10] });
  expect(told(85, [80, 70, 85])).toMatchObject({ whole_ns: 100, savings: [15, 0, 0] });
  expect(told(90, []).savings).toEqual([10]); // what each saves is not there yet
  const longer = told(130, [110, 130]);
  expect(longer).toMatchObject({ whole_ns: 130, savings: [0, 0], saved: "" });
  expect(longer.remains).toBe("130 ns in all, 30 ns more");
  expect(longer.advice[1]?.label).toBe("+20 ns · simulated");
});

it("follows Python, and forgets all on reset", async () => {
  const { el, model } = await show();
  model.set("settings", { kernels: 0.5, syncs: 0 });
  await vi.waitFor(() => expect(slider(el, "kernels").value).toBe("150"));
  expect(slider(el, "syncs").checked).toBe(true);
  el.querySelector("button")?.click();
  await drawn();
  expect([slider(el, "kernels").value, slider(el, "syncs").checked]).toEqual(["100", false]);
  expect(model.get("settings")).toEqual({});
});

it("leaves edits that no slider makes to the kernel, as text", async () => {
  const expression = "edits.kernels(2.0, name='<img src=x>')";
  const chain = [{ name: "", expression, bound: true, time_class: "compute", alone: 100, together: 100 }];
  const answer = { ...RECORDED, further: [expression], after: 100, chain, step: null };
  const { el, model } = await show({ further: [expression], answer }, false);
  expect(headline(el)).toBe(`161 → 100 ns for the recording with ${expression}`);
  expect(el.querySelector("img")).toBeNull();
  expect(el.querySelector("code")?.textContent).toBe(expression);
  expect(texts(el, ".hta-wi-changes li > span:last-child")).toEqual([`${expression}: saves 61 ns at most.`]);
  [...el.querySelectorAll("button")].find((button) => button.textContent === "Drop")?.click();
  await drawn();
  expect(model.get("further")).toEqual([]);
});

it("fetches another graph of the same rank", async () => {
  const { el, model } = await show();
  const asked = () => model.sent.filter(({ content }) => (content as { method: string }).method === "graph");
  model.set("about", { ...ABOUT, inferred: 13 });
  await drawn();
  expect(asked()).toHaveLength(1);
  model.set("about", { ...ABOUT, graph: 2 });
  await vi.waitFor(() => expect(asked()).toHaveLength(2));
  await vi.waitFor(() => expect(el.querySelector("[data-live=true]")).not.toBeNull());
});

it("uses no graph that comes when another one is wanted", async () => {
  const { el, model } = await show({}, false);
  model.set("about", { ...ABOUT, graph: 2 });
  const calls = () => model.sent.map(({ content }) => content as { call: string; method: string });
  const asked = () => calls().filter(({ method }) => method === "graph");
  await vi.waitFor(() => expect(asked()).toHaveLength(2));
  const [first, second] = asked();
  const comes = (call?: string) =>
    model.emit("msg:custom", { rpc: 1, call, result: { chunks: 1 } }, [new DataView(packed(GRAPH).buffer)]);
  comes(first?.call);
  await drawn();
  expect(el.querySelector("[data-live=true]")).toBeNull();
  comes(second?.call);
  await vi.waitFor(() => expect(el.querySelector("[data-live=true]")).not.toBeNull());
});

it("waits for the kernel where it has no graph", async () => {
  const { el, model } = await show({ about: { ...ABOUT, live: false } }, false);
  drag(slider(el, "kernels"), 150);
  await drawn();
  expect(el.querySelector(".hta-story-body")?.getAttribute("data-stale")).toBe("true");
  await vi.waitFor(() => expect(model.get("settings")).toEqual({ kernels: 0.5 }));
  model.set("answer", { ...RECORDED, settings: { kernels: 0.5 }, after: 139, step: null });
  await vi.waitFor(() => expect(headline(el)).toContain("161 → 139 ns"));
});

it("answers alone in a report, where no slider's edit takes the saved answer only", async () => {
  const answer = { ...RECORDED, further: ["edits.graphs()"], after: 100, step: null };
  const { el, model } = await show({ frozen: true, further: ["edits.graphs()"], answer }, "later");
  expect(headline(el)).toBe("161 → 100 ns for the recording with edits.graphs()");
  expect(slider(el, "kernels").disabled).toBe(true);
  await vi.waitFor(() => expect(el.querySelector(".hta-notice")?.textContent).toContain("no slider makes"));
  [...el.querySelectorAll("button")].find((button) => button.textContent === "Drop")?.click();
  await vi.waitFor(() => expect(headline(el)).toBe("161 ns for the recording, as recorded"));
  drag(slider(el, "kernels"), 150);
  await vi.waitFor(() => expect(headline(el)).toContain("161 → 139 ns"));
  // the map follows, piece by piece
  await vi.waitFor(() =>
    expect([...el.querySelectorAll("button:not(.hta-seg)")].map((button) => button.textContent)).toEqual([
      "Reset",
      "Export map",
    ]),
  );
  expect(model.get("further")).toEqual([]);
});

it("shows the reason instead of what was there when it fails later", async () => {
  const { el, model } = await show();
  expect(el.querySelector(".hta-story")).not.toBeNull();
  model.set("status", "error");
  await vi.waitFor(() => expect(el.querySelector(".hta-story")).toBeNull());
});

it("shows nothing but the reason where it abstains", async () => {
  const message = "The trace has no recording whose replay can be trusted: <b>why</b>.";
  const { el } = await show({ status: "empty", message, answer: {}, about: {}, controls: [] }, false);
  expect(el.querySelector("[role=status]")?.textContent).toBe(message);
  expect(el.querySelectorAll("input, .hta-story")).toHaveLength(0);
});

it("shows edits of several ranks for the job: no rank, no sliders, no map", async () => {
  const { el, model } = await show(
    {
      rank: 1,
      options: [0, 1].map((rank) => ({ rank, label: String(rank) })),
      further: ["edits.no_stragglers()"],
      about: { job: "Step of 2 ranks", live: false, model_error_pct: 0.4 },
      controls: [],
      answer: {
        ...RECORDED,
        further: ["edits.no_stragglers()"],
        after: 101,
        step: null,
        parts_before: [],
        parts_after: [],
      },
    },
    false,
  );
  expect(el.textContent).toContain("Step of 2 ranks");
  expect(headline(el)).toBe("161 → 101 ns per step with edits.no_stragglers()");
  expect(texts(el, ".hta-key-of")).toEqual(["the rest 101 ns"]);
  expect(el.textContent).toContain("All ranks replayed together");
  expect(el.querySelectorAll("input, select").length).toBe(0);
  [...el.querySelectorAll("button")].find((button) => button.textContent === "Reset")?.click();
  expect(model.get("further")).toEqual([]);
});

it("names edits of several ranks in words, and shows their code beneath", async () => {
  const expression = "edits.no_stragglers()";
  const label = "no ranks that are late";
  const link = { name: "", expression, label, bound: false, time_class: "communication" };
  const chain = [{ ...link, alone: 101, together: 101 }];
  const answer = { ...RECORDED, further: [expression], after: 101, step: null, chain };
  const { el } = await show({ further: [expression], answer, controls: [] }, false);
  const row = el.querySelector(".hta-wi-row .hta-cut");
  expect(row?.textContent).toBe("No ranks that are late");
  expect(row?.getAttribute("title")).toBe(expression);
});

it("takes refused changes back", async () => {
  const given = { status: "error", message: "apart", further: ["edits.no_stragglers()"], answer: {} };
  const { el, model } = await show(given, false);
  [...el.querySelectorAll("button")].find((button) => button.textContent === "Reset")?.click();
  expect(model.get("further")).toEqual([]);
});
