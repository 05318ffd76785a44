// DiffViewer and the panels that compare runs.

import { afterEach, expect, it, vi } from "vitest";
import { FrozenModel } from "../src/host";
import { MARK } from "../src/showing";
import { BUILT, MOVED } from "../src/timeline/linking";
import type { Linked } from "../src/timeline/lock";
import { drawn, knowDialogs, outside, show, wire } from "./support";

knowDialogs();
Element.prototype.scrollIntoView ??= () => {};
afterEach(() => {
  const found = [...document.querySelectorAll<SVGSVGElement>("svg.hta-bars")].flatMap(outside);
  document.body.replaceChildren();
  expect(found).toEqual([]);
});

const panel = {
  _view: "breakdown",
  status: "idle",
  message: "",
  kind: "step_waterfall",
  title: "Why a step takes longer or shorter",
  sentence: "A step of b is longer.",
  expression: 'viewer.frame("step_waterfall")',
  drawing: 'viewer.figure("step_waterfall")',
  chart: {},
  ranks: [],
  iterations: [],
  names: [],
  window: null,
  focus: null,
  legend: [],
  left_out: 0,
  extent: [0, 100],
  notes: [],
  form: [],
  options: {},
  rows: 0,
  table: null,
  marks: null,
};
const key = (target: Element | null | undefined, name: string) =>
  target?.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
const marks = (el: Element) => [...el.querySelectorAll<SVGElement>(".hta-bar-row")];

const nan = Number.NaN;
const waterfall = {
  ...panel,
  chart: { type: "waterfall" },
  legend: ["<b>b", "c"],
  marks: wire({
    run: [0, 0, 0, 0, 1, 1],
    label: ["Compute", "Memory", "Host late", "Step", "Compute", "Step"],
    value: [4e6, 0, -1e6, 3e6, 1e6, 1e6],
    start: [0, 4e6, 4e6, 0, 0, 0],
    end: [4e6, 4e6, 3e6, 3e6, 1e6, 1e6],
    time_class: ["compute", "memory", "idle", "idle", "compute", "idle"],
    low: [3e6, 0, -2e6, 2e6, nan, nan],
    high: [5e6, 0, 1e6, 4e6, nan, nan],
    significant: [1, 0, 0, 1, 0, 0],
    verdict: ["significant", "within noise", "inconclusive", "significant", "noise unknown", "noise unknown"],
    whole: [0, 0, 0, 1, 0, 1],
    before: [1e6, 2e6, 3e6, 6e6, 1e6, 6e6],
    after: [5e6, 2e6, 2e6, 9e6, 2e6, 7e6],
  }),
};

