// The explorer's shell: breadcrumb, search, undo and redo keys, help, bar of panels.

import { afterEach, expect, it, vi } from "vitest";
import { ALL, clausesOf } from "../src/clauses";
import { FrozenModel } from "../src/host";
import { drawn, EXPLORER, knowDialogs, show } from "./support";

knowDialogs();
Element.prototype.scrollIntoView ??= () => {};

afterEach(() => document.body.replaceChildren());

const key = (target: Element | null, name: string, keys = {}) =>
  target?.dispatchEvent(
    new KeyboardEvent("keydown", { key: name, bubbles: true, composed: true, cancelable: true, ...keys }),
  );

const crumb = (state = {}) =>
  show({ _view: "breadcrumb", ...ALL, can_undo: false, can_redo: false, code: "explorer", ...state });

const texts = (el: Element) => [...el.querySelectorAll(".hta-clause > span")].map((item) => item.textContent);

it("describes a selection in words", () => {
  expect(clausesOf(ALL)).toEqual([]);
  const found = clausesOf({
    ranks: [0, 1],
    iterations: [551],
    window: [4_560_000, 16_860_000],
    streams: [7],
    names: ["void at::native::gemm<int>(float)", "copy"],
    query: " nccl ",
  });
  expect(found.map((clause) => clause.text)).toEqual([
    "ranks 0–1",
    "iteration 551",
    "12.3 ms from 4.56 ms",
    "stream 7",
    "name gemm and 1 more",
    "search “nccl”",
  ]);
  expect(found[2]?.title).toBe("4,560,000 to 16,860,000 ns since the job's start");
  expect(found[4]?.title).toBe("void at::native::gemm<int>(float)\ncopy");
});

it("lists many names up to a number, and says that there are more", () => {
  const named = (count: number) => {
    const names = Array.from({ length: count }, (_, at) => `kernel ${at}`);
    const [clause] = clausesOf({ ...ALL, names });
    return [clause?.text, clause?.title.split("\n").length, clause?.title.endsWith("…")];
  };
  expect(named(1)).toEqual(["name kernel 0", 1, false]);
  expect(named(20)).toEqual(["name kernel 0 and 19 more", 20, false]);
  expect(named(21)).toEqual(["name kernel 0 and 20 more", 21, true]);
});

it("drops clauses one by one and all at once, and keeps names as text", async () => {
  const { el, model } = await crumb({ ranks: [2], iterations: [5], names: ["<img src=x>"] });
  expect(texts(el)).toEqual(["rank 2", "iteration 5", "name <img src=x>"]);
  expect(el.querySelector("img")).toBeNull();
  const [first] = el.querySelectorAll<HTMLButtonElement>(".hta-clause button");
  expect(first?.getAttribute("aria-label")).toBe("Drop rank 2");
  key(first as Element, "Delete");
  await drawn();
  expect([model.get("ranks"), texts(el)]).toEqual([[], ["iteration 5", "name <img src=x>"]]);
  expect(document.activeElement?.getAttribute("aria-label")).toBe("Drop iteration 5");
  const saved = model.saved;
  el.querySelector<HTMLButtonElement>(".hta-clauses .hta-quiet")?.click();
  await drawn();
  expect([model.get("iterations"), model.get("names"), model.saved - saved]).toEqual([[], [], 1]);
  expect(el.querySelector(".hta-clauses")?.textContent).toBe("the whole job");
});

it("searches when the hand rests, on Enter, on leaving, and not on Escape", async () => {
  vi.useFakeTimers();
  try {
    const { el, model } = await crumb();
    const box = el.querySelector("input") as HTMLInputElement;
    const type = (value: string) => {
      box.value = value;
      box.dispatchEvent(new Event("input", { bubbles: true }));
    };
    type("nc");
    vi.advanceTimersByTime(300);
    type("nccl ");
    expect(model.get("query")).toBe("");
    vi.advanceTimersByTime(500);
    await Promise.resolve(); // one message for all that changed in a turn
    expect([model.get("query"), model.saved]).toEqual(["nccl", 1]);
    type("gemm");
    key(box, "Enter");
    expect(model.get("query")).toBe("gemm");
    type("copy");
    box.dispatchEvent(new FocusEvent("blur"));
    expect(model.get("query")).toBe("copy");
    type("gem");
    key(box, "Escape");
    vi.advanceTimersByTime(500);
    expect(model.get("query")).toBe("");
    model.set("query", "from Python");
    await vi.advanceTimersByTimeAsync(50);
    expect(box.value).toBe("from Python");
  } finally {
    vi.useRealTimers();
  }
});

