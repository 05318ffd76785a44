// The inspector: what may be done with what is selected.

import { afterEach, expect, it } from "vitest";
import { drawn, show } from "./support";

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