it("draws each part from where the one above ends, and the whole from zero", async () => {
  const { el } = await show(waterfall);
  expect(marks(el).map((mark) => mark.getAttribute("aria-label"))).toEqual([
    "<b>b, Compute: +4.00 ms, 95 % interval +3.00 ms to +5.00 ms; 1.00 ms before, 5.00 ms now",
    "<b>b, Host late: −1.00 ms, 95 % interval −2.00 ms to +1.00 ms; 3.00 ms before, 2.00 ms now; inconclusive",
    "<b>b, Step: +3.00 ms, 95 % interval +2.00 ms to +4.00 ms; 6.00 ms before, 9.00 ms now",
    "c, Compute: +1.00 ms; 1.00 ms before, 2.00 ms now; noise unknown",
    "c, Step: +1.00 ms; 6.00 ms before, 7.00 ms now; noise unknown",
  ]);
  const boxes = marks(el).map((mark) => {
    const box = mark.querySelector("rect:not(.hta-bar-hit)") as Element;
    const [x, width] = ["x", "width"].map((name) => Number(box.getAttribute(name))) as [number, number];
    return { from: x, to: x + width, hollow: box.classList.contains("hta-hollow") };
  });
  const [compute, host, step, second] = boxes as [Box, Box, Box, Box];
  expect(host.to).toBeCloseTo(compute.to);
  expect(step.to).toBeCloseTo(host.from);
  expect(step.from).toBeCloseTo(compute.from);
  expect(compute.to - compute.from).toBeCloseTo(4 * (second.to - second.from));
  const whisker = marks(el)[0]?.querySelector(".hta-whisker")?.getAttribute("d");
  const ends = /^M([\d.]+) [\d.]+H([\d.]+)/
    .exec(whisker ?? "")
    ?.slice(1)
    .map(Number);
  const quarter = (compute.to - compute.from) / 4;
  expect(ends?.[0]).toBeCloseTo(compute.to - quarter); // 3 of 4 ms
  expect(ends?.[1]).toBeCloseTo(compute.to + quarter);
  const late = /^M([\d.]+) /.exec(marks(el)[1]?.querySelector(".hta-whisker")?.getAttribute("d") ?? "")?.[1];
  expect(Number(late)).toBeCloseTo(compute.to - 2 * quarter); // from where the bar begins
  expect(boxes.map((box) => box.hollow)).toEqual([false, true, false, true, true]);
  expect(el.querySelectorAll(".hta-whisker")).toHaveLength(6); // with halos
  expect(el.querySelectorAll(".hta-joint")).toHaveLength(3);
  expect(el.querySelector("b")).toBeNull();
  expect(el.textContent).toContain("<b>b: too small to draw: Memory 0 ns");
  marks(el)[0]?.focus();
  key(marks(el)[0], "ArrowDown");
  expect(document.activeElement).toBe(marks(el)[1]);
});

interface Box {
  from: number;
  to: number;
  hollow: boolean;
}

const lines = {
  ...panel,
  kind: "diff",
  search: "",
  sort: [],
  only_significant: false,
  line: null,
  rows: 3,
  table: wire({
    kind: ["compute", "compute", "memory"],
    line: ["gemm<b>", "gemm<b>", "copy"],
    run: ["b", "c", "b"],
    change_ns: [2e6, -1e6, 0],
    low_ns: [1e6, -2e6, nan],
    verdict: ["significant", "within noise", "noise unknown"],
  }),
};
const bodyRows = (el: Element) => [...el.querySelectorAll<HTMLElement>("tbody tr")];
const heading = (el: Element, name: string) => el.querySelector<HTMLElement>(`th[title="${name}"]`);

it("lets the kernel sort: headings only say by what", async () => {
  const { el, model } = await show(lines);
  expect(el.querySelector("details")?.open).toBe(true);
  const change = heading(el, "change_ns");
  const text = () => bodyRows(el).map((row) => row.children[3]?.textContent);
  expect(text()).toEqual(["+2.00", "−1.00", "0"]);
  expect(bodyRows(el).map((row) => [row.lastChild?.textContent, row.dataset.noise])).toEqual([
    ["significant", undefined],
    ["within noise", "true"],
    ["noise unknown", undefined],
  ]);
  const seen: unknown[] = [];
  for (let i = 0; i < 3; i++) {
    change?.querySelector("button")?.click();
    await drawn();
    seen.push([model.get("sort"), change?.getAttribute("aria-sort")]);
  }
  expect(seen).toEqual([
    [["change_ns", true], "descending"],
    [["change_ns", false], "ascending"],
    [[], null],
  ]);
  heading(el, "line")?.querySelector("button")?.click();
  expect(model.get("sort")).toEqual(["line", false]);
  expect(text()).toEqual(["+2.00", "−1.00", "0"]); // nothing moves before the kernel says so
});

