import { describe, expect, it, vi } from "vitest";
import { doubtsAt, drawDoubtful } from "../../src/timeline/doubtful";
import type { Place } from "../../src/timeline/frame";
import type { Layout } from "../../src/timeline/layout";
import type { Palette } from "../../src/timeline/palette";
import type { Doubtful, Outline } from "../../src/timeline/types";

const slice: Doubtful = { rank: 1, lane: 3, start: 100, dur: 50, reason: "its times are estimated" };
const step: Doubtful = { rank: 1, lane: null, start: 0, dur: 400, reason: "left out" };
const outline = {
  tracks: [
    { rank: 0, first: 0, sizes: [1, 1] },
    { rank: 1, first: 2, sizes: [1, 1] },
  ],
  doubtful: [step, slice],
} as unknown as Outline;

/** The boxes that are hatched: [left, top, width, height]; and from where to where each line goes. */
function hatched(doubtful: readonly Doubtful[], t1: number, lines: number[][] = []): number[][] {
  const boxes: number[][] = [];
  class Boxes {
    #own: number[][] = [];
    rect = (...box: number[]) => this.#own.push(box);
    clipped = () => boxes.push(...this.#own);
  }
  vi.stubGlobal("Path2D", Boxes);
  const nothing = () => {};
  const context = {
    save: nothing,
    restore: nothing,
    beginPath: nothing,
    clip: (path: Boxes) => path.clipped(),
    moveTo: (...from: number[]) => lines.push(from),
    lineTo: (...to: number[]) => lines.at(-1)?.push(...to),
    stroke: nothing,
  } as unknown as CanvasRenderingContext2D;
  const place: Place = { view: { t0: 0, t1 }, gutter: 100, width: 500, height: 400, scroll: 0 };
  const layout = {
    rows: [{ lane: 3, y: 40, h: 20, rank: 1 }],
    stretches: [
      { rank: 0, y: 0, bottom: 30 },
      { rank: 1, y: 30, bottom: 90 },
    ],
  } as unknown as Layout;
  drawDoubtful(context, place, layout, doubtful, { text: "black" } as Palette);
  return boxes;
}

describe("records that cannot be true", () => {
  it("are hatched: a slice on its lane, a step over all lanes of its rank", () => {
    const [overStep, onLane] = hatched([step, slice], 400) as [number[], number[]];
    expect([overStep[0], overStep[2], overStep[3]]).toEqual([100, 400, 60]);
    expect([onLane[0], onLane[2], onLane[3]]).toEqual([200, 50, 19]);
  });

  it("are hatched by lines that rise to the right, at equal distances over the whole picture", () => {
    const lines: number[][] = [];
    hatched([step], 400, lines);
    for (const [x0, y0, x1, y1] of lines as [number, number, number, number][])
      expect([x1 - x0, y0, y1]).toEqual([400, 400, 0]);
    const starts = [...new Set(lines.map(([x]) => x as number))];
    expect(new Set(starts.slice(1).map((x, at) => x - (starts[at] as number)))).toEqual(new Set([6]));
    expect(starts[0]).toBeLessThanOrEqual(-400); // it ends in the upper left corner
    expect(starts.at(-1)).toBeGreaterThanOrEqual(500 - 6);
  });

  it("are not drawn where they are out of sight", () => {
    expect(hatched([slice], 90)).toEqual([]);
    expect(hatched([{ ...slice, lane: 9 }], 400)).toEqual([]);
  });

  it("are explained where the pointer is", () => {
    expect(doubtsAt(outline, 3, 120)).toEqual(["left out", "its times are estimated"]);
    expect(doubtsAt(outline, 2, 120)).toEqual(["left out"]);
    expect(doubtsAt(outline, 3, 401)).toEqual([]);
    expect(doubtsAt(outline, 0, 120)).toEqual([]);
  });
});
