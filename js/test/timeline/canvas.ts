// What jsdom lacks of canvases, for whole timelines: they draw nothing, and a text is 6 px wide per letter.

import { afterEach, beforeEach, vi } from "vitest";
import "../support";
import { Pixels, pen } from "./pen";

class Lines {
  rect() {}
  moveTo() {}
  lineTo() {}
}

// as pixels do, what is drawn may come after the test
globalThis.ImageData ??= Pixels as never;
globalThis.Path2D ??= Lines as never;

/** In each test of the file that calls this. */
export function standIns(): void {
  beforeEach(() => {
    const context = pen((name: string, ...given: unknown[]) =>
      name === "measureText" ? { width: 6 * String(given[0]).length } : undefined,
    );
    vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(context as never);
    vi.stubGlobal("devicePixelRatio", 1);
    HTMLElement.prototype.setPointerCapture = () => {};
  });
  afterEach(() => {
    document.body.replaceChildren();
    vi.restoreAllMocks();
    vi.unstubAllGlobals();
  });
}
