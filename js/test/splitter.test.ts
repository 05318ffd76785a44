// @vitest-environment jsdom

import { h, render } from "preact";
import { afterEach, expect, it } from "vitest";
import { type Edge, Splitter, sizeOf } from "../src/splitter";

afterEach(() => localStorage.clear());

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

/** The size when a pointer that took the edge at (10, 10) is there, and when it has let go and moves on. */
function dragged(of: Edge["of"], x: number, y: number) {
  const root = document.createElement("div");
  const edge = { ...EDGE, of };
  const size = sizeOf(edge);
  render(h(Splitter, { edge, size }), root);
  const handle = root.querySelector<HTMLElement>("[role=separator]") as HTMLElement;
  handle.setPointerCapture = () => {};
  const point = (type: string, clientX: number, clientY: number) =>
    handle.dispatchEvent(new MouseEvent(type, { clientX, clientY, cancelable: true }));
  point("pointerdown", 10, 10);
  point("pointermove", x, y);
  const moved = size.value;
  point("lostpointercapture", x, y);
  point("pointermove", 0, 0);
  expect(size.value).toBe(moved);
  return moved;
}

it("follows the pointer until it lets go, within its bounds", () => {
  expect(dragged("width before", 30, 99)).toBe(120);
  expect(dragged("width", 30, 99)).toBe(80);
  expect(dragged("height", 99, 30)).toBe(120);
  expect(dragged("height", 10, 0)).toBe(90);
  expect(dragged("width before", 400, 10)).toBe(150);
  expect(dragged("width", 400, 10)).toBe(50);
});

it("moves along its own axis: what stands right of it shrinks to the right", () => {
  const keys = ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"];
  expect(sizes("width before", ...keys)).toEqual({ towards: "vertical", sizes: [1, 0, 0, 0] });
  expect(sizes("width", ...keys)).toEqual({ towards: "vertical", sizes: [-1, 0, 0, 0] });
  expect(sizes("height", ...keys)).toEqual({ towards: "horizontal", sizes: [0, 0, 1, 0] });
});

it("is where it was left, if it has a name", () => {
  const edge = (name: string) => ({ ...EDGE, name, of: "height" as const });
  const left = (name: string) => sizeOf(edge(name)).value;
  const root = document.createElement("div");
  for (const name of ["map", ""]) {
    render(h(Splitter, { key: name, edge: edge(name), size: sizeOf(edge(name)) }), root);
    root.firstChild?.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown" }));
  }
  expect([left("map"), left("list"), left("")]).toEqual([124, 100, 100]);
  localStorage.setItem(localStorage.key(0) ?? "", "9999"); // as it was with other bounds
  expect(left("map")).toBe(150);
});
