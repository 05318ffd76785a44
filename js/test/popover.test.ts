// @vitest-environment jsdom

import { h, render } from "preact";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Popover } from "../src/popover";
import { drawn } from "./support";

const opens = () => document.querySelector<HTMLButtonElement>("button[aria-expanded]");
const isOpen = () => document.querySelector("fieldset") !== null;
const leave = async (relatedTarget: Element | null) => {
  const event = new FocusEvent("focusout", { bubbles: true, relatedTarget });
  document.querySelector("fieldset input")?.dispatchEvent(event);
  await drawn();
};

beforeEach(async () => {
  const root = document.body.appendChild(document.createElement("div"));
  document.body.appendChild(document.createElement("textarea"));
  const children = ["a", "b"].map((id) => h("input", { id }));
  render(h(Popover, { label: "Order", title: "", pressed: false, children }), root);
  opens()?.click();
  await drawn();
  expect(isOpen()).toBe(true);
});
afterEach(() => document.body.replaceChildren());

it("stays open while the focus moves inside, or to nothing", async () => {
  await leave(document.querySelector("#b"));
  expect(isOpen()).toBe(true);
  await leave(null); // another window
  expect(isOpen()).toBe(true);
});

it("closes where the focus leaves it", async () => {
  await leave(document.querySelector("textarea"));
  expect(isOpen()).toBe(false);
});

it("closes by Escape, which goes no further, and gives the focus back", async () => {
  let heard = 0;
  document.body.addEventListener("keydown", () => heard++);
  const press = () => new KeyboardEvent("keydown", { key: "Escape", bubbles: true });
  document.querySelector("#a")?.dispatchEvent(press());
  await drawn();
  expect([isOpen(), document.activeElement, heard]).toEqual([false, opens(), 0]);
  opens()?.dispatchEvent(press()); // nothing to close: it is for others
  expect(heard).toBe(1);
});