it("undoes and redoes by key and button, without the notebook seeing it", async () => {
  const { el, model } = await crumb({ can_undo: true });
  const leaked = vi.fn();
  document.body.addEventListener("keydown", leaked);
  const calls = () => model.sent.map(({ content }) => (content as { method: string }).method);
  const [undo, redo] = el.querySelectorAll<HTMLButtonElement>(".hta-icon");
  key(undo as Element, "z", { ctrlKey: true });
  key(undo as Element, "Z", { metaKey: true, shiftKey: true });
  key(undo as Element, "y", { ctrlKey: true });
  expect(calls()).toEqual(["undo", "redo", "redo"]);
  expect(leaked).not.toHaveBeenCalled();
  undo?.click();
  redo?.click(); // nothing to redo
  expect(calls()).toEqual(["undo", "redo", "redo", "undo"]);
  key(el.querySelector("input"), "z", { ctrlKey: true }); // the text's own undo
  expect(calls()).toHaveLength(4);
  document.body.removeEventListener("keydown", leaked);
});

it("opens one help dialog by key and by button, and closes it", async () => {
  const { el } = await crumb();
  key(el.querySelector(".hta-icon"), "?", { shiftKey: true });
  el.querySelector<HTMLButtonElement>('[aria-label="Keys and gestures"]')?.click();
  const dialogs = el.querySelectorAll("dialog");
  expect(dialogs).toHaveLength(1);
  expect(dialogs[0]?.getAttribute("aria-modal")).toBe("true");
  expect(dialogs[0]?.textContent).toContain("undo the last selection");
  dialogs[0]?.querySelector("button")?.click();
  expect(el.querySelector("dialog")).toBeNull();
  key(el.querySelector("input"), "?"); // part of a search
  expect(el.querySelector("dialog")).toBeNull();
});

const panel = (title: string) =>
  new FrozenModel({
    _view: "breakdown",
    status: "empty",
    message: "nothing",
    kind: title,
    title,
    chart: {},
    ranks: [],
    rows: 0,
  });

it("opens and closes panels from a bar that arrows move along", async () => {
  const { el, model } = await show(
    {
      ...EXPLORER,
      header: [],
      health: [],
      notices: [],
      available_panels: [
        { kind: "a", label: "A", title: "What A says", group: "Time", wide: false },
        { kind: "b", label: "B", title: "What B says", group: "Time", wide: false },
        { kind: "c", label: "C", title: "What C says", group: "Host", wide: true },
      ],
      panels: ["b"],
      parts: [["panel", "anywidget:b", "b"]],
    },
    { "anywidget:b": panel("b"), "anywidget:c": panel("c") },
  );
  await drawn();
  const buttons = [...el.querySelectorAll<HTMLButtonElement>(".hta-panel-bar button")];
  const pressed = buttons.map((button) => button.getAttribute("aria-pressed"));
  expect(pressed).toEqual(["false", "true", "false", null]); // the last one opens the launcher
  expect(buttons.map((button) => button.tabIndex)).toEqual([0, -1, -1, -1]);
  key(buttons[0] as Element, "End");
  expect(document.activeElement).toBe(buttons[3]);
  buttons[2]?.click();
  expect(model.get("panels")).toEqual(["b", "c"]);
  model.set("parts", [
    ["panel", "anywidget:b", "b"],
    ["panel", "anywidget:c", "c"],
  ]);
  await drawn();
  // a panel asks for another one; a kind that is not available opens none
  const slot = el.querySelector(".hta-panel");
  for (const detail of ["a", "b", "<none>"]) {
    slot?.dispatchEvent(new CustomEvent("hta-open", { detail, bubbles: true }));
  }
  expect(model.get("panels")).toEqual(["b", "c", "a"]);
  model.set("panels", ["b", "c"]);
  await drawn();
  expect([...el.querySelectorAll<HTMLElement>(".hta-panel")].map((slot) => slot.dataset.kind)).toEqual([
    "b",
    "c",
  ]);
  el.querySelector<HTMLButtonElement>('[data-kind="b"] > .hta-close')?.click();
  expect(model.get("panels")).toEqual(["c"]);
  expect(document.activeElement).toBe(buttons[1]);
  await drawn();
  expect(el.querySelector('.hta-panel[data-kind="b"]')).toBeNull();
  model.set("panels", []);
  model.set("parts", []);
  await drawn();
});

