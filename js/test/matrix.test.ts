// @vitest-environment jsdom

import { h, render } from "preact";
import { afterEach, expect, it } from "vitest";
import { type Area, Matrix, type MatrixProps } from "../src/job/matrix";

afterEach(() => document.body.replaceChildren());

function matrix(more: Partial<MatrixProps>): HTMLElement {
  const root = document.body.appendChild(document.createElement("div"));
  const props = {
    label: "Rank by step",
    rows: heads(["0"]),
    columns: heads(["0"]),
    axis: "step",
    cell: () => ({ value: 1, most: 1, text: "1 ms" }),
    hue: "compute",
    shades: { least: 0, most: 1, of: () => 1 },
    width: 300,
    pressed: () => false,
    pick: () => {},
    zoom: () => null,
    hint: "",
    ...more,
  };
  render(h(Matrix, props), root);
  return root;
}

const heads = (labels: string[]) =>
  labels.map((label, at) => ({ key: String(at), label, pinned: at < 2 && labels.length > 2 }));

/** The row that a click at each height picks, of so many rows of which the first two are pinned. */
function picked(rows: number, heights: number[]): number[] {
  const found: Area[] = [];
  const labels = Array.from({ length: rows }, (_, at) => String(at));
  const root = matrix({ rows: heads(labels), pick: (area) => found.push(area) });
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
  expect(picked(50, [10 + near, 15, 20 - near, 26 + near, 36 - near])).toEqual([1, 1, 1, 2, 2]);
});

it("labels as many columns as have room beside each other", () => {
  const labels = Array.from({ length: 30 }, (_, at) => `step ${at}`);
  const texts = [...matrix({ columns: heads(labels), width: 400 }).querySelectorAll("svg text")];
  const shown = texts.filter((text) => labels.includes(text.textContent ?? ""));
  const spans = shown.map((text) => {
    const [middle, half] = [Number(text.getAttribute("x")), (7 * (text.textContent?.length ?? 0)) / 2];
    return [middle - half, middle + half] as const;
  });
  spans.sort(([a], [b]) => a - b);
  expect(spans.length).toBeGreaterThan(3);
  for (const [at, [from]] of spans.entries())
    if (at) expect(from).toBeGreaterThanOrEqual(spans[at - 1]?.[1] ?? 0);
});