it("chooses a line in all its runs by mouse and keyboard, and lets it go again", async () => {
  const { el, model } = await show(lines);
  const chosen = () => bodyRows(el).map((row) => row.getAttribute("aria-selected"));
  bodyRows(el)[1]?.click();
  await drawn();
  expect([model.get("line"), chosen()]).toEqual([
    ["compute", "gemm<b>"],
    ["true", "true", "false"],
  ]);
  expect(bodyRows(el).map((row) => row.tabIndex)).toEqual([-1, 0, -1]);
  bodyRows(el)[1]?.focus();
  key(bodyRows(el)[1], "ArrowDown");
  expect(document.activeElement).toBe(bodyRows(el)[2]);
  key(bodyRows(el)[2], "Enter");
  await drawn();
  expect([model.get("line"), chosen()]).toEqual([
    ["memory", "copy"],
    ["false", "false", "true"],
  ]);
  key(bodyRows(el)[2], " ");
  expect(model.get("line")).toBeNull();
  model.set("line", ["memory", "copy"]); // from Python
  await drawn();
  expect(chosen()).toEqual(["false", "false", "true"]);
  expect(el.querySelector("td b")).toBeNull();
});

it("narrows the lines, and can be widened again when nothing is left", async () => {
  const { el, model } = await show(lines);
  const bar = el.querySelector(".hta-lines") as HTMLElement;
  const box = bar.querySelector("input") as HTMLInputElement;
  const only = bar.querySelector("button") as HTMLButtonElement;
  box.value = "xyz";
  box.dispatchEvent(new Event("input", { bubbles: true }));
  expect(model.get("search")).toBe("");
  key(box, "Enter");
  only.click();
  await drawn();
  expect([model.get("search"), model.get("only_significant"), only.ariaPressed]).toEqual([
    "xyz",
    true,
    "true",
  ]);
  model.set("table", wire({ kind: [], line: [], run: [], change_ns: [], verdict: [] }));
  model.set("rows", 0);
  await drawn();
  expect(el.querySelector(".hta-lines input")).toBe(box);
  expect(el.querySelector("tbody")?.childElementCount).toBe(0);
});

it("offers nothing that only a kernel can do where there is none", async () => {
  const { el, model } = await show({ ...lines, frozen: true });
  expect(el.querySelector(".hta-lines, th button, [aria-selected]")).toBeNull();
  bodyRows(el)[0]?.click();
  expect(model.get("line")).toBeNull();
});

const viewer = {
  _view: "diff",
  runs: [
    { name: "ddp", detail: "4 ranks" },
    { name: "<i>fsdp", detail: "" },
  ],
  notices: [{ severity: "warning", text: "other <b>cards</b>" }],
  parts: [
    ["panel", "anywidget:p", "step_waterfall"],
    ["timeline", "anywidget:a", "ddp"],
    ["timeline", "anywidget:b", "<i>fsdp"],
  ],
  locked: true,
  align: "step",
  pairing: 0,
  line: null,
};

const children = () => ({
  "anywidget:p": new FrozenModel(waterfall),
  "anywidget:a": new FrozenModel({ _view: "timeline", status: "busy", message: "" }),
  "anywidget:b": new FrozenModel({ _view: "timeline", status: "busy", message: "" }),
});

const linked = (extent: [number, number]) => ({
  view: { t0: extent[0], t1: extent[1] },
  outline: { extent },
  pixels: 100,
  bounds: extent,
  bands: () => [],
  follow: vi.fn<Linked["follow"]>(),
  point: vi.fn<Linked["point"]>(),
});

