import { afterEach, expect, it, vi } from "vitest";
import { Stage } from "../../src/timeline/stage";
import type { Outline } from "../../src/timeline/types";
import { pen } from "./pen";

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** A stage of 500 x 300 pixels, 100 of which are the gutter. */
function staged(marked: () => boolean): Stage {
  const el = document.createElement("div");
  Object.defineProperties(el, { clientWidth: { value: 500 }, clientHeight: { value: 300 } });
  const nothing = () => {};
  const painter = {
    gutter: () => 100,
    shownInGutter: () => [],
    drawGutter: nothing,
    drawLanes: nothing,
    marked,
    drawMarks: nothing,
    resized: nothing,
  };
  return new Stage(el, { names: [] } as unknown as Outline, painter, new AbortController().signal);
}

it("marks take memory, and are saved, only while they are on the screen", () => {
  const drawn: string[] = [];
  const context = pen((name: string, what: HTMLElement) => {
    if (name === "drawImage") drawn.push(what.className);
  });
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(context as never);
  vi.spyOn(HTMLCanvasElement.prototype, "toDataURL").mockReturnValue("data:,");
  let marked = false;
  const stage = staged(() => marked);
  const marks = stage.canvases[2] as HTMLCanvasElement;
  stage.resize();
  expect([marks.hidden, marks.width]).toEqual([true, 0]);
  marked = true; // and drawn in the next frame: a canvas without size cannot be
  stage.toUrl();
  expect(drawn).toEqual(["hta-timeline-gutter", "hta-timeline-lanes"]);
  stage.resize(); // draws
  expect([marks.hidden, marks.width, marks.height]).toEqual([false, 500, 300]);
  stage.toUrl();
  expect(drawn.at(-1)).toBe("hta-timeline-marks");
});

it("lanes are drawn in coordinates of the stage, at the sharpness of the screen", () => {
  vi.stubGlobal("devicePixelRatio", 2);
  const placed = new Map<string, unknown[]>();
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockImplementation(function (this: HTMLCanvasElement) {
    return pen((name: string, ...given: unknown[]) => {
      if (name === "setTransform") placed.set(this.className, given);
    }) as never;
  });
  const stage = staged(() => false);
  stage.resize();
  const lanes = stage.canvases.find(({ className }) => className === "hta-timeline-lanes");
  expect([lanes?.width, lanes?.height, lanes?.style.left]).toEqual([800, 600, "100px"]);
  expect(placed.get("hta-timeline-lanes")).toEqual([2, 0, 0, 2, -200, 0]);
});
