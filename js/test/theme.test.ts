// Which theme a part has, by what the page says of itself.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { followTheme } from "../src/theme";
import { drawn } from "./support";

type Media = EventTarget & { matches: boolean };
let system: Media;
let forced: Media;
let ended: AbortController;

beforeEach(() => {
  const media = () => Object.assign(new EventTarget(), { matches: false });
  [system, forced] = [media(), media()];
  vi.stubGlobal("matchMedia", (query: string) => (query.includes("forced-colors") ? forced : system));
  ended = new AbortController();
});

afterEach(() => {
  ended.abort();
  vi.unstubAllGlobals();
  for (const place of [document.documentElement, document.body])
    for (const name of place.getAttributeNames()) place.removeAttribute(name);
});

function part(): HTMLElement {
  const el = document.createElement("div");
  followTheme(el, ended.signal);
  return el;
}

function set(place: HTMLElement, attributes: Record<string, string>): void {
  for (const [name, value] of Object.entries(attributes)) place.setAttribute(name, value);
}

it.each([
  ["JupyterLab", {}, { "data-jp-theme-light": "false" }, "dark"],
  ["JupyterLab", {}, { "data-jp-theme-light": "true" }, "light"],
  ["VS Code", {}, { class: "vscode-dark" }, "dark"],
  ["VS Code", {}, { class: "vscode-high-contrast" }, "dark"],
  ["VS Code", {}, { class: "vscode-high-contrast-light vscode-high-contrast" }, "light"],
  ["Colab", { theme: "dark" }, {}, "dark"],
  ["marimo", {}, { class: "dark dark-theme", "data-theme": "dark" }, "dark"],
  ["marimo", {}, { class: "light light-theme", "data-theme": "light" }, "light"],
  ["a site", { "data-theme": "dark" }, {}, "dark"],
])("%s says what it is, whatever the system prefers (%o %o)", (_, html, body, theme) => {
  set(document.documentElement, html);
  set(document.body, body);
  for (const matches of [false, true]) {
    system.matches = matches;
    expect(part().dataset.theme).toBe(theme);
  }
});

it("is as the system with forced colors, whatever the page says", () => {
  set(document.body, { "data-jp-theme-light": "false" });
  const el = part();
  expect(el.dataset.theme).toBe("dark");
  forced.matches = true;
  forced.dispatchEvent(new Event("change"));
  expect(el.dataset.theme).toBe("light");
});

it("follows a change of the page and of the system until the part ends", async () => {
  const el = part();
  expect(el.dataset.theme).toBe("light");
  system.matches = true;
  system.dispatchEvent(new Event("change"));
  expect(el.dataset.theme).toBe("dark");
  document.body.dataset.jpThemeLight = "true";
  await drawn();
  expect(el.dataset.theme).toBe("light");
  ended.abort();
  document.body.dataset.jpThemeLight = "false";
  system.dispatchEvent(new Event("change"));
  await drawn();
  expect(el.dataset.theme).toBe("light");
});