it("shows runs by letter, doubts, panels and locked timelines", async () => {
  const { el, model } = await show(viewer, children());
  await drawn();
  expect([...el.querySelectorAll(".hta-runs > li")].map((run) => run.textContent)).toEqual([
    "Addp4 rankscompared with",
    "B<i>fsdp",
  ]);
  expect(el.querySelector(".hta-notice")?.textContent).toBe("other <b>cards</b>");
  expect(el.querySelector("i, b")).toBeNull();
  expect(marks(el)).toHaveLength(5);
  const slots = [...el.querySelectorAll(".hta-run-timeline .hta-slot")];
  const [a, b] = [linked([0, 100]), linked([1000, 1100])];
  for (const [i, detail] of [a, b].entries())
    slots[i]?.dispatchEvent(new CustomEvent(BUILT, { detail, bubbles: true }));
  expect(b.follow).toHaveBeenLastCalledWith({ t0: 1000, t1: 1100 });
  const [question] = model.sent.map(
    ({ content }) => content as { call: string; method: string; params: object },
  );
  expect(question).toMatchObject({ method: "anchors", params: { run: 0, t0: 0, t1: 100 } });
  const rows = new DataView(Float64Array.of(0, 100, 1000, 1400).buffer);
  const result = { n: 2, runs: 2, from: 0, to: 40 }; // and up to the middle of the view
  model.emit("msg:custom", { rpc: 1, call: question?.call, result }, [rows]);
  await drawn();
  expect(b.follow).toHaveBeenLastCalledWith({ t0: 1150, t1: 1250 });
  slots[1]?.dispatchEvent(new CustomEvent(MOVED, { bubbles: true }));
  expect(a.follow).toHaveBeenCalled();
  const [lock] = el.querySelectorAll<HTMLButtonElement>(".hta-lock button");
  const align = el.querySelector<HTMLSelectElement>(".hta-lock select") as HTMLSelectElement;
  align.value = "op";
  align.dispatchEvent(new Event("change", { bubbles: true }));
  expect(model.get("align")).toBe("op");
  expect(model.sent).toHaveLength(2); // other instants correspond now
  expect(model.sent[1]?.content).toMatchObject({ method: "anchors", params: { align: "op" } });
  model.set("pairing", 1); // as they do when something else is selected in a run
  expect(model.sent.slice(2).map(({ content }) => content)).toMatchObject([
    { cancel: true },
    { method: "anchors" },
  ]);
  lock?.click();
  await drawn();
  expect([model.get("locked"), lock?.ariaPressed, align.disabled]).toEqual([false, "false", true]);
});

it("frames a place of a change in its run, and none in the other", async () => {
  const { el } = await show(viewer, children());
  await drawn();
  const lines = viewer.runs.map(() => ({ ...linked([0, 100]), mark: vi.fn(), look: vi.fn() }));
  for (const [i, slot] of [...el.querySelectorAll(".hta-run-timeline .hta-slot")].entries())
    slot.dispatchEvent(new CustomEvent(BUILT, { detail: lines[i], bubbles: true }));
  const place = { rank: 0, span: [20, 30], label: "longer", cause: null, ranks: [0] };
  for (const at of [0, 1, -1]) {
    const detail = at < 0 ? null : { ...place, run: viewer.runs[at]?.name };
    el.dispatchEvent(new CustomEvent(MARK, { detail }));
    for (const [i, line] of lines.entries())
      expect(line.mark.mock.lastCall).toEqual(i === at ? [detail, [0]] : [null, []]);
  }
  for (const { look, view } of lines) expect(look.mock.lastCall).toEqual([view]); // as it was before
});

it("shows each panel once where there are no timelines", async () => {
  const { el } = await show({ ...viewer, parts: viewer.parts.slice(0, 1) }, children());
  await drawn();
  expect(marks(el)).toHaveLength(5);
  expect(el.querySelector('[aria-label="Timelines"]')).toBeNull();
});

it.each([false, true])("names the highlighted line, and drops it (frozen: %s)", async (frozen) => {
  const { el, model } = await show({ ...viewer, frozen, line: ["compute", "<b>gemm"] }, children());
  const highlighted = () => el.querySelector(".hta-highlighted");
  expect(highlighted()?.querySelector("span")?.textContent).toBe("Highlight up: <b>gemm");
  const button = highlighted()?.querySelector("button");
  expect(!button).toBe(frozen);
  if (!button) return;
  button.click();
  await drawn();
  expect([model.get("line"), highlighted()]).toEqual([null, null]);
});

