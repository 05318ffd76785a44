import { describe, expect, it } from "vitest";
import { clampView, frameAround, NARROWEST_NS, panBy, reveal, zoomAt } from "../../src/timeline/camera";

const extent = [1000, 1_001_000] as const;
const middle = { t0: 400_000, t1: 500_000 };

describe("camera", () => {
  it("keeps the time under the cursor when it zooms", () => {
    const at = 425_000;
    const zoomed = zoomAt(middle, 0.5, at, extent);
    expect(zoomed.t1 - zoomed.t0).toBeCloseTo(50_000);
    expect((at - zoomed.t0) / (zoomed.t1 - zoomed.t0)).toBeCloseTo(0.25);
  });

  it("zooms in and back out to where it was", () => {
    const back = zoomAt(zoomAt(middle, 0.5, 450_000, extent), 2, 450_000, extent);
    expect(back.t0).toBeCloseTo(middle.t0);
    expect(back.t1).toBeCloseTo(middle.t1);
  });

  it("stops at the narrowest and at the whole", () => {
    const narrow = zoomAt(middle, 1e-12, 450_000, extent);
    expect(narrow.t1 - narrow.t0).toBeCloseTo(NARROWEST_NS);
    const wide = zoomAt(middle, 1e12, 450_000, extent);
    expect(wide.t0).toBeLessThanOrEqual(extent[0]);
    expect(wide.t1).toBeGreaterThanOrEqual(extent[1]);
    expect(wide.t1 - wide.t0).toBeLessThan(1_050_000);
  });

  it("does not pan out of the trace and keeps its width there", () => {
    for (const ns of [-1e12, 1e12]) {
      const panned = panBy(middle, ns, extent);
      expect(panned.t1 - panned.t0).toBeCloseTo(100_000);
      expect(panned.t1).toBeGreaterThan(extent[0]);
      expect(panned.t0).toBeLessThan(extent[1]);
    }
  });

  it("survives a trace without length", () => {
    const view = clampView({ t0: 5, t1: 5 }, [5, 5]);
    expect(view.t1).toBeGreaterThan(view.t0);
  });

  it("moves only if the window is out of sight or too small to see", () => {
    expect(reveal(middle, 410_000, 450_000, extent)).toBe(middle);
    expect(reveal(middle, 410_000, 410_010, extent)).not.toBe(middle);
    const moved = reveal(middle, 600_000, 700_000, extent);
    expect(moved).toEqual(frameAround(600_000, 700_000, 0.15, extent));
    expect(moved.t0).toBeLessThan(600_000);
  });
});
