// @vitest-environment jsdom

import { signal } from "@preact/signals";
import { h, render } from "preact";
import { afterEach, expect, it } from "vitest";
import { Bar, type BarProps } from "../../src/timeline/bar";
import type { LaneMenuProps } from "../../src/timeline/lane_menu";

afterEach(() => document.body.replaceChildren());

function buttons(more: Partial<BarProps>): HTMLButtonElement[] {
  const props: BarProps = {
    classes: [],
    matches: signal(null),
    step: () => {},
    list: signal({} as never),
    doubtful: [],
    lanes: signal(undefined),
    ranks: null,
    arranging: { groups: signal(null), order: signal(null), python: null } as unknown as LaneMenuProps,
    ranked: signal(""),
    goTo: null,
    counters: null,
    path: signal(false),
    times: null,
    timesNote: signal(""),
    pathStatus: signal({ state: "off", text: "" }),
    ...more,
  };
  const root = document.body.appendChild(document.createElement("div"));
  render(h(Bar, props), root);
  return [...root.querySelectorAll("button")];
}

it("goes to the longest events and gaps where a kernel ranks them", () => {
  const asked: string[] = [];
  const named = (all: HTMLButtonElement[]) =>
    all.filter(({ textContent }) => ["Longest", "Gap"].includes(textContent));
  for (const button of named(buttons({ goTo: (what) => asked.push(what) }))) button.click();
  expect(asked).toEqual(["longest", "longest_gaps"]);
  expect(named(buttons({}))).toEqual([]);
});
