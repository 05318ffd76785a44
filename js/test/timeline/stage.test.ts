import { afterEach, expect, it, vi } from "vitest";
import { Stage } from "../../src/timeline/stage";
import type { Outline } from "../../src/timeline/types";

afterEach(() => vi.restoreAllMocks());

it("marks take memory, and are saved, only while they are on the screen", () => {
  const drawn: string[] = [];
  const context = new Proxy({} as CanvasRenderingContext2D, {
    get: (_, name) => (what: HTMLElement) => {
      if (name === "drawImage") drawn.push(what.className);
    },
    set: () => true,
  });
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(context as never);
  vi.spyOn(HTMLCanvasElement.prototype, "toDataURL").mockReturnValue("data:,");
  const el = document.createElement("div");
  Object.defineProperties(el, { clientWidth: { value: 500 }, clientHeight: { value: 300 } });
  const nothing = () => {};
  let marked = false;
  const painter = {
    gutter: () => 100,
    shownInGutter: () => [],
    drawGutter: nothing,
    drawLanes: nothing,
    marked: () => marked,
    drawMarks: nothing,
    resized: nothing,
  };
  const stage = new Stage(el, { names: [] } as unknown as Outline, painter, new AbortController().signal);
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
