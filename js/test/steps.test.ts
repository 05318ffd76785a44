// @vitest-environment jsdom

import { signal } from "@preact/signals";
import { h, render } from "preact";
import { afterEach, expect, it } from "vitest";
import { Steps, type StepsState } from "../src/steps";
import { wire } from "./support";

afterEach(() => document.body.replaceChildren());

const US = 1000;
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

function told(columns: Record<string, number[]>): (string | null)[] {
  const state: StepsState = {
    table: signal(wire(columns)),
    strips: signal({ bins: 10, span_ns: 130 * US, data: null }),
    pair: signal([]),
    difference: signal({}),
  };
  const selecting = { ranks: signal([]), iterations: signal([]), names: signal([]) };
  const root = document.body.appendChild(document.createElement("div"));
  render(h(Steps, { state, selecting: selecting as never, frozen: true }), root);
  return [...root.querySelectorAll("[role=option]")].map((row) => row.getAttribute("aria-label"));
}

it("splits what a step takes beyond the median step into classes that add up to it", () => {
  expect(told(steps)).toEqual([
    "step 3: 100 µs, median",
    "step 4: 130 µs, +30.0 µs to the median; compute +10.0 µs; exposed communication -5.00 µs; idle +25.0 µs; unusually long",
  ]);
});

it("compares with nothing where there is no median step", () => {
  const [nobody, unknown] = [
    [-1, -1],
    [Number.NaN, Number.NaN],
  ];
  const alone = { ...steps, median_rank: nobody, median_iteration: nobody, change_ns: unknown };
  expect(told(alone)).toEqual(["step 3: 100 µs", "step 4: 130 µs; unusually long"]);
});
