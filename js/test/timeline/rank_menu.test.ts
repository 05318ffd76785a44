// @vitest-environment jsdom

import { signal } from "@preact/signals";
import { h, render } from "preact";
import { afterEach, expect, it } from "vitest";
import { RankMenu } from "../../src/timeline/rank_menu";
import type { Outline } from "../../src/timeline/types";

afterEach(() => document.body.replaceChildren());

it("stands out while some ranks have no lanes", () => {
  const ranks = [0, 1, 2].map((rank) => ({ rank, label: String(rank) }));
  const outline = { ranks } as unknown as Outline;
  const button = (shown: number[]) => {
    const root = document.body.appendChild(document.createElement("div"));
    const nothing = { first: [], added: signal(undefined), all: signal(undefined), selected: signal([]) };
    render(h(RankMenu, { outline, ...nothing, shown: signal(shown) }), root);
    const found = root.querySelector("button");
    return [found?.textContent, found?.getAttribute("aria-pressed")];
  };
  expect(button([1])).toEqual(["1 of 3 ranks", "true"]);
  expect(button([0, 1, 2])).toEqual(["3 of 3 ranks", "false"]);
  expect(button([])).toEqual(["3 of 3 ranks", "false"]);
});