it("offers the clocks beside the number of iterations, where there is a choice", async () => {
  const { el, model } = await show({
    ...EXPLORER,
    header: [
      { label: "Job", value: "<b>ddp</b>", title: "" },
      { label: "Iterations", value: "5, timed on the device", title: "ProfilerStep" },
    ],
    health: [],
    notices: [],
    available_panels: [],
    panels: [],
    parts: [["ranks", "anywidget:none"]],
    clock: "auto",
    clocks: ["auto", "host", "device"],
  });
  const choice = () => el.querySelector<HTMLSelectElement>(".hta-facts select");
  expect(choice()?.closest("li")?.textContent).toContain("5, timed on the device");
  expect([...(choice()?.options ?? [])].map((option) => option.text)).toEqual([
    "clock: automatic",
    "clock: host",
    "clock: device",
  ]);
  expect([choice()?.value, choice()?.ariaLabel]).toEqual(["auto", "What times the iterations"]);
  const select = choice() as HTMLSelectElement;
  select.value = "host";
  select.dispatchEvent(new Event("change", { bubbles: true }));
  await drawn();
  expect([model.get("clock"), model.saved]).toEqual(["host", 1]);
  model.set("clock", "device");
  await drawn();
  expect(choice()?.value).toBe("device");
  model.set("clocks", []);
  await drawn();
  expect(choice()).toBeNull();
});

it("offers no clock in a report, which no kernel computes anew", async () => {
  const { el } = await show({
    ...EXPLORER,
    header: [{ label: "Iterations", value: "5", title: "" }],
    health: [],
    notices: [],
    available_panels: [],
    panels: [],
    parts: [["ranks", "anywidget:none"]],
    clock: "auto",
    clocks: ["auto", "host", "device"],
    frozen: true,
  });
  expect(el.querySelector(".hta-facts strong")?.textContent).toBe("5");
  expect(el.querySelector(".hta-facts select")).toBeNull();
});

it("counts suspected work as communication, takes it back, and offers the rule to keep", async () => {
  const name = "void <img src=x>send<4>(int)";
  const row = {
    severity: "warning",
    check: "maybe_communication",
    count: 4,
    detail: "4 ms on stream 27",
    remedy: "",
    ranks: [0],
  };
  const { el, model } = await show({
    ...EXPLORER,
    header: [],
    health: [
      { ...row, name },
      { ...row, check: "orphans", name: "" },
    ],
    notices: [],
    available_panels: [],
    panels: [],
    parts: [["ranks", "anywidget:none"]],
    clocks: [],
    communication: ["other"],
    rules: "",
  });
  const buttons = () => [...el.querySelectorAll<HTMLButtonElement>(".hta-health button")];
  expect(buttons().map((button) => [button.textContent, button.title])).toEqual([
    ["Count as communication", name],
  ]);
  buttons()[0]?.click();
  await drawn();
  expect([model.get("communication"), model.saved]).toEqual([["other", name], 1]);
  const rule = '[[class]]\nname = "<b>"\n';
  model.set("rules", rule);
  model.set("health", [{ ...row, check: "counted_as_communication", name }]);
  await drawn();
  expect(el.querySelector(".hta-health pre")?.textContent).toBe(rule);
  expect(el.querySelector(".hta-health :is(img, b)")).toBeNull();
  const [undo, copy] = buttons();
  expect([undo?.textContent, copy?.textContent]).toEqual(["Undo", "Copy"]);
  const writeText = vi.fn().mockResolvedValue(undefined);
  vi.stubGlobal("navigator", { clipboard: { writeText } });
  try {
    copy?.click();
    await drawn();
  } finally {
    vi.unstubAllGlobals();
  }
  expect([writeText.mock.calls, copy?.textContent]).toEqual([[[rule]], "Copied"]);
  undo?.click();
  await drawn();
  expect(model.get("communication")).toEqual(["other"]);
});
