// @vitest-environment jsdom
// The story, its advice, the launcher, and the fold of panels that cannot answer.

import { afterEach, expect, it } from "vitest";
import { FrozenModel, type SentMessage } from "../src/host";
import { mentions } from "../src/launcher";
import { OPEN } from "../src/notes";
import { byRelevance } from "../src/panelbar";
import { MARK, type Mark, TRY } from "../src/showing";
import { placed } from "../src/story/bar";
import { drawn, EXPLORER, knowDialogs, show } from "./support";

knowDialogs();
Element.prototype.scrollIntoView ??= () => {};

afterEach(() => document.body.replaceChildren());

const finding = (noun: string, more: object = {}) => ({
  topic: noun,
  noun,
  title: `${noun} <b>costs</b> time`,
  form: "simulated",
  figure: "−40 ns",
  label: "−40 ns · simulated",
  what: ["The GPU is idle."],
  why: ["The loader makes each batch itself."],
  todo: "Do something.",
  sure: "Simulated without it.",
  wrong_if: "",
  risk: "",
  needs: "Cores.",
  own: "",
  kind: "idle_breakdown",
  edits: "",
  lost_as: "idle",
  places: [
    { rank: 2, start_ns: 5, end_ns: 9, label: "4 ns idle", cause: [4, 9] },
    { rank: 2, start_ns: 15, end_ns: 18, label: "3 ns idle", cause: null },
  ],
  ranks: [2],
  ...more,
});

const CONTENT = {
  scope: "all 4 ranks, 4 steps, 100 ns per step",
  narrowed: false,
  headline: "100 ns per step; it could be 40 ns without <i>this</i>",
  limits: "",
  whole_ns: 100,
  per_step: true,
  parts: [
    { ns: 40, form: "simulated", lost_as: "idle", finding: 0 },
    { ns: 20, form: "unknown", lost_as: "compute", finding: 1 },
    { ns: 40, form: "rest", lost_as: "compute", finding: -1 },
  ],
  saved: "40 ns can be saved (40 %)",
  remains: "60 ns remain",
  advice: [finding("A", { edits: "[edits.host(0.5)]" }), finding("B", { form: "unknown", places: [] })],
  clean: ["Data loader", "zero_grad"],
  unknown: [{ name: "No shapes", remedy: "Record them." }],
  trust: "",
  asides: [],
  kinds: [],
  nothing: "Nothing to save stands out",
  hint: "Look at the kernels.",
  look_at: "kernel_breakdown",
};
const STORY = { _view: "story", content: CONTENT, shown: -1 };

/** A story in an explorer, which places its advice. */
async function inExplorer(more: object = {}) {
  const model = new FrozenModel({ ...STORY, status: "idle", message: "", ...more });
  const shown = await show(
    { ...EXPLORER, streams: [], parts: [["story", "anywidget:s"]] },
    { "anywidget:s": model },
  );
  for (let i = 0; i < 4; i++) await drawn();
  return { ...shown, story: model };
}

it("keeps a number with its unit on one line, and the text as it is", async () => {
  const { el } = await inExplorer();
  const texts = [".hta-story h2", ".hta-scope strong"].map((name) => el.querySelector(name));
  expect(texts.map((text) => text?.textContent)).toEqual([CONTENT.headline, CONTENT.scope]);
  const held = texts.map((text) =>
    [...(text?.querySelectorAll(".hta-held") ?? [])].map((e) => e.textContent),
  );
  expect(held).toEqual([["100 ns", "40 ns"], ["100 ns"]]);
});

it("keeps start-up on one line", async () => {
  const headline = "23.0 ms in all; 13.2 ms of it is start-up, mostly cudaLaunchKernel";
  const { el } = await inExplorer({ content: { ...CONTENT, headline } });
  const held = [...el.querySelectorAll(".hta-story h2 .hta-held")].map((part) => part.textContent);
  expect(held).toEqual(["23.0 ms", "13.2 ms", "start-up"]);
});

