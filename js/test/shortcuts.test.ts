// A key pressed in a part is kept from the notebook, unless it is the notebook's own; others' keys are left alone.

import { afterEach, expect, it } from "vitest";
import { keepShortcuts } from "../src/shortcuts";

const end = new AbortController();
afterEach(() => {
  end.abort();
  document.body.replaceChildren();
});

it("keeps keys of a part from the notebook", () => {
  document.body.innerHTML = "<p></p><div><input></div>";
  const [cell, part, field] = ["p", "div", "input"].map((name) => document.querySelector(name) as Element);
  keepShortcuts(part as HTMLElement, end.signal);
  const kept = (target: Element | undefined, init: KeyboardEventInit) => {
    target?.dispatchEvent(new KeyboardEvent("keydown", { bubbles: true, composed: true, ...init }));
    return target?.hasAttribute("data-lm-suppress-shortcuts");
  };
  expect(kept(field, { key: "d" })).toBe(true);
  expect(kept(part, { key: "d" })).toBe(true);
  expect(kept(cell, { key: "d" })).toBe(false);
  expect(kept(field, { key: "s", ctrlKey: true })).toBe(false); // saves the notebook
  expect(kept(field, { key: "Z", metaKey: true })).toBe(true); // undoes in the part
  expect(kept(field, { key: "b", metaKey: true })).toBe(false);
  window.dispatchEvent(new KeyboardEvent("keydown", { key: "d" })); // at no element
  end.abort();
  expect(kept(field, { key: "d" })).toBe(false);
});
