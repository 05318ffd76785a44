// @vitest-environment jsdom

import { h, render } from "preact";
import { afterEach, expect, it } from "vitest";
import { MatchList } from "../../src/timeline/match_list";
import type { Outline, Slice } from "../../src/timeline/types";
import { drawn } from "../support";

afterEach(() => document.body.replaceChildren());

const outline = { names: ["gemm"], ranks: [], tracks: [] } as unknown as Outline;
const slices = Array.from({ length: 150 }, (_, id) => ({
  id,
  lane: 0,
  start: id,
  dur: id + 1,
  kind: 0,
  count: 1,
}));

it("lists page by page, and goes along by arrows while it is open", async () => {
  const gone: number[] = [];
  const page = async (order: string, from: number, limit: number): Promise<Slice[]> =>
    [...slices]
      .sort((a, b) => (order === "dur" ? b.dur - a.dur : a.start - b.start))
      .slice(from, from + limit);
  const root = document.body.appendChild(document.createElement("div"));
  render(h(MatchList, { outline, count: 150, page, go: ({ id }) => gone.push(id) }), root);
  const press = async (key: string, more: object = {}) => {
    let beyond = false;
    const hear = () => {
      beyond = true;
    };
    root.addEventListener("keydown", hear);
    root
      .querySelector(".hta-menu > button")
      ?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...more }));
    root.removeEventListener("keydown", hear);
    await drawn();
    return beyond;
  };
  const click = async (text: string) => {
    [...root.querySelectorAll("button")].find(({ textContent }) => textContent?.includes(text))?.click();
    await drawn();
  };
  const isOpen = () => root.querySelector("section") !== null;
  expect(await press("ArrowDown")).toBe(true); // closed: the key is the timeline's
  await click("List");
  expect(root.querySelectorAll("li")).toHaveLength(100);
  await click("show more");
  expect(root.querySelectorAll("li")).toHaveLength(150);
  expect(await press("ArrowDown")).toBe(false);
  await press("ArrowDown");
  await press("ArrowUp");
  expect(gone).toEqual([0, 1, 0]);
  expect(await press("ArrowDown", { ctrlKey: true })).toBe(true);
  await click("by longest");
  await press("ArrowDown");
  expect(gone).toEqual([0, 1, 0, 149]);
  expect(await press("Escape")).toBe(false);
  expect(isOpen()).toBe(false);
});
