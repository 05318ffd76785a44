// The tour goes from place to place, as far as they are there, and ends when something else is said.

import { signal } from "@preact/signals";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Told } from "../src/toast";
import { Tour } from "../src/tour";

const told = signal<Told | null>(null);
const page = document.createElement("div");

beforeEach(() => {
  localStorage.clear();
  told.value = null;
  Element.prototype.scrollIntoView = () => {};
  page.innerHTML = '<p data-area="story"></p><p data-area="timeline"></p><p class="hta-panel-bar"></p>';
});

afterEach(() => localStorage.clear());

const tour = () => new Tour(page, told, new AbortController().signal);
const labels = () => told.value?.actions.map(({ label }) => label);
const press = (label: string) => told.value?.actions.find((action) => action.label === label)?.run();
const lit = () => [...page.querySelectorAll("[data-lit]")];

it("tells of each place that is there, forth and back", () => {
  tour().begin();
  const seen = [];
  for (; told.value; press("Next")) {
    seen.push([
      told.value.text.split(":")[0],
      labels(),
      lit().map((place) => [...page.children].indexOf(place)),
    ]);
    if (labels()?.includes("Done")) break;
  }
  expect(seen).toEqual([
    ["1 of 3", ["Next"], [0]],
    ["2 of 3", ["Next", "Back"], [1]],
    ["3 of 3", ["Done", "Back"], [2]],
  ]);
  press("Back");
  expect([told.value?.text.split(":")[0], lit()]).toEqual(["2 of 3", [page.children[1]]]);
  press("Next");
  press("Done");
  expect([told.value, lit()]).toEqual([null, []]);
});

it("ends when something else is said", () => {
  tour().begin();
  told.value = { text: "Copied.", actions: [] };
  expect(lit()).toEqual([]);
});

it("is known once it was begun", () => {
  const first = tour();
  expect(first.known.value).toBe(false);
  first.begin();
  expect([first.known.value, tour().known.value]).toEqual([true, true]);
});
