// @vitest-environment jsdom

import { h, render } from "preact";
import { expect, it } from "vitest";
import { type Edge, Splitter, sizeOf } from "../src/splitter";

const EDGE = { name: "", label: "Size", least: 50, usual: 100, most: 150 };

/** The size after each key. */
function sizes(of: Edge["of"], ...keys: string[]) {
  const root = document.createElement("div");
  const edge = { ...EDGE, of };
  const size = sizeOf(edge);
  render(h(Splitter, { edge, size }), root);
  const handle = root.querySelector("[role=separator]");
  return {
    towards: handle?.getAttribute("aria-orientation"),
    sizes: keys.map((key) => {
      handle?.dispatchEvent(new KeyboardEvent("keydown", { key }));
      return Math.sign(size.value - EDGE.usual);
    }),
  };
}

it("moves along its own axis: what stands right of it shrinks to the right", () => {
  const keys = ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"];
  expect(sizes("width before", ...keys)).toEqual({ towards: "vertical", sizes: [1, 0, 0, 0] });
  expect(sizes("width", ...keys)).toEqual({ towards: "vertical", sizes: [-1, 0, 0, 0] });
  expect(sizes("height", ...keys)).toEqual({ towards: "horizontal", sizes: [0, 0, 1, 0] });
});
