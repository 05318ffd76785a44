// The inspector: what may be done with what is selected.

import { afterEach, expect, it } from "vitest";
import { drawn, show, wire } from "./support";

afterEach(() => document.body.replaceChildren());

const inspected = (kind: string, frozen: boolean) =>
  show({
    _view: "inspector",
    content: { kind, title: "gemm", short: "", where: "", sections: [], missing: [], window: [10, 30] },
    table: null,
    by: "class",
    focus: null,
    window: null,
    python: "explorer.inspect()",
    frozen,
  });

it.each([
  ["none", false, ""],
  ["event", false, "Use as window, Copy as Python, Copy as JSON"],
  ["gap", false, "Use as window, Copy as Python, Copy as JSON"],
  ["area", false, "Save events, Copy as Python"],
  ["steps", false, "Use as window, Copy as Python"],
  ["area", true, "Copy as Python"],
  ["event", true, "Copy as Python"],
])("offers what fits what is selected (%s; in a report: %s)", async (kind, frozen, offered) => {
  const { el } = await inspected(kind, frozen);
  const buttons = [...el.querySelectorAll(".hta-inspector-actions button")];
  expect(buttons.map((button) => button.textContent).join(", ")).toBe(offered);
});

it("makes the time of what is selected the window", async () => {
  const { el, model } = await inspected("gap", false);
  el.querySelector<HTMLElement>(".hta-inspector-actions button")?.click();
  await drawn();
  expect(model.get("window")).toEqual([10, 30]);
});

const AREA = {
  _view: "inspector",
  content: { kind: "area", title: "", short: "", where: "", sections: [], missing: [], window: [10, 30] },
  table: wire({
    name: ["mm", "add", "relu", "copy"],
    dur_ns: [7, 90, Number.NaN, 40],
    rank: [0, 1, 1, 3],
    event_id: [70, 71, 72, 73],
  }),
  by: "name",
  focus: null,
  window: null,
  python: "explorer.inspect()",
  frozen: false,
};

it("sorts what a window consists of, and what is missing comes last either way", async () => {
  const { el } = await show(AREA);
  const first = () =>
    [...el.querySelectorAll("tbody tr")].map((row) => row.querySelector("td, th")?.textContent);
  const click = async (heading: string) => {
    const all = [...el.querySelectorAll<HTMLElement>("thead button")];
    all.find((button) => button.textContent?.toLowerCase().startsWith(heading))?.click();
    await drawn();
    return first();
  };
  expect(first()).toEqual(["mm", "add", "relu", "copy"]);
  expect(await click("dur")).toEqual(["add", "copy", "mm", "relu"]);
  expect(await click("dur")).toEqual(["mm", "copy", "add", "relu"]);
  expect(await click("dur")).toEqual(["mm", "add", "relu", "copy"]); // as it came
  expect(await click("name")).toEqual(["add", "copy", "mm", "relu"]);
  expect(await click("name")).toEqual(["relu", "mm", "copy", "add"]);
});

it("goes to the event of a row, as the rows are sorted", async () => {
  const { el, model } = await show(AREA);
  [...el.querySelectorAll<HTMLElement>("thead button")][1]?.click();
  await drawn();
  el.querySelector<HTMLElement>("tbody tr")?.click();
  expect(model.get("focus")).toEqual([1, 71]);
});
