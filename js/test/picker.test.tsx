// Rows and grids of toggle buttons: the keyboard of a list of files, and the toolbar of panels, which moves alike.

import { type Signal, signal } from "@preact/signals";
import { render } from "preact";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { byRelevance, type Entry, PanelBar } from "../src/panelbar";
import { Picker, PickerStatus, step } from "../src/picker";
import { press } from "./support";

let root: HTMLElement;

beforeEach(() => {
  root = document.body.appendChild(document.createElement("div"));
});

afterEach(() => {
  render(null, root);
  document.body.replaceChildren();
});

const rest = () => new Promise((resolve) => setTimeout(resolve, 0));
const buttons = () => [...root.querySelectorAll<HTMLElement>("button")];
const focused = () => document.activeElement?.textContent;

async function pressed(key: string, held: KeyboardEventInit = {}): Promise<boolean> {
  const consumed = press(document.activeElement, key, held);
  await rest();
  return consumed;
}

/** Ranks 10, 20, ... 60 in rows of three, with the focus on the first. */
async function picker(selected: Signal<number[]>): Promise<void> {
  const all = [10, 20, 30, 40, 50, 60];
  const draw = () =>
    render(
      <Picker label="Ranks" all={all} selected={selected} className="" describe={(value) => `rank ${value}`}>
        {String}
      </Picker>,
      root,
    );
  selected.subscribe(draw);
  buttons().forEach((button, at) => {
    Object.defineProperty(button, "offsetTop", { value: at < 3 ? 5 : 30 });
  });
  buttons()[0]?.focus();
  await rest();
}

it.each([
  ["ArrowRight", 5],
  ["ArrowLeft", 3],
  ["ArrowDown", 7],
  ["ArrowUp", 1],
  ["Home", 0],
  ["End", 8],
  ["x", undefined],
])("knows where %s leads", (key, to) => {
  expect(step(key, 4, 9, 3)).toBe(to);
});

it("goes along its rows and stays in them at either end", async () => {
  await picker(signal([]));
  const seen: unknown[] = [];
  for (const key of ["ArrowUp", "ArrowDown", "ArrowRight", "End", "ArrowRight", "Home", "ArrowLeft"]) {
    expect(await pressed(key)).toBe(true);
    seen.push(focused());
  }
  expect(seen).toEqual(["10", "40", "50", "60", "60", "10", "10"]);
  expect(buttons().map(({ tabIndex }) => tabIndex)).toEqual([0, -1, -1, -1, -1, -1]); // one stop for Tab
});

it("selects from where Shift was held first", async () => {
  const selected = signal<number[]>([]);
  await picker(selected);
  await pressed("ArrowRight");
  await pressed("ArrowRight", { shiftKey: true });
  expect(selected.value).toEqual([20, 30]);
  await pressed("ArrowDown", { shiftKey: true });
  expect(selected.value).toEqual([20, 30, 40, 50, 60]);
  await pressed("Home", { shiftKey: true });
  expect(selected.value).toEqual([10, 20]);
});

it("selects by clicks as a list of files does", async () => {
  const selected = signal<number[]>([]);
  await picker(selected);
  const click = async (at: number, held: MouseEventInit = {}) => {
    buttons()[at]?.dispatchEvent(new MouseEvent("click", { bubbles: true, ...held }));
    await rest();
    return selected.value;
  };
  expect(await click(1)).toEqual([20]);
  expect(await click(3, { ctrlKey: true })).toEqual([20, 40]);
  expect(await click(1, { metaKey: true })).toEqual([40]);
  expect(await click(4, { shiftKey: true })).toEqual([20, 30, 40, 50]);
  expect(await click(2)).toEqual([30]);
  expect(await click(2)).toEqual([]); // the only one again: all
  await click(0);
  expect(await click(5, { shiftKey: true })).toEqual([]); // all of them: all
});

it("goes back to all by Escape or Ctrl+A, and leaves other keys to the page", async () => {
  const selected = signal([20]);
  await picker(selected);
  expect(await pressed("Escape", { altKey: true })).toBe(false);
  expect(await pressed("a")).toBe(false);
  expect(await pressed("ArrowRight", { ctrlKey: true })).toBe(false);
  expect(selected.value).toEqual([20]);
  for (const [key, held] of [
    ["a", { metaKey: true }],
    ["a", { ctrlKey: true }],
    ["Escape", {}],
  ] as const) {
    selected.value = [20];
    expect([await pressed(key, held), selected.value]).toEqual([true, []]);
  }
});

