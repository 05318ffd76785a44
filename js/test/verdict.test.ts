// @vitest-environment jsdom
// The verdict's cards, the launcher, and the fold of panels that cannot answer.

import { afterEach, expect, it } from "vitest";
import { FrozenModel, type SentMessage } from "../src/host";
import { mentions } from "../src/launcher";
import { byRelevance } from "../src/panelbar";
import { SHOW, type Shown, TRY } from "../src/showing";
import { drawn, EXPLORER, knowDialogs, show } from "./support";

knowDialogs();
Element.prototype.scrollIntoView ??= () => {};

afterEach(() => document.body.replaceChildren());

const card = (title: string, more: object = {}) => ({
  title,
  severity: "warning",
  text: `${title} <b>costs</b> time.`,
  figure: "−12.0 %",
  caption: "of the time",
  how: "replayed",
  span: [10, 50, 100],
  saving: "Replayed, 12 % less.",
  suggestion: "Do something.",
  caveat: "Needs something else.",
  evidence: { kind: "b", ranks: [2], iterations: [], names: ["n"], window: [5, 9] },
  ...more,
});

const VERDICT = { _view: "verdict", sentence: "What costs most.", further: "1 more finding", shown: -1 };

it("shows a card's evidence and goes back, and Python may ask for both", async () => {
  const { el, model } = await show({ ...VERDICT, cards: [card("A"), card("B", { evidence: null })] });
  const asked: (Shown | null)[] = [];
  el.addEventListener(SHOW, (event) => asked.push((event as CustomEvent).detail));
  expect(el.querySelectorAll(".hta-card")).toHaveLength(2);
  expect(el.querySelector(".hta-card b")).toBeNull(); // names from a trace are text
  const buttons = () => [...el.querySelectorAll<HTMLButtonElement>(".hta-card-show")];
  expect(buttons()).toHaveLength(1); // what lies nowhere cannot be shown
  buttons()[0]?.click();
  await drawn();
  expect([model.get("shown"), asked[0]?.title, asked[0]?.evidence.window]).toEqual([0, "A", [5, 9]]);
  expect(buttons()[0]?.textContent).toBe("Back");
  asked[0]?.back();
  await drawn();
  expect([model.get("shown"), asked[1]]).toEqual([-1, null]);
  model.set("shown", 0);
  expect(asked[2]?.title).toBe("A");
});

it("offers What if where a replay makes the change, and not in a report", async () => {
  const cards = [card("A"), card("B", { replayed: true })];
  const { el } = await show({ ...VERDICT, cards });
  const asked: number[] = [];
  el.addEventListener(TRY, (event) => asked.push((event as CustomEvent).detail));
  const offers = [...el.querySelectorAll("button")].filter((button) => button.textContent === "What if…");
  expect(offers).toHaveLength(1);
  offers[0]?.click();
  expect(asked).toEqual([1]);
  const report = await show({ ...VERDICT, cards, frozen: true });
  expect(report.el.textContent).not.toContain("What if…");
});

it("says what to do on request, and the sentence where nothing was found", async () => {
  const { el, model } = await show({ ...VERDICT, cards: [card("A")] });
  const todo = el.querySelector<HTMLButtonElement>(".hta-card-todo");
  expect([todo?.ariaExpanded, el.querySelector(".hta-card-more")]).toEqual(["false", null]);
  todo?.click();
  await drawn();
  expect(el.querySelector(".hta-card-more")?.textContent).toBe(
    "Do something. Needs something else. Replayed, 12 % less.",
  );
  model.set("cards", []);
  model.set("sentence", "Nothing stands out: <i>why</i>.");
  await drawn();
  expect(el.querySelector(".hta-verdict-none")?.textContent).toBe("Nothing stands out: <i>why</i>.");
});

const entry = (kind: string, group: string) => ({
  kind,
  label: kind.toUpperCase(),
  title: `What ${kind} says`,
  group,
  wide: false,
});
const MANY = [..."abcdefghij"].map((kind, at) => entry(kind, at < 5 ? "Time" : "Host"));

it("orders groups and panels by what the verdict points to", () => {
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
  type Asked = { call: string; method: string; params: { text: string } };
  const asked = () => (model.sent.at(-1) as SentMessage).content as Asked;
  await expect.poll(() => [asked().method, asked().params.text]).toEqual(["find_names", "gemm"]);
  const { call } = asked();
  model.emit("msg:custom", { rpc: 1, call, result: ["void gemm<1>(int)"] }, []);
  await expect.poll(found).toEqual(["Search events for “gemm”", expect.stringContaining("gemm")]);
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