it("says why a line's events cannot be found, and nothing of the kind while it loads", async () => {
  const { el, model } = await show(viewer, children());
  const notice = () => el.querySelector("section > .hta-notice")?.textContent;
  expect(notice()).toBeUndefined();
  model.set("message", "no <b>calls");
  await drawn();
  expect(notice()).toBe("no <b>calls");
  model.set("status", "busy");
  await drawn();
  expect(notice()).toBeUndefined();
});

it.each([
  [false, ["Everywhere", "Table of changes", "Timeline"]],
  [true, ["Everywhere", "Timeline"]], // nobody is there to order and to choose
])("helps with what there is (frozen: %s)", async (frozen, titles) => {
  const { el } = await show({ ...viewer, frozen }, children());
  key(el.querySelector(".hta-lock button"), "?");
  const help = () => [...el.querySelectorAll("dialog h4")].map((title) => title.textContent);
  expect(help()).toEqual(titles);
  expect(el.querySelector("dialog")?.textContent).not.toContain("undo");
  el.querySelector<HTMLButtonElement>("dialog button")?.click();
  el.querySelector<HTMLButtonElement>('[aria-label="Keys and gestures"]')?.click();
  expect(help()).toEqual(titles);
  el.querySelector<HTMLButtonElement>("dialog button")?.click();
});

it("says why runs are not compared", async () => {
  const { el, model } = await show({
    ...viewer,
    runs: [],
    notices: [],
    parts: [],
    status: "error",
    message: "no <b>",
  });
  expect(el.querySelector('[role="alert"]')?.textContent).toBe("no <b>Try again");
  el.querySelector("button")?.click();
  expect(model.sent[0]?.content).toMatchObject({ method: "load" });
  expect(el.querySelector(".hta-lock")).toBeNull();
});

it("draws a bar for each run that stands for no rank", async () => {
  const { el } = await show({
    ...panel,
    ranks: undefined,
    iterations: undefined,
    names: undefined,
    chart: {
      type: "stack",
      whole: "step_ns",
      series: [{ column: "compute_ns", label: "Compute", time_class: "compute" }],
    },
    marks: wire({ label: ["ring", "b"], step_ns: [2e6, 4e6], compute_ns: [1e6, 1e6] }),
  });
  expect(marks(el).map((mark) => [mark.getAttribute("role"), mark.getAttribute("aria-label")])).toEqual([
    ["img", "ring: Compute 1.00 ms (50.0 %); 2.00 ms in all."],
    ["img", "b: Compute 1.00 ms (25.0 %); 4.00 ms in all."],
  ]);
});

it("shows a memory snapshot as its headline and its panels, names as text", async () => {
  const name = "<img src=x onerror=alert(1)>";
  const peak = new FrozenModel({
    ...panel,
    kind: "peak",
    label: "Owners at the peak",
    sentence: name,
    rows: 1,
  });
  const state = {
    _view: "memory",
    status: "idle",
    headline: `Most of it at ${name}.`,
    parts: [
      ["panel", "timeline", "timeline"],
      ["panel", "peak", "peak"],
      ["panel", "blockers", "blockers"],
    ],
  };
  const { el } = await show(state, { timeline: peak, peak, blockers: peak });
  await drawn();
  expect(el.querySelector("h2")?.textContent).toBe(`Most of it at ${name}.`);
  expect(el.querySelector("img")).toBeNull();
  const panels = [...el.querySelectorAll<HTMLElement>(".hta-panel")];
  expect(panels.map(({ dataset }) => [dataset.kind, dataset.wide])).toEqual([
    ["timeline", "true"],
    ["peak", "true"],
    ["blockers", "false"],
  ]);
  expect(panels.map((one) => one.querySelector("h3")?.textContent)).toEqual(
    Array(3).fill("Owners at the peak"),
  );
});
