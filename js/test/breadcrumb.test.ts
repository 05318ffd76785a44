// The selection in words: each clause can be dropped, all at once, and undone.

import { afterEach, expect, it, vi } from "vitest";
import type { FrozenModel } from "../src/host";
import { drawn, press, show } from "./support";

afterEach(() => {
  vi.unstubAllGlobals();
  document.body.replaceChildren();
});

const ALL = { ranks: [], iterations: [], window: null, streams: [], names: [], query: "" };

async function selected(of: object) {
  const given = {
    ...ALL,
    ...of,
    _view: "breadcrumb",
    can_undo: true,
    can_redo: false,
    code: "explorer.events",
  };
  const { el, model } = await show(given);
  const sent: string[] = [];
  vi.spyOn(model, "send").mockImplementation(((message: { method: string }) =>
    sent.push(message.method)) as never);
  const texts = () => [...el.querySelectorAll(".hta-clause span")].map((span) => span.textContent);
  const button = (label: string) => el.querySelector<HTMLElement>(`[aria-label="${label}"]`) as HTMLElement;
  return { el, model, sent, texts, button };
}

const traits = (model: FrozenModel) =>
  Object.fromEntries(Object.keys(ALL).map((name) => [name, model.get(name)]));
const now = () => document.activeElement?.getAttribute("aria-label");

it("says so where all is selected", async () => {
  const { el } = await selected({});
  expect(el.querySelector("ul")?.textContent).toBe("the whole job");
});

it("drops one clause, with the focus on what takes its place", async () => {
  const { model, texts, button } = await selected({
    ranks: [1, 2, 3],
    iterations: [5],
    window: [2000, 5000],
  });
  expect(texts()).toEqual(["ranks 1–3", "iteration 5", "3.00 µs from 2.00 µs"]);
  button("Drop iteration 5").click();
  await drawn();
  expect(traits(model)).toEqual({ ...ALL, ranks: [1, 2, 3], window: [2000, 5000] });
  expect(now()).toBe("Drop 3.00 µs from 2.00 µs");
  button("Drop 3.00 µs from 2.00 µs").click(); // the last of them
  await drawn();
  expect(now()).toBe("Drop ranks 1–3");
  button("Drop ranks 1–3").click();
  await drawn();
  expect([traits(model), now()]).toEqual([ALL, "Selected"]);
});

it.each(["Delete", "Backspace", "x"])("drops a clause by the key that deletes: %s", async (key) => {
  const { model, button } = await selected({ ranks: [1], streams: [7] });
  const drop = button("Drop rank 1");
  expect(press(drop, key, { ctrlKey: true })).toBe(false);
  expect(press(drop, key)).toBe(key !== "x");
  expect(model.get("ranks")).toEqual(key === "x" ? [1] : []);
  expect(model.get("streams")).toEqual([7]);
});

it("clears all, where there is more than one", async () => {
  const { el, model } = await selected({ ranks: [1], names: ["aten::mm"], query: "dur > 5" });
  const clear = () => [...el.querySelectorAll("button")].find((button) => button.textContent === "Clear");
  clear()?.click();
  await drawn();
  expect([traits(model), now()]).toEqual([ALL, "Selected"]);
  model.set("ranks", [2]);
  await drawn();
  expect(clear()).toBeUndefined();
});

it("undoes and redoes what can be, by buttons and keys", async () => {
  const { el, sent, button } = await selected({ ranks: [1] });
  button("Undo").click();
  button("Redo").click(); // there is nothing to
  expect([sent, button("Redo").getAttribute("aria-disabled")]).toEqual([["undo"], "true"]);
  const inside = button("Undo");
  expect(press(inside, "z", { ctrlKey: true })).toBe(true);
  expect(press(inside, "Z", { metaKey: true, shiftKey: true })).toBe(true);
  expect(press(inside, "y", { ctrlKey: true })).toBe(true);
  for (const held of [{}, { altKey: true, ctrlKey: true }]) expect(press(inside, "z", held)).toBe(false);
  expect(press(inside, "y", { ctrlKey: true, shiftKey: true })).toBe(false);
  const field = el.querySelector("input") as Element; // a text field undoes its own text
  expect(press(field, "z", { ctrlKey: true })).toBe(false);
  expect(sent).toEqual(["undo", "undo", "redo", "redo"]);
});

it("copies the code of the selection, and says so for a moment", async () => {
  const writeText = vi.fn(async () => {});
  vi.stubGlobal("navigator", { ...navigator, clipboard: { writeText } });
  const { el } = await selected({ ranks: [1] });
  const button = [...el.querySelectorAll("button")].find((each) => each.textContent === "Copy code");
  button?.click();
  await drawn();
  expect([writeText.mock.calls, button?.textContent]).toEqual([[["explorer.events"]], "Copied"]);
});
