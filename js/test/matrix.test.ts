// @vitest-environment jsdom

import { h, render } from "preact";
import { afterEach, expect, it } from "vitest";
import { type Area, Matrix } from "../src/job/matrix";

afterEach(() => document.body.replaceChildren());

/** The row that a click at each height picks, of so many rows of which the first two are pinned. */
function picked(rows: number, heights: number[]): number[] {
  const found: Area[] = [];
  const heads = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ key: String(at), label: String(at), pinned: at < 2 }));
  const root = document.body.appendChild(document.createElement("div"));
  const props = {
    label: "Rank by step",
    rows: heads(rows),
    columns: heads(1),
    axis: "step",
    cell: () => ({ value: 1, most: 1, text: "1 ms" }),
    hue: "compute",
    shades: { least: 0, most: 1, of: () => 1 },
    width: 300,
    pressed: () => false,
    pick: (area: Area) => found.push(area),
    zoom: () => null,
    hint: "",
  };
  render(h(Matrix, props), root);
  for (const clientY of heights)
    for (const type of ["pointerdown", "pointerup"])
      root
        .querySelector("svg g")
        ?.dispatchEvent(new MouseEvent(type, { bubbles: true, clientX: 90, clientY, button: 0 }));
  return found.map(({ rows: [row] }) => row);
}

it("picks the row under the pointer, below the gap under pinned rows, too", () => {
  const near = 1; // px from the edges of a row
  expect(picked(4, [20 + near, 40 - near, 46 + near, 66 - near, 66 + near])).toEqual([1, 1, 2, 2, 3]);
  expect(picked(50, [10 + near, 20 - near, 26 + near, 36 - near, 36 + near])).toEqual([1, 1, 2, 2, 3]);
});