it("says what is selected, and leads back to all", async () => {
  const selected = signal([3, 4, 5, 9]);
  render(<PickerStatus of="ranks" count={1200} selected={selected} />, root);
  expect(root.querySelector("span")?.textContent).toBe("3–5, 9");
  buttons()[0]?.click();
  expect(selected.value).toEqual([]);
  await rest();
  expect(root.querySelector("span")?.textContent).toBe("all 1,200");
  expect(buttons()[0]?.getAttribute("aria-pressed")).toBe("true");
  render(<PickerStatus of="ranks" count={1} selected={selected} />, root);
  expect(root.textContent).toBe("");
});

const entry = (kind: string, group = "Time"): Entry => ({
  kind,
  label: kind.toUpperCase(),
  title: `About ${kind}`,
  group,
  wide: false,
});

it("puts first what findings point to, groups and panels in them", () => {
  const all = [
    entry("a", "One"),
    entry("b", "One"),
    entry("c", "Two"),
    entry("d", "Three"),
    entry("e", "Two"),
  ];
  const kinds = byRelevance(all, ["e", "b"]).map(({ kind }) => kind);
  expect(kinds).toEqual(["e", "c", "b", "a", "d"]);
  expect(byRelevance(all, []).map(({ kind }) => kind)).toEqual(["a", "b", "c", "e", "d"]);
});

const MANY = "a b c d e f g overview what_if events job".split(" ").map((kind) => entry(kind));

function bar(shown: Signal<string[]>, given: Partial<Parameters<typeof PanelBar>[0]> = {}) {
  const opened = vi.fn();
  const launch = vi.fn();
  const draw = () =>
    render(
      <PanelBar
        available={MANY}
        relevant={["e", "c", "b", "a", "d"]}
        lacking={{ job: "One rank was recorded.", g: "No counters." }}
        shown={shown}
        opened={opened}
        launch={launch}
        {...given}
      />,
      root,
    );
  shown.subscribe(draw);
  return { opened, launch, kinds: () => buttons().map((button) => button.dataset.kind) };
}

it("shows what matters of many panels, and all of few", async () => {
  const shown = signal<string[]>([]);
  const { kinds } = bar(shown);
  // findings first, then the four that they point to most; a job of one rank does not matter
  expect(kinds()).toEqual(["overview", "e", "c", "b", "a", "what_if", "events", "launcher"]);
  expect(buttons().at(-1)?.textContent).toBe("All 11 panels… /");
  expect(root.querySelector("summary")?.textContent).toBe("2 panels cannot answer here");
  expect(root.querySelector("dl")?.textContent).toContain("One rank was recorded.");
  shown.value = ["f"];
  await rest();
  shown.value = [];
  await rest();
  expect(kinds()).toContain("f"); // who closed it still has its button
  render(null, root);
  const few = bar(signal<string[]>([]), { available: MANY.slice(0, 8), lacking: { a: "Why." } });
  expect(few.kinds()).toEqual(["a", "b", "c", "d", "e", "f", "g", "overview", "launcher"]);
  expect(buttons().at(-1)?.textContent).toBe("Go to… /");
  expect(root.querySelector("summary")?.textContent).toBe("1 panel cannot answer here");
  expect(buttons()[0]?.title).toBe("Why.");
});

it("opens and closes panels by their buttons", async () => {
  const shown = signal(["c"]);
  const { opened, launch } = bar(shown);
  const button = (kind: string) => root.querySelector<HTMLElement>(`[data-kind=${kind}]`);
  button("e")?.click();
  await rest();
  expect([shown.value, opened.mock.calls]).toEqual([["c", "e"], [["e"]]]);
  expect(button("e")?.getAttribute("aria-pressed")).toBe("true");
  button("c")?.click();
  await rest();
  expect([shown.value, opened.mock.calls]).toEqual([["e"], [["e"]]]); // closing is no opening
  button("launcher")?.click();
  expect(launch).toHaveBeenCalledOnce();
});

it("moves along the bar by arrows, one stop for Tab", async () => {
  bar(signal<string[]>([]));
  const stop = () =>
    buttons()
      .filter(({ tabIndex }) => tabIndex === 0)
      .map(({ dataset }) => dataset.kind);
  expect(stop()).toEqual(["overview"]);
  buttons()[0]?.focus();
  const seen: unknown[] = [];
  for (const key of ["ArrowLeft", "ArrowRight", "ArrowDown", "End", "ArrowRight", "Home"]) {
    expect(await pressed(key)).toBe(true);
    seen.push((document.activeElement as HTMLElement).dataset.kind);
    expect(stop()).toEqual([seen.at(-1)]);
  }
  expect(seen).toEqual(["overview", "e", "c", "launcher", "launcher", "overview"]);
  expect(await pressed("End", { ctrlKey: true })).toBe(false);
  expect(await pressed("x")).toBe(false);
});