it("lists the labels below a bar that they do not fit on, and places them again on a wider one", async () => {
  const widths = { bar: 1200, label: 150 };
  const own = Object.getOwnPropertyDescriptor(HTMLElement.prototype, "offsetWidth") as PropertyDescriptor;
  Object.defineProperty(HTMLElement.prototype, "offsetWidth", {
    configurable: true,
    get(this: HTMLElement) {
      // in a list each is as wide as the bar
      return this.closest("[data-list]") ? widths.bar : widths.label;
    },
  });
  let resize = () => {};
  const Observer = globalThis.ResizeObserver;
  globalThis.ResizeObserver = class {
    constructor(told: ResizeObserverCallback) {
      const before = resize;
      resize = () => {
        before();
        told([], this);
      };
    }
    observe() {}
    unobserve() {}
    disconnect() {}
  };
  try {
    const { el } = await inExplorer();
    const isList = async (bar: number, label: number) => {
      Object.assign(widths, { bar, label });
      Object.defineProperty(el.querySelector(".hta-whole"), "clientWidth", {
        configurable: true,
        value: bar,
      });
      resize();
      for (let i = 0; i < 4; i++) await drawn();
      return el.querySelector(".hta-labels")?.hasAttribute("data-list");
    };
    expect(await isList(1200, 150)).toBe(false);
    expect(await isList(1100, 900)).toBe(true);
    expect(await isList(1300, 150)).toBe(false);
    expect(await isList(700, 150)).toBe(true);
  } finally {
    globalThis.ResizeObserver = Observer;
    Object.defineProperty(HTMLElement.prototype, "offsetWidth", own);
  }
});

it("frames the places of a finding one after the other, by click and by keys, and goes back", async () => {
  const { el, story } = await inExplorer();
  const asked: (Mark | null)[] = [];
  el.addEventListener(MARK, (event) => asked.push((event as CustomEvent).detail));
  const key = async (name: string) => {
    el.querySelector(".hta-story")?.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
    await drawn();
  };
  el.querySelector<HTMLElement>("button.hta-seg")?.click();
  await drawn();
  expect(story.get("shown")).toBe(0);
  expect(asked.at(-1)).toEqual({ rank: 2, span: [5, 9], label: "4 ns idle", cause: [4, 9], ranks: [2] });
  const toggle = () => el.querySelector<HTMLElement>(".hta-advice-do button[aria-pressed]");
  expect([toggle()?.textContent, toggle()?.ariaPressed]).toEqual(["Back", "true"]);
  await key(".");
  expect(asked.at(-1)?.span).toEqual([15, 18]);
  await key(".");
  expect(asked.at(-1)?.span).toEqual([5, 9]);
  await key("Escape");
  expect([story.get("shown"), asked.at(-1)]).toEqual([-1, null]);
  expect([toggle()?.textContent, toggle()?.ariaPressed]).toEqual(["Show", "false"]);
  await key("1");
  expect(story.get("shown")).toBe(0);
  await key("2"); // it has no place: its advice stands there, and nothing is framed
  expect([story.get("shown"), asked.at(-1)]).toEqual([1, null]);
  await key("7");
  expect(story.get("shown")).toBe(1);
});

it("says what to do and how sure it is, and draws texts of traces as texts", async () => {
  const { el } = await inExplorer();
  const advice = el.querySelector(".hta-advice");
  expect(advice?.querySelector("h3")?.textContent).toBe("A <b>costs</b> time");
  const terms = [...(advice?.querySelectorAll("dt") ?? [])].map((term) => term.textContent);
  expect(terms).toEqual(["What happens", "Why", "What to do", "How sure", "Needs"]);
  expect(el.querySelector(".hta-story h2")?.textContent).toBe(CONTENT.headline);
  expect(el.querySelector(".hta-scope")?.textContent).toContain(CONTENT.scope);
  const checks = el.querySelector(".hta-checks")?.textContent ?? "";
  expect(checks).toContain("2\xa0findings · 2\xa0checks\xa0clean · 1\xa0needs\xa0more\xa0data");
});

it("gives the bar one name per finding and one stop for keys", async () => {
  const { el } = await inExplorer();
  const buttons = [...el.querySelectorAll<HTMLElement>("button.hta-seg")];
  expect(buttons.map((button) => button.ariaLabel)).toEqual([
    "Finding 1: A, −40 ns · simulated",
    "Finding 2: B, −40 ns · simulated",
  ]);
  expect(buttons.map((button) => button.tabIndex)).toEqual([0, -1]);
  const widths = [...el.querySelectorAll<HTMLElement>(".hta-seg")].map((part) => part.style.width);
  expect(widths).toEqual(["40%", "20%", "40%"]);
});

