import { beforeEach, describe, expect, it } from "vitest";
import { type Action, actionOf } from "../../src/timeline/keys";
import { ROW_HEIGHT } from "../../src/timeline/layout";
import { act } from "../../src/timeline/moves";
import { Ranking } from "../../src/timeline/ranking";
import { Timeline } from "../../src/timeline/timeline";
import type { Slice, View } from "../../src/timeline/types";

const MS = 1_000_000;
const BANDS = [0, 1, 2].map((step) => ({ start: (100 + 200 * step) * MS, end: (300 + 200 * step) * MS }));
const slice = (id: number, start: number, dur: number): Slice => ({
  id,
  lane: 0,
  start,
  dur,
  kind: 0,
  count: 1,
});

/** What of a timeline is moved, and by how much. */
class Moved {
  view: View = { t0: 200 * MS, t1: 300 * MS };
  bounds: [number, number] = [0, 1000 * MS];
  hover: { time: number | null } = { time: null };
  focus: { slice: Slice | null; otherEnd: Slice | null } = { slice: null, otherEnd: null };
  told: unknown[][] = [];
  source = {
    nextMatch: (from: object, step: number) => this.tell("nextMatch", from, step) && slice(9, 0, 1),
    relative: (of: Slice, to: string) => this.tell("relative", of.id, to) && null,
    neighbour: (of: Slice, step: number) => this.tell("neighbour", of.id, step) && slice(8, 0, 1),
  };
  look = (view: View) => {
    this.view = view;
  };
  bands = () => BANDS;
  zoom = (factor: number, at: number) => this.tell("zoom", factor, at);
  scrollBy = (px: number) => this.tell("scrollBy", px);
  brush = (start: number, end: number) => this.tell("brush", start, end);
  leave = () => this.tell("leave");
  choose = async (chosen: Slice | null, show: boolean) => this.tell("choose", chosen?.id ?? null, show);

  tell(...what: unknown[]): true {
    this.told.push(what);
    return true;
  }
  do(action: Action): Promise<void> {
    return act(this as unknown as Timeline, action);
  }
  press(code: string, key = code): Promise<void> {
    const event = { code, key, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };
    return this.do(actionOf(event) as Action);
  }
}

let timeline: Moved;
beforeEach(() => {
  timeline = new Moved();
});

