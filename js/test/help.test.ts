// @vitest-environment jsdom

import { afterEach, expect, it } from "vitest";
import { bindHelp } from "../src/help";
import { knowDialogs } from "./support";

knowDialogs();
afterEach(() => document.body.replaceChildren());

const dialog = () => document.querySelector<HTMLDialogElement>("dialog.hta-help");
const press = (on: Element | null, key: string, more: object = {}) =>
  on?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...more }));

function page() {
  document.body.innerHTML = '<div class="hta"><input type="text" /><p tabindex="0"></p></div>';
  const el = document.querySelector<HTMLElement>(".hta") as HTMLElement;
  bindHelp(el, new AbortController().signal);
  return el;
}

it("opens by ? alone, unless somebody types", () => {
  const el = page();
  press(el.querySelector("p"), "h");
  press(el.querySelector("p"), "?", { ctrlKey: true });
  press(el.querySelector("input"), "?");
  expect(dialog()).toBeNull();
  press(el.querySelector("p"), "?");
  press(el.querySelector("p"), "?"); // one at a time
  expect(document.querySelectorAll("dialog")).toHaveLength(1);
});

it("closes by a click beside it or on its button, not by one inside", () => {
  const el = page();
  const closed = (hit: () => Element | null | undefined) => {
    press(el.querySelector("p"), "?");
    hit()?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    return dialog() === null;
  };
  expect(closed(() => dialog()?.querySelector("dd"))).toBe(false);
  expect(closed(() => dialog())).toBe(true);
  expect(closed(() => dialog()?.querySelector("button"))).toBe(true);
});
