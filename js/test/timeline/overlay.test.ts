import { expect, it } from "vitest";
import type { Place } from "../../src/timeline/frame";
import type { Layout } from "../../src/timeline/layout";
import { drawOverlay, hasMarks, type Marks } from "../../src/timeline/overlay";
import type { Palette } from "../../src/timeline/palette";
import type { Flow, Slice } from "../../src/timeline/types";
import { pen } from "./pen";

const place: Place = { view: { t0: 0, t1: 1000 }, gutter: 100, width: 1100, height: 300, scroll: 0 };
const layout = { rows: [0, 1].map((lane) => ({ lane, y: 100 * lane, h: 20 })) } as unknown as Layout;
const none: Marks = {
  place: null,
  cause: null,
  window: null,
  hover: null,
  focus: null,
  held: null,
  measured: null,
  flows: [],
  exchange: null,
  flags: [],
  drop: null,
  flash: null,
};
const slice = (lane: number, start: number, dur: number): Slice => ({
  id: lane,
  lane,
  start,
  dur,
  kind: 0,
  count: 1,
});

/** What is called on the canvas for one flow. */
function drawn(flow: Flow) {
  const done: [string, ...number[]][] = [];
  const context = pen((...call: [string, ...number[]]) => done.push(call));
  drawOverlay(context, place, layout, { ...none, flows: [flow] }, {} as Palette);
  const [, bend = 0, , back = 0, , x1 = 0] = done.find(([name]) => name === "bezierCurveTo") ?? [];
  const tip = done.filter(([name]) => name === "lineTo").map(([, x]) => (x as number) - x1);
  return { bend, back, x1, tip };
}

it("an arrow goes from the end of a call to the start of what it launched, bent by how far that is", () => {
  // half of the distance, at least enough to be seen as a bend, at most 120 pixels
  expect(drawn([slice(0, 100, 100), slice(1, 300, 9)])).toEqual({
    bend: 300 + 50,
    back: 400 - 50,
    x1: 400,
    tip: [-7, -7],
  });
  expect(drawn([slice(0, 100, 100), slice(1, 210, 9)])).toMatchObject({ bend: 300 + 18, back: 310 - 18 });
  expect(drawn([slice(0, 100, 100), slice(1, 900, 9)])).toMatchObject({ bend: 300 + 120, back: 1000 - 120 });
});

it("knows whether anything is marked", () => {
  expect(hasMarks(none)).toBe(false);
  expect(hasMarks({ ...none, drop: 0 })).toBe(true);
  expect(hasMarks({ ...none, flags: [[0, ""]] })).toBe(true);
  expect(hasMarks({ ...none, flows: [[slice(0, 0, 1), slice(1, 2, 1)]] })).toBe(true);
});
