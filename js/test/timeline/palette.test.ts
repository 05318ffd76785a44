import { describe, expect, it } from "vitest";
import { contrast, parseColour, type Rgb, textOn } from "../../src/timeline/palette";

const STEPS = Array.from({ length: 16 }, (_, i) => 17 * i);

describe("names on slices", () => {
  it("knows the contrast of colours", () => {
    expect(contrast([0, 0, 0], [255, 255, 255])).toBeCloseTo(21, 6);
    expect(contrast([119, 119, 119], [255, 255, 255])).toBeCloseTo(4.48, 2);
  });

  it("reads on every colour that a slice may have", () => {
    for (const r of STEPS)
      for (const g of STEPS)
        for (const b of STEPS) {
          const colour: Rgb = [r, g, b];
          const text = textOn(colour) === "#000000" ? ([0, 0, 0] as const) : ([255, 255, 255] as const);
          expect(contrast(text, colour)).toBeGreaterThan(4.58);
        }
  });

  it("takes colours as the browser gives them", () => {
    expect(parseColour("rgba(11, 99, 206, 0.12)")).toEqual([11, 99, 206]);
    expect(parseColour("color(srgb 1 0 0)")).toEqual([136, 136, 136]);
  });
});
