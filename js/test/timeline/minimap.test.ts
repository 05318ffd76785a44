import { expect, it } from "vitest";
import type { Place } from "../../src/timeline/frame";
import type { Found } from "../../src/timeline/matches";
import { draggedView, drawMinimap, frameOf, minimapTime, minimapX } from "../../src/timeline/minimap";
import type { Palette } from "../../src/timeline/palette";
import type { Outline } from "../../src/timeline/types";

const place: Place = { view: { t0: 200, t1: 600 }, gutter: 100, width: 500, height: 300, scroll: 0 };
const extent = [0, 1000] as const;

it("frames what is in sight, and drags it by the share of the whole", () => {
  expect(frameOf(place, extent)).toEqual([180, 340]);
  expect(draggedView(place, extent, place.view, 40)).toEqual({ t0: 300, t1: 700 });
  const [left, right] = frameOf({ ...place, view: { t0: 500, t1: 501 } }, extent);
  expect(right - left).toBeCloseTo(6); // wide enough to be caught
  for (const x of [100, 250, 500]) expect(minimapX(place, extent, minimapTime(place, extent, x))).toBe(x);
});

/** The boxes that are filled: the colour, its strength, and [left, top, width, height]. */
function filled(activity: number[][], bins: number[]): [string, number, number[]][] {
  const boxes: [string, number, number[]][] = [];
  const context = {
    globalAlpha: 1,
    fillStyle: "",
    fillRect: (...box: number[]) => boxes.push([context.fillStyle, context.globalAlpha, box]),
  };
  const classes = [
    [1, 0, 0],
    [2, 0, 0],
    [3, 0, 0],
  ];
  const palette = { background: "white", accent: "blue", classes } as unknown as Palette;
  const outline = { activity } as unknown as Outline;
  const pen = context as unknown as CanvasRenderingContext2D;
  drawMinimap(pen, place, outline, { bins } as unknown as Found, palette);
  expect(context.globalAlpha).toBe(1);
  return boxes;
}

it("marks where matches are, the darker the more of them", () => {
  const marks = filled([[], []], [0, 1, 4, 16]).filter(([colour]) => colour === "blue");
  expect(marks.map(([, alpha]) => alpha)).toEqual([0.4 + 0.6 / 4, 0.4 + 0.6 / 2, 1]);
  expect(marks.map(([, , [left, , width]]) => [left, width])).toEqual([
    [200, 100],
    [300, 100],
    [400, 100],
  ]);
});

it("stacks the activity of all classes from the bottom, the highest spot as high as it can be", () => {
  const stacked = filled(
    [
      [1, 2],
      [1, 0],
      [0, 2],
    ],
    [],
  ).filter(([colour]) => colour.startsWith("rgb"));
  const of = (left: number) =>
    stacked
      .filter(([, , box]) => box[0] === left)
      .map(([colour, , [, top, , height]]) => [colour, top as number, height as number] as const);
  const [low, high] = [of(100), of(300)];
  expect(low.map(([colour]) => colour)).toEqual(["rgb(1 0 0)", "rgb(2 0 0)"]);
  expect(high.map(([colour]) => colour)).toEqual(["rgb(1 0 0)", "rgb(3 0 0)"]);
  const heights = [...low, ...high].map(([, , height]) => height / (high[0]?.[2] ?? 0));
  expect(heights).toEqual([0.5, 0.5, 1, 1]);
  for (const [below, above] of [low, high])
    expect(above?.[1]).toBeCloseTo((below?.[1] ?? 0) - (above?.[2] ?? 0));
});