describe("moves", () => {
  it("pan by a share of what is in sight", async () => {
    for (const [code, sign] of [
      ["ArrowRight", 1],
      ["KeyD", 1],
      ["ArrowLeft", -1],
      ["KeyA", -1],
    ] as const) {
      timeline.view = { t0: 200 * MS, t1: 300 * MS };
      await timeline.press(code);
      expect(timeline.view.t0).toBeCloseTo((200 + sign * 5) * MS);
      expect(timeline.view.t1).toBeCloseTo((300 + sign * 5) * MS);
    }
  });

  it("scroll by rows, and by two with the arrows where no slice is focused", async () => {
    for (const [code, rows] of [
      ["PageDown", 12],
      ["PageUp", -12],
      ["ArrowDown", 2],
      ["ArrowUp", -2],
    ] as const) {
      timeline.told = [];
      await timeline.press(code);
      expect(timeline.told).toEqual([["scrollBy", rows * ROW_HEIGHT]]);
    }
  });

  it("zoom in and out around the pointer, else around the middle", async () => {
    await timeline.press("KeyW", "w");
    timeline.hover.time = 210 * MS;
    await timeline.press("KeyS", "s");
    const [nearer, middle, farther, pointer] = timeline.told.flatMap(
      ([, factor, at]) => [factor, at] as number[],
    );
    expect([middle, pointer]).toEqual([250 * MS, 210 * MS]);
    expect(nearer).toBeLessThan(1);
    expect((nearer as number) * (farther as number)).toBeCloseTo(1);
  });

  it("show all within bounds", async () => {
    await timeline.press("Digit0", "0");
    expect(timeline.view).toEqual({ t0: 0, t1: 1000 * MS });
  });

  it("step through iterations from the one in the middle, and stop at the ends", async () => {
    const middle = () => (timeline.view.t0 + timeline.view.t1) / 2;
    timeline.view = { t0: 390 * MS, t1: 430 * MS };
    for (const [key, at] of [
      ["]", 600],
      ["]", 600],
      ["[", 400],
      ["[", 200],
      ["[", 200],
    ] as const) {
      await timeline.press("Bracket", key);
      expect(middle()).toBeCloseTo(at * MS);
      expect(timeline.view.t1 - timeline.view.t0).toBeCloseTo(208 * MS);
    }
    timeline.view = { t0: 800 * MS, t1: 900 * MS }; // after the last
    await timeline.press("BracketLeft", "[");
    expect(middle()).toBeCloseTo(600 * MS);
    timeline.view = { t0: 610 * MS, t1: 620 * MS }; // within the last: there is no next, so all of it
    await timeline.press("BracketRight", "]");
    expect(timeline.view.t1 - timeline.view.t0).toBeCloseTo(208 * MS);
  });

  it("go to the next match from the focused slice, else from where the view begins", async () => {
    await timeline.press("KeyN", "n");
    timeline.focus.slice = slice(3, 250 * MS, MS);
    await timeline.press("KeyN", "N");
    expect(timeline.told).toEqual([
      ["nextMatch", { start: 200 * MS, id: -1 }, 1],
      ["choose", 9, true],
      ["nextMatch", { start: 250 * MS, id: 3 }, -1],
      ["choose", 9, true],
    ]);
  });

  it("fit and brush the focused slice, and follow it to its caller, neighbour and launch", async () => {
    await timeline.press("KeyF", "f");
    expect(timeline.view).toEqual({ t0: 200 * MS, t1: 300 * MS }); // nothing is focused
    timeline.focus = { slice: slice(3, 400 * MS, 100 * MS), otherEnd: slice(5, 0, 1) };
    await timeline.press("KeyF", "f");
    expect(timeline.view.t0).toBeCloseTo(340 * MS);
    expect(timeline.view.t1).toBeCloseTo(560 * MS);
    await timeline.press("KeyR", "r");
    await timeline.press("ArrowUp");
    await timeline.press("Comma", ",");
    await timeline.press("KeyG", "g");
    expect(timeline.told).toEqual([
      ["brush", 400 * MS, 500 * MS],
      ["relative", 3, "parent"], // there is none: nothing is chosen
      ["neighbour", 3, -1],
      ["choose", 8, true],
      ["choose", 5, true],
    ]);
  });

  it("clear brush and focus", async () => {
    await timeline.press("Escape");
    expect(timeline.told).toEqual([["leave"], ["brush", 0, 0], ["choose", null, false]]);
  });

  it("go to the longest, by what the kernel ranks, and on from a slice to the next of its name", async () => {
    const asked: unknown[][] = [];
    const selected = { ranks: [1], iterations: [], window: null };
    const ranking = new Ranking(
      async (method, params) => {
        asked.push([method, params]);
        const result =
          method === "longest"
            ? { slices: [slice(3, 10, 5), slice(4, 90, 2)] }
            : method === "longest_gaps"
              ? { gaps: [[6, 100, 140]] }
              : { slice: slice(7, 0, 1) };
        return { result: result as never, buffers: [] };
      },
      () => selected,
    );
    Object.assign(timeline, {
      ranking,
      approach: (start: number, end: number) => timeline.tell("approach", start, end),
      chooseGap: (lane: number, gap: number[]) => timeline.tell("chooseGap", lane, ...gap),
    });
    for (const key of ["l", "l", "l", "L"]) await timeline.press(`Key${key.toUpperCase()}`, key);
    await timeline.press("KeyI", "i");
    expect(ranking.text.value).toBe("longest gap 1 of 1");
    timeline.focus = { slice: slice(3, 10, 5), otherEnd: null };
    await timeline.press("Period", ">");
    const chosen = timeline.told.filter(([what]) => what !== "approach");
    expect(chosen).toEqual([
      ...[3, 4, 4, 3].map((id) => ["choose", id, true]),
      ["choose", null, false],
      ["chooseGap", 6, 100, 140],
      ["choose", 7, true],
    ]);
    // one question for each selection, not for each step
    expect(asked.map(([method]) => method)).toEqual(["longest", "longest_gaps", "same_name"]);
  });

  it("say why nothing can be ranked", async () => {
    const ranking = new Ranking(
      async () => {
        throw new Error("no device events");
      },
      () => ({ ranks: [], iterations: [], window: null }),
    );
    expect(await ranking.step("longest", 1)).toBeNull();
    expect(ranking.text.value).toBe("no device events");
  });
});

it("panning moves by as much time as the pixels show, and scrolls", () => {
  const moved = Object.assign(new Moved(), { pixels: 500 });
  Timeline.prototype.panPixels.call(moved as unknown as Timeline, 10, 3);
  expect(moved.view).toEqual({ t0: 202 * MS, t1: 302 * MS });
  expect(moved.told).toEqual([["scrollBy", 3]]);
});
