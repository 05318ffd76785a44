// Two steps: each bar of the waterfall begins where the one above it ends, on one scale; and what lights up a time.

import { render } from "preact";
import { afterEach, expect, it, vi } from "vitest";
import { Difference, type StepDifference } from "../src/difference";
import { Flash } from "../src/timeline/flash";
import "./support";

afterEach(() => {
  document.body.replaceChildren();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const found = (parts: StepDifference["parts"], more: Partial<StepDifference> = {}): StepDifference => {
  const change = parts.reduce((sum, part) => sum + part[3], 0);
  return {
    title: "Steps 3 and 4",
    sentence: "Step 4 is longer.",
    first: "step 3",
    second: "step 4",
    first_ns: 10_000_000,
    second_ns: 10_000_000 + change,
    parts,
    names: [],
    ...more,
  };
};

/** Of each row its words, and where its bar begins and ends, in per cent. */
function drawn(of: StepDifference) {
  const root = document.body.appendChild(document.createElement("div"));
  render(<Difference found={of} />, root);
  const rows = [...root.querySelectorAll("tr")].map((row) => {
    const { left, width } = (row.querySelector("i") as HTMLElement).style;
    const from = Number.parseFloat(left);
    return {
      label: row.querySelector("th")?.textContent,
      value: row.lastElementChild?.textContent,
      bar: [from, from + Number.parseFloat(width)].map(Math.round),
      title: row.title,
    };
  });
  return { root, rows };
}

it("draws from the first step to the second, part by part", () => {
  const { root, rows } = drawn(
    found([
      ["compute", "compute", "", 3_000_000],
      ["idle", "idle", "", -1_000_000],
      ["communication", "communication", "dots", 2_000_000],
    ]),
  );
  // the scale begins 15 % of what changes (10 to 14 ms) before it: at 9.4 ms
  const share = (ms: number) => Math.round((100 * (ms - 9.4)) / 4.6);
  expect(rows).toEqual([
    { label: "Step 3", value: "10.0 ms", bar: [0, share(10)], title: "10,000,000 ns" },
    { label: "compute", value: "+3.00 ms", bar: [share(10), share(13)], title: "3,000,000 ns" },
    { label: "idle", value: "−1.00 ms", bar: [share(12), share(13)], title: "−1,000,000 ns" },
    { label: "communication", value: "+2.00 ms", bar: [share(12), share(14)], title: "2,000,000 ns" },
    { label: "Step 4", value: "14.0 ms", bar: [0, 100], title: "14,000,000 ns" },
  ]);
  expect(root.textContent).toContain("Bars start at 9.40 ms, not at zero. The parts add up");
  expect(root.querySelectorAll('[data-pattern="dots"]')).toHaveLength(1);
  expect(root.querySelectorAll("[data-whole]")).toHaveLength(2);
});

it("starts at zero where the change is large", () => {
  const { root, rows } = drawn(found([["idle", "idle", "", 90_000_000]]));
  expect(rows.map(({ bar }) => bar)).toEqual([
    [0, 10],
    [10, 100],
    [0, 100],
  ]);
  expect(root.textContent).not.toContain("Bars start");
});

it("puts parts that are too small for a bar into one, if there are two", () => {
  const small: StepDifference["parts"] = [
    ["copies", "memory", "", 19_000],
    ["waits", "idle", "", -9_000],
  ];
  const large: StepDifference["parts"] = [["compute", "compute", "", -1_000_000]];
  expect(drawn(found([...small, ...large])).rows.map(({ label, value }) => `${label} ${value}`)).toEqual([
    "Step 3 10.0 ms",
    "compute −1.00 ms",
    "2 others +10.0 µs",
    "Step 4 9.01 ms",
  ]);
  expect(drawn(found([...small.slice(0, 1), ...large])).rows[1]?.label).toBe("copies");
  const edge: StepDifference["parts"] = [["copies", "memory", "", 20_000], ...small.slice(1), ...large];
  expect(drawn(found(edge)).rows.map(({ label }) => label)).toEqual([
    "Step 3",
    "copies",
    "waits",
    "compute",
    "Step 4",
  ]);
});

it("says nothing of a scale where nothing changes", () => {
  const { rows } = drawn(found([]));
  expect(rows.map(({ bar }) => bar)).toEqual([
    [0, 100],
    [0, 100],
  ]);
});

it("lists what changed by name", () => {
  const names: StepDifference["names"] = [["void gemm<float>()", "gemm", "compute", -1_500_000]];
  const { root } = drawn(found([["compute", "compute", "", -1_500_000]], { names }));
  expect(root.querySelector("dl")?.textContent).toBe("gemm−1.50 ms");
  expect(root.querySelector("dl div")?.getAttribute("title")).toBe("void gemm<float>()\n−1,500,000 ns");
});

it("lights up a time in pulses that fade, then no more", () => {
  vi.useFakeTimers();
  const el = document.createElement("div");
  const redraw = vi.fn();
  const flash = new Flash(el, redraw, new AbortController().signal);
  flash.begin([100, 900]);
  expect([flash.extent, el.dataset.flash, flash.strength]).toEqual([[100, 900], "100 900", 1]);
  vi.advanceTimersByTime(300); // half of the first of three pulses
  expect(flash.strength).toBeCloseTo(0, 1);
  vi.advanceTimersByTime(300);
  expect(flash.strength).toBeCloseTo(2 / 3, 1);
  expect(redraw.mock.calls.length).toBeGreaterThan(10);
  vi.stubGlobal("matchMedia", () => ({ matches: true }));
  expect(flash.strength).toBe(0.6); // for who wants no motion
  vi.advanceTimersByTime(1300);
  expect([flash.extent, el.dataset.flash]).toEqual([null, undefined]);
  const { calls } = redraw.mock;
  const seen = calls.length;
  vi.advanceTimersByTime(1000);
  expect(calls).toHaveLength(seen);
  vi.useRealTimers();
});
