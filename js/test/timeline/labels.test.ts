// Names stand within what is in sight of their slices, and are cut to it.

import { expect, it } from "vitest";
import { Labels } from "../../src/timeline/labels";
import { ROW_HEIGHT } from "../../src/timeline/layout";
import type { Items, Outline } from "../../src/timeline/types";
import { pen } from "./pen";

const LETTER = 6; // px

it("writes as much of a name as its slice has room for in sight", () => {
  const written: [string, number][] = [];
  const context = pen((name, text: string, x: number) => {
    if (name === "measureText") return { width: LETTER * text.length };
    if (name === "fillText") written.push([text, x]);
  });
  const outline = { names: ["elementwise_kernel"] } as unknown as Outline;
  const items = {
    start: [-100, 200, 400, 500, 700],
    dur: [160, 60, 12, 120, 500],
    kind: [0, 0, 0, 0, 0],
    count: null,
  } as unknown as Items;
  const row = { lane: 0, y: 0, h: ROW_HEIGHT, rank: 0 };
  // 1 px is 1 ns; the view begins 50 px from the left and ends within the last slice
  const place = { x: 50, y: 0, width: 760 };
  new Labels(outline).draw(context, items, [row], [[0, 1, 2, 3, 4]], { t0: 0, t1: 760 }, ["#000"], place);
  expect(written).toEqual([
    ["elementw…", 53],
    ["elementw…", 253],
    ["elementwise_kernel", 553],
    ["elementw…", 753],
  ]);
});
