// @vitest-environment jsdom

import { signal } from "@preact/signals";
import { h, render } from "preact";
import { afterEach, expect, it, vi } from "vitest";
import { Steps, type StepsState } from "../src/steps";
import { drawn, wire } from "./support";

afterEach(() => {
  document.body.replaceChildren();
  vi.restoreAllMocks();
});

const US = 1000;
const BINS = 13;
const steps = {
  rank: [0, 0],
  iteration: [3, 4],
  dur_ns: [100 * US, 130 * US],
  median_rank: [0, 0],
  median_iteration: [3, 3],
  change_ns: [0, 30 * US],
  compute_ns: [40 * US, 50 * US],
  exposed_communication_ns: [20 * US, 15 * US],
  exposed_memory_ns: [10 * US, 10 * US],
  outlier: [0, 1],
  partial: [0, 0],
  start_up: [0, 0],
  open: [0, 0],
};

function shown(columns: Record<string, number[]>, data: DataView | null = null): HTMLElement[] {
  const state: StepsState = {
    table: signal(wire(columns)),
    strips: signal({ bins: BINS, span_ns: 130 * US, data }),
    pair: signal([]),
    difference: signal({}),
  };
  const selecting = { ranks: signal([]), iterations: signal([]), names: signal([]) };
  const root = document.body.appendChild(document.createElement("div"));
  render(h(Steps, { state, selecting: selecting as never, frozen: true }), root);
  return [...root.querySelectorAll<HTMLElement>("[role=option]")];
}

const told = (columns: Record<string, number[]>) => shown(columns).map((row) => row.ariaLabel);

it("splits what a step takes beyond the median step into classes that add up to it", () => {
  expect(told(steps)).toEqual([
    "step 3: 100 µs, median",
    "step 4: 130 µs, +30.0 µs to the median; compute +10.0 µs; exposed communication −5.00 µs; idle +25.0 µs; unusually long",
  ]);
});

it("marks where a step is unlike the median step, and draws nothing after its end", async () => {
  const filled: [canvas: HTMLCanvasElement, bin: number, top: number, alpha: number][] = [];
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockImplementation(function (this: HTMLCanvasElement) {
    const pen = {
      globalAlpha: 1,
      clearRect: () => {},
      fillRect: (bin: number, top: number) => filled.push([this, bin, top, pen.globalAlpha]),
    };
    return pen as never;
  });
  // of each step and class a byte per bin: both compute all the time, but the longer one idles in bin 2
  const data = new DataView(new ArrayBuffer(2 * 3 * BINS));
  for (const step of [0, 1])
    for (let bin = 0; bin < BINS; bin++)
      data.setUint8(step * 3 * BINS + bin, step === 1 && bin === 2 ? 100 : 255);
  const rows = shown(steps, data);
  await drawn();
  const [median, longer] = rows.map((row) => {
    const own = filled.filter(([canvas]) => canvas === row.querySelector("canvas"));
    return own.map(([, bin, top, alpha]) => ({ bin, top, alpha }));
  });
  expect(new Set(median?.map(({ bin }) => bin))).toEqual(
    new Set(Array.from({ length: 10 }, (_, bin) => bin)),
  );
  expect(median?.every(({ top }) => top === 0)).toBe(true);
  expect(longer?.filter(({ top }) => top > 0)).toEqual([{ bin: 2, top: 29, alpha: 1 }]);
  const busy = longer?.filter(({ bin, top }) => bin === 2 && top === 0).map(({ alpha }) => alpha);
  expect(busy?.at(-1)).toBeCloseTo(100 / 255);
});

it("compares with nothing where there is no median step", () => {
  const [nobody, unknown] = [
    [-1, -1],
    [Number.NaN, Number.NaN],
  ];
  const alone = { ...steps, median_rank: nobody, median_iteration: nobody, change_ns: unknown };
  expect(told(alone)).toEqual(["step 3: 100 µs", "step 4: 130 µs; unusually long"]);
});