it("counts findings that have no part of the bar", async () => {
  const parts = [{ ns: 0, form: "simulated", lost_as: "idle", finding: 0 }, ...CONTENT.parts.slice(1)];
  const { el } = await inExplorer({ content: { ...CONTENT, parts } });
  expect(el.querySelector(".hta-under")?.textContent).toContain("can be saved (40 %) · 1 more finding");
  const none = await inExplorer();
  expect(none.el.querySelector(".hta-under")?.textContent).not.toContain("more finding");
});

it("opens what there is to look at where nothing is found", async () => {
  const opened: string[] = [];
  const told = { ...CONTENT, advice: [], parts: [], look_at: "operators" };
  const { el } = await inExplorer({ content: told });
  el.addEventListener(OPEN, (event) => opened.push((event as CustomEvent).detail));
  [...el.querySelectorAll("button")].find(({ textContent }) => textContent === "Longest operators")?.click();
  expect(opened).toEqual(["operators"]);
});

it("opens the panel of a finding, if it has one", async () => {
  const opened: string[] = [];
  const advice = [finding("A"), finding("B", { kind: "" })];
  const { el } = await inExplorer({ content: { ...CONTENT, advice } });
  el.addEventListener(OPEN, (event) => opened.push((event as CustomEvent).detail));
  const offer = () =>
    [...el.querySelectorAll("button")].find(({ textContent }) => textContent === "Open panel");
  offer()?.click();
  expect(opened).toEqual(["idle_breakdown"]);
  el.querySelectorAll<HTMLElement>("button.hta-seg")[1]?.click();
  await drawn();
  expect(el.querySelector(".hta-advice h3")?.textContent).toContain("B");
  expect(offer()).toBeUndefined();
});

it("offers What if where a replay makes the change, and not in a report", async () => {
  const { el } = await inExplorer();
  const offers = () =>
    [...el.querySelectorAll("button")].filter((button) => button.textContent === "What if…");
  const asked: number[] = [];
  el.addEventListener(TRY, (event) => asked.push((event as CustomEvent).detail));
  offers()[0]?.click();
  expect([offers().length, asked]).toEqual([1, [0]]);
  document.body.replaceChildren();
  const edits = "[edits.host(0.5)]";
  const offered = async (more: object) => {
    const { el: page } = await inExplorer({
      content: { ...CONTENT, advice: [finding("A", { edits, ...more })] },
    });
    const found = page.textContent?.includes("What if…");
    document.body.replaceChildren();
    return found;
  };
  expect(await offered({ form: "hidden" })).toBe(true);
  expect(await offered({ form: "unknown" })).toBe(false); // what it costs, not what would be saved
  expect(await offered({ edits: "" })).toBe(false);
  const report = await inExplorer({ frozen: true });
  expect(report.el.textContent).not.toContain("What if…");
});

it("says what was checked where nothing is found", async () => {
  const { el } = await inExplorer({ content: { ...CONTENT, advice: [], parts: [] } });
  const advice = el.querySelector(".hta-advice")?.textContent;
  expect(advice).toContain("Nothing to save stands outLook at the kernels.2 causes were checked");
  expect(el.querySelector(".hta-whole")).toBeNull();
});

it("never lets labels overlap or leave the bar", () => {
  expect(placed([0, 10, 500], [100, 100, 50], 1000)).toEqual([0, 116, 500]);
  expect(placed([0, 980, 990], [100, 100, 50], 1000)).toEqual([0, 834, 950]);
  expect(placed([0, 10], [600, 600], 1000)).toEqual([-1, -1]); // then they are a list
});

const entry = (kind: string, group: string) => ({
  kind,
  label: kind.toUpperCase(),
  title: `What ${kind} says`,
  group,
  wide: false,
});
const MANY = [..."abcdefghij"].map((kind, at) => entry(kind, at < 5 ? "Time" : "Host"));

it("orders groups and panels by what the findings point to", () => {
  const order = byRelevance(MANY, ["h", "b"]).map(({ kind }) => kind);
  expect(order.join("")).toBe("hfgijbacde");
  expect(byRelevance(MANY, [])).toEqual(MANY);
});

