import { describe, expect, it } from "vitest";
import { niceStep, ticks, tickText } from "../../src/timeline/ticks";

describe("ticks", () => {
  it("chooses 1, 2 or 5 times a power of ten", () => {
    expect([0.2, 1, 1.1, 3, 7, 20, 1e6, 4.1e9].map(niceStep)).toEqual([1, 1, 2, 5, 10, 20, 1e6, 5e9]);
  });

  it("never has many more ticks than requested", () => {
    for (const width of [100, 12_345, 1e6, 7.7e8, 3.3e12]) {
      const { step, values } = ticks(17, 17 + width, 8);
      expect(values.length).toBeLessThanOrEqual(9);
      expect(values.length).toBeGreaterThanOrEqual(2);
      expect(values.every((t) => t >= 17 && t <= 17 + width && t % step === 0)).toBe(true);
    }
  });

  it("distinguishes neighbours from ns to s", () => {
    for (const step of [1, 20, 500, 1e4, 2e6, 5e8, 1e9]) {
      for (const at of [1, 7, 123_456]) {
        expect(tickText(at * step, step)).not.toBe(tickText((at + 1) * step, step));
      }
    }
    expect(tickText(1_500_000, 500_000)).toBe("1.5 ms");
    expect(tickText(0, 20)).toBe("0 ns");
    const { step, values } = ticks(-400_000, 5_000_000, 5);
    expect(values.map((value) => tickText(value, step))[0]).toBe("0 ms");
  });
});