it("keeps the bar short, and tells in a fold what cannot answer and why", async () => {
  const { el } = await show(
    {
      ...EXPLORER,
      available_panels: MANY,
      relevant: ["h", "b"],
      lacking: { c: "The trace has no <b>c</b>. Record it." },
      panels: ["e"],
      parts: [["panel", "anywidget:e", "e"]],
    },
    { "anywidget:e": new FrozenModel({ _view: "iterations", status: "idle", message: "", iterations: [] }) },
  );
  await drawn();
  const kinds = [...el.querySelectorAll<HTMLElement>(".hta-panel-bar button")].map((b) => b.dataset.kind);
  expect(kinds).toEqual(["h", "b", "e", "launcher"]);
  const fold = el.querySelector(".hta-lacking");
  expect(fold?.querySelector("summary")?.textContent).toBe("1 panel cannot answer here");
  expect(fold?.querySelector("dd")?.textContent).toBe("The trace has no <b>c</b>. Record it.");
});

it.each([
  ["job", "overview h e what_if events launcher"],
  ["overview", "overview h e job what_if events launcher"],
])(
  "always offers findings, a change and events, and the job if it can answer (not: %s)",
  async (kind, kinds) => {
    const always = ["overview", "job", "what_if", "events"].map((one) => entry(one, "Time"));
    const { el } = await show(
      {
        ...EXPLORER,
        available_panels: [...MANY, ...always],
        relevant: ["h"],
        lacking: { [kind]: "Not recorded." },
        panels: ["e"],
        parts: [["panel", "anywidget:e", "e"]],
      },
      {
        "anywidget:e": new FrozenModel({ _view: "iterations", status: "idle", message: "", iterations: [] }),
      },
    );
    await drawn();
    const buttons = [...el.querySelectorAll<HTMLElement>(".hta-panel-bar button")];
    expect(buttons.map((button) => button.dataset.kind).join(" ")).toBe(kinds);
  },
);

it("goes by the launcher to a panel, a rank, a name and a command, by keys alone", async () => {
  const { el, model } = await show({
    ...EXPLORER,
    available_panels: MANY,
    lacking: { c: "no data" },
    choices: { ranks: [0, 1, 12], iterations: [1] },
    parts: [["ranks", "anywidget:none"]],
  });
  const key = (on: Element | null | undefined, name: string, more: object = {}) =>
    on?.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, ...more }));
  const open = async (name: string, more: object = {}) => {
    key(el.querySelector(".hta-header button"), name, more);
    await drawn();
    return el.querySelector<HTMLInputElement>(".hta-launcher input");
  };
  const type = async (input: HTMLInputElement | null, text: string) => {
    if (input) input.value = text;
    input?.dispatchEvent(new Event("input", { bubbles: true }));
    await drawn();
  };
  const found = () => [...el.querySelectorAll(".hta-choice > :first-child")].map((c) => c.textContent);

  let input = await open("/");
  expect(found().slice(0, 3)).toEqual(["A", "B", "D"]); // what cannot answer comes last of the panels
  await type(input, "what ");
  expect(input?.value).toBe("what "); // the next word begins after the space that was typed
  await type(input, "what g says");
  expect(found()[0]).toBe("G");
  key(input, "Enter");
  expect([model.get("panels"), el.querySelector(".hta-launcher")]).toEqual([["g"], null]);

  input = await open("k", { ctrlKey: true });
  await type(input, "rank 1");
  expect(found().slice(0, 2)).toEqual(["Rank 1", "Rank 12"]);
  key(input, "ArrowDown");
  await drawn();
  expect(el.querySelector('[aria-selected="true"]')?.textContent).toBe("Rank 12");
  key(input, "Enter");
  expect(model.get("ranks")).toEqual([12]);

  input = await open("/");
  await type(input, "gemm");
  const { call, method } = (model.sent.at(-1) as SentMessage).content as { call: string; method: string };
  expect(method).toBe("find_names");
  model.emit("msg:custom", { rpc: 1, call, result: ["void gemm<1>(int)"] }, []);
  await drawn();
  expect(found()).toEqual(["Search events for “gemm”", expect.stringContaining("gemm")]);
  key(input, "ArrowDown");
  await drawn();
  key(input, "Enter");
  expect(model.get("names")).toEqual(["void gemm<1>(int)"]);

  input = await open("/");
  await type(input, "whole job");
  key(input, "Enter");
  expect([model.get("ranks"), model.get("names")]).toEqual([[], []]);
});

it("finds words in any order and case", () => {
  expect([mentions("LATE rank", "Rank", "is late"), mentions("late x", "late"), mentions("", "a")]).toEqual([
    true,
    false,
    true,
  ]);
});
