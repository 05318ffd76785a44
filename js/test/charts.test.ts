// The charts of BreakdownPanel: what they draw, and what clicking does to the selection.

import { afterEach, expect, it, vi } from "vitest";
import { pattern } from "../src/charts/fills";
import { rasterized, toSvg } from "../src/charts/image";
import { brief, fitted, fittedNames } from "../src/charts/mark";
import { overlap, textWidth } from "../src/charts/place";
import { decades, linear, logarithmic } from "../src/charts/scale";
import { toggled } from "../src/charts/select";
import { squarified } from "../src/charts/treemap";
import { unitOf } from "../src/charts/unit";
import { drawn, outside, overlapping, show, wire } from "./support";

afterEach(() => {
  const found = [...document.querySelectorAll<SVGSVGElement>("svg.hta-bars")].flatMap((svg) => [
    ...outside(svg),
    ...overlapping(svg),
  ]);
  document.body.replaceChildren();
  expect(found).toEqual([]);
});

const panel = {
  _view: "breakdown",
  kind: "kernel_breakdown",
  title: "Which kernels take most device time",
  sentence: "A gemm takes most.",
  expression: 'explorer.frame("kernel_breakdown")',
  drawing: 'explorer.figure("kernel_breakdown")',
  ranks: [],
  iterations: [],
  names: [],
  window: null,
  focus: null,
  legend: [],
  left_out: 0,
  extent: [0, 100],
  notes: [],
  form: [],
  options: {},
  rows: 2,
  table: wire({ rank: [0, 1], sum_ns: [4e6, 1e6] }),
};
const rows = (el: Element) => [...el.querySelectorAll<SVGElement>(".hta-bar-row")];
const labels = (el: Element) => rows(el).map((row) => row.getAttribute("aria-label"));
const click = (target?: Element, keys = {}) =>
  target?.dispatchEvent(new MouseEvent("click", { bubbles: true, ...keys }));
const press = (target: Element | null | undefined, key: string, keys = {}) =>
  target?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...keys }));

const bars = {
  ...panel,
  chart: { type: "bars", value: "sum_ns", label: ["name"], names: "name", window: null },
  marks: wire({
    label: ["gemm<b>", "copy"],
    short: ["gemm<b>", "copy"],
    value: [4e6, 1e6],
    count: [2, 1],
    time_class: ["compute", "memory"],
    names: ['["gemm<b>"]', '["copy"]'],
  }),
};

it("stacks parts that add up, and selects a rank by its bar", async () => {
  const { el, model } = await show({
    ...panel,
    chart: {
      type: "stack",
      whole: "window_ns",
      series: [
        { column: "compute_ns", label: "Compute", time_class: "compute" },
        { column: "wait_ns", label: "Wait", time_class: "idle", pattern: "/" },
        { column: "none_ns", label: "Never", time_class: "sync" },
      ],
    },
    marks: wire({
      label: ["rank 0", "rank 1"],
      rank: [0, 1],
      window_ns: [4e6, 2e6],
      compute_ns: [1e6, 2e6],
      wait_ns: [3e6, 0],
      none_ns: [0, 0],
    }),
  });
  expect(rows(el).map((row) => row.getAttribute("tabindex"))).toEqual(["0", "-1"]);
  expect(labels(el)[0]).toBe(
    "Rank 0: Compute 1.00 ms (25.0 %), Wait 3.00 ms (75.0 %); 4.00 ms in all. Select this rank.",
  );
  const [compute, wait] = [...(rows(el)[0]?.querySelectorAll("rect[fill]") ?? [])].map((bar) => {
    const [x, width] = ["x", "width"].map((name) => Number(bar.getAttribute(name))) as [number, number];
    return { x, width };
  });
  expect(wait?.width).toBeCloseTo(3 * (compute?.width ?? 0));
  expect(wait?.x).toBeCloseTo((compute?.x ?? 0) + (compute?.width ?? 0));
  expect(el.querySelectorAll(".hta-pattern")).toHaveLength(2); // in the legend and on the bar
  expect(el.querySelector(".hta-legend")?.textContent).toBe("ComputeWait");
  click(rows(el)[1]);
  expect(model.get("ranks")).toEqual([1]);
});

it("draws nothing where there is nothing to draw, or no chart that it knows", async () => {
  for (const empty of [
    { ...bars, marks: wire({ value: [] }) },
    { ...bars, chart: {} },
    { ...bars, chart: { type: "?" } },
  ]) {
    const { el } = await show(empty);
    await drawn();
    expect(el.textContent).toContain(panel.sentence);
    expect(el.querySelector("svg.hta-bars")).toBeNull();
  }
});

it("draws a bar per label and chooses its events by a click", async () => {
  const { el, model } = await show(bars);
  expect(labels(el)).toEqual(["gemm<b>: 4.00 ms. Choose its events.", "copy: 1.00 ms. Choose its events."]);
  expect(rows(el)[0]?.querySelector("title")?.textContent).toBe("gemm<b>: 4,000,000 ns, the sum of 2 rows");
  expect(el.querySelector("b")).toBeNull();
  click(rows(el)[0]);
  await drawn();
  expect(model.get("names")).toEqual(["gemm<b>"]);
  expect(rows(el).map((row) => row.getAttribute("aria-pressed"))).toEqual(["true", "false"]);
  press(rows(el)[1], "Enter");
  expect(model.get("names")).toEqual(["copy", "gemm<b>"]);
  click(rows(el)[0]);
  expect(model.get("names")).toEqual(["copy"]);
});

it("is one stop of the Tab key, and arrows go from mark to mark", async () => {
  const { el } = await show(bars);
  expect(rows(el).map((row) => row.getAttribute("tabindex"))).toEqual(["0", "-1"]);
  rows(el)[0]?.focus();
  press(rows(el)[0], "ArrowDown");
  expect(document.activeElement).toBe(rows(el)[1]);
});

it("selects the time of a gap by its bar", async () => {
  const { el, model } = await show({
    ...panel,
    chart: { type: "bars", value: "dur_ns", label: ["rank"], names: "", window: ["start_ns", "end_ns"] },
    marks: wire({
      label: ["rank 0"],
      value: [20],
      count: [1],
      time_class: ["host"],
      rank: [0],
      start: [40],
      end: [60],
    }),
    notes: [{ text: "Idle for 20 ns <i>until</i> x.", window: [40, 60], focus: [0, 7] }],
  });
  click(rows(el)[0]);
  expect(model.get("window")).toEqual([40, 60]);
  click(rows(el)[0]);
  expect(model.get("window")).toBeNull();
  expect(el.querySelector(".hta-notes i")).toBeNull();
  click(el.querySelector(".hta-notes button") ?? undefined);
  expect([model.get("window"), model.get("focus")]).toEqual([
    [40, 60],
    [0, 7],
  ]);
});

it("draws step functions and selects a window by keyboard and by a drag", async () => {
  const { el, model } = await show({
    ...panel,
    chart: { type: "lines", value: "queue_length", time_class: "host" },
    legend: ["rank 0 · stream 7", "rank 0 · stream 20"],
    extent: [0, 1000],
    marks: wire({ line: [0, 0, 1], time: [100, 500, 0], value: [3, 0, 8] }),
  });
  const paths = [...el.querySelectorAll(".hta-line")].map((path) => path.getAttribute("d"));
  expect(paths).toHaveLength(2);
  expect(paths[0]).toBe("M56 20H280V112H560");
  const brush = el.querySelector<SVGElement>('[role="slider"]');
  press(brush, "ArrowRight");
  expect(brush?.getAttribute("aria-valuetext")).toBe("20 ns: rank 0 · stream 7 –, rank 0 · stream 20 8");
  press(brush, "ArrowRight", { shiftKey: true });
  press(brush, "Enter");
  expect(model.get("window")).toEqual([20, 40]);
  const pointer = (type: string, clientX: number) =>
    brush?.dispatchEvent(
      Object.assign(new MouseEvent(type, { bubbles: true, clientX, buttons: 1, button: 0 }), {
        pointerId: 1,
      }),
    );
  pointer("pointerdown", 56);
  pointer("pointermove", 280);
  pointer("pointerup", 280);
  expect(model.get("window")).toEqual([100, 500]);
  press(brush, "Escape");
  expect(model.get("window")).toBeNull();
});

it("selects the stretch of time that a stacked bar stands for", async () => {
  const { el, model } = await show({
    ...panel,
    chart: {
      type: "stack",
      whole: "period_ns",
      series: [
        { column: "device_ns", label: "Decode", time_class: "compute", pattern: "" },
        { column: "bubble_ns", label: "Bubble", time_class: "idle", pattern: "" },
      ],
    },
    marks: wire({
      label: ["iteration 0", "iteration 1", "iteration 2"],
      rank: [0, 0, 0],
      iteration: [0, 1, 2],
      device_ns: [8e6, 8e6, 8e6],
      bubble_ns: [4e6, 7e6, Number.NaN],
      period_ns: [12e6, 15e6, 8e6],
      start: [1e6, 13e6, Number.NaN],
      end: [13e6, 28e6, Number.NaN],
    }),
  });
  expect(labels(el)[1]).toContain(
    "Decode 8.00 ms (53.3 %), Bubble 7.00 ms (46.7 %); 15.0 ms in all. Select this stretch",
  );
  expect(labels(el)[2]).toContain("Select this rank.");
  expect(rows(el)[2]?.outerHTML).not.toContain("NaN");
  click(rows(el)[1]);
  await drawn();
  expect([model.get("window"), model.get("ranks")]).toEqual([[13e6, 28e6], []]);
  expect(rows(el).map((row) => row.getAttribute("aria-pressed"))).toEqual(["false", "true", "false"]);
  press(rows(el)[1], "Enter");
  await drawn();
  expect(model.get("window")).toBeNull();
});

it.each([
  { value: [3, 1, 2], x: "7", anchor: "start" },
  { value: [1, 2, 3], x: "413", anchor: "end" },
])("tells the greatest value on the side where there is more room", async ({ value, x, anchor }) => {
  const { el } = await show({
    ...panel,
    chart: { type: "lines", value: "allocated_bytes", time_class: "memory", beside: "reserved_bytes" },
    legend: ["device 0"],
    extent: [0, 1000],
    marks: wire({ line: [0, 0, 0], time: [0, 500, 750], value, beside: [4, 4, 4] }),
  });
  const text = el.querySelector(".hta-peak text");
  expect([text?.getAttribute("x"), text?.getAttribute("text-anchor")]).toEqual([x, anchor]);
});

it("draws what a value is part of beside it, and marks the greatest", async () => {
  const { el } = await show({
    ...panel,
    chart: { type: "lines", value: "allocated_bytes", time_class: "memory", beside: "reserved_bytes" },
    legend: ["device 0"],
    extent: [0, 1000],
    marks: wire({
      line: [0, 0, 0],
      time: [0, 500, 750],
      value: [1024, 3072, 2048],
      beside: [4096, 4096, Number.NaN],
    }),
  });
  const [value, beside] = [...el.querySelectorAll(".hta-line")].map((path) => path.getAttribute("d"));
  expect(value).toBe("M0 89H280V43H420V66H560");
  expect(beside).toBe("M0 20H280V20H420V112H560");
  const texts = [...el.querySelectorAll("svg.hta-lines text")].map((text) => text.textContent);
  expect(texts).toContain("device 0; dashed: reserved");
  expect(texts).toContain("4.00 KiB"); // the top of the scale
  expect(el.querySelector(".hta-peak")?.textContent).toBe("peak 3.00 KiB");
  expect(el.querySelector(".hta-peak circle")?.getAttribute("cx")).toBe("280");
  const brush = el.querySelector<SVGElement>('[role="slider"]');
  press(brush, "ArrowRight");
  expect(brush?.getAttribute("aria-valuetext")).toBe("20 ns: device 0 1.00 KiB of 4.00 KiB");
});

it("ends a value where it is said to, and draws the mean of a line with its number", async () => {
  const { el } = await show({
    ...panel,
    chart: { type: "lines", value: "busy_pct", time_class: "compute", limit: 100 },
    legend: ["rank 0"],
    extent: [0, 1000],
    marks: wire({
      line: [0, 0, 0],
      time: [0, 250, 750],
      value: [50, 25, 100],
      end: [250, 500, 1000],
      mean: [56.25, 56.25, 56.25],
    }),
  });
  const [value, mean] = [...el.querySelectorAll(".hta-line")].map((path) => path.getAttribute("d"));
  expect(value).toBe("M0 66H140V89H280M420 20H560");
  expect(mean).toBe("M0 60.3H560");
  expect(el.querySelector("path[fill-opacity]")?.getAttribute("d")).toBe(
    "M0 66H140V89H280V112H0ZM420 20H560V112H420Z",
  );
  const texts = [...el.querySelectorAll("svg.hta-lines text")].map((text) => text.textContent);
  expect(texts).toContain("rank 0; dashed: mean 56.3 %");
  const brush = el.querySelector<SVGElement>('[role="slider"]');
  for (let i = 0; i < 12; i++) press(brush, "ArrowRight");
  expect(brush?.getAttribute("aria-valuetext")).toBe("240 ns: rank 0 50.0 %");
  for (let i = 0; i < 18; i++) press(brush, "ArrowRight");
  expect(brush?.getAttribute("aria-valuetext")).toBe("600 ns: rank 0 –");
});

it("selects rank and iteration by a cell", async () => {
  const { el, model } = await show({
    ...panel,
    chart: { type: "heat", x: "iteration", y: "rank", value: "caused_wait_ns", time_class: "communication" },
    marks: wire({ x: [5, 5, 6, 6], y: [0, 1, 0, 1], value: [0, 2e6, 0, 1e6] }),
  });
  expect(labels(el)[1]).toBe("rank 1, iteration 5: 2.00 ms. Select both.");
  const shades = rows(el).map((row) => Number(row.querySelector(".hta-cell")?.getAttribute("fill-opacity")));
  expect(shades).toEqual([0.05, 1, 0.05, 0.525]);
  click(rows(el)[1]);
  expect([model.get("ranks"), model.get("iterations")]).toEqual([[1], [5]]);
  await drawn();
  expect(model.saved).toBe(1); // one message, one action to undo
  click(rows(el)[1]);
  expect([model.get("ranks"), model.get("iterations")]).toEqual([[], []]);
});

it("selects both ranks of a pair, or the one that waits if whom for is not known", async () => {
  const { el, model } = await show({
    ...panel,
    ranks: [1, 2], // one of them
    kind: "rank_waits",
    chart: { type: "heat", x: "awaited", y: "rank", value: "wait_ns", time_class: "communication" },
    marks: wire({ x: [-1, 0], y: [1, 1], value: [1e6, 2e6] }),
  });
  expect(rows(el).map((row) => row.getAttribute("aria-pressed"))).toEqual(["false", "false"]);
  expect(labels(el).slice(0, 2)).toEqual([
    "rank 1, awaited unknown: 1.00 ms. Select both.",
    "rank 1, awaited 0: 2.00 ms. Select both.",
  ]);
  click(rows(el)[1]);
  expect([model.get("ranks"), model.get("iterations")]).toEqual([[1, 0], []]);
  await drawn();
  click(rows(el)[1]);
  expect(model.get("ranks")).toEqual([]);
  await drawn();
  click(rows(el)[0]);
  expect([model.get("ranks"), model.get("iterations")]).toEqual([[1], []]);
});

it("spreads a scale over values that differ, not over noise", async () => {
  const chart = { type: "heat", x: "exchange", y: "rank", value: "dur_ns", time_class: "host" };
  const legend = (el: Element) => [...el.querySelectorAll(".hta-legend span")].map((end) => end.textContent);
  const shades = async (value: number[]) => {
    const marks = wire({ x: [5, 6], y: [0, 0], value });
    const { el } = await show({
      ...panel,
      chart: { ...chart, measure: "Step time", contrast: true },
      marks,
    });
    expect(el.querySelector(".hta-legend")?.textContent).toContain("Step time");
    const steps = [...el.querySelectorAll(".hta-legend rect")];
    const last = (all: Element[]) => Number(all.at(-1)?.getAttribute("fill-opacity"));
    const cells = [...el.querySelectorAll(".hta-cell")];
    expect(last(steps)).toBeCloseTo(last(cells)); // the legend ends at the greatest value
    return [cells.map((cell) => Number(cell.getAttribute("fill-opacity"))), legend(el)];
  };
  expect(await shades([10e6, 20e6])).toEqual([
    [0.05, 1],
    ["10.0 ms", "20.0 ms"],
  ]);
  const [[, slower], ends] = (await shades([10e6, 10.1e6])) as [number[], string[]];
  expect(slower).toBeCloseTo(0.05 + 0.95 * 0.1);
  expect(ends).toEqual(["10.0 ms", "10.1 ms"]);
  expect((await shades([112e6, 112e6]))[1]).toEqual(["112 ms"]);
});

const trend = {
  ...panel,
  kind: "step_times",
  chart: { type: "trend", x: "iteration", value: "dur_ns", time_class: "host", measure: "Step time" },
  legend: ["median of 2 ranks", "fastest to slowest rank, 1.00 ms at the median"],
};

it("draws step times as a line with a band, numbers outliers, and selects the step that is clicked", async () => {
  const { el, model } = await show({
    ...trend,
    marks: wire({
      x: [5, 6, 7, 8],
      mid: [10e6, 20e6, Number.NaN, 10e6],
      low: [10e6, 10e6, Number.NaN, 9e6],
      high: [10e6, 30e6, Number.NaN, 11e6],
      most: [10e6, 30e6, 4e6, 11e6],
      rank: [0, 1, 0, 1],
      outlier: [0, 1, 0, 0],
      aside: ["", "", "cut by the recording", ""],
    }),
  });
  expect(el.querySelector(".hta-legend")?.textContent).toBe(
    "Step timeLine: median of 2 ranks.Band: fastest to slowest rank, 1.00 ms at the median." +
      "Dot: unusually long.Ring, not counted: cut by the recording.",
  );
  expect(labels(el)).toEqual([
    "iteration 5: 10.0 ms. Select this iteration.",
    "iteration 6: 20.0 ms, up to 30.0 ms on rank 1, unusually long. Select this iteration.",
    "iteration 7: 4.00 ms, cut by the recording. Select this iteration.",
    "iteration 8: 10.0 ms, up to 11.0 ms on rank 1. Select this iteration.",
  ]);
  expect([...el.querySelectorAll(".hta-value")].map((text) => text.textContent)).toEqual(["6"]);
  expect(el.querySelectorAll(".hta-dot-mark, circle.hta-line")).toHaveLength(2);
  expect(el.querySelectorAll("path.hta-line")).toHaveLength(2); // a gap at the step that does not count
  const dot = Number(el.querySelector(".hta-dot-mark")?.getAttribute("cy"));
  const ring = Number(el.querySelector("circle.hta-line")?.getAttribute("cy"));
  expect(ring - dot).toBe(112); // from the longest to the shortest step
  click(rows(el)[1]);
  expect([model.get("iterations"), model.get("ranks")]).toEqual([[6], []]);
  await drawn();
  expect(rows(el).map((row) => row.getAttribute("aria-pressed"))).toEqual([
    "false",
    "true",
    "false",
    "false",
  ]);
  press(rows(el)[1], "Enter");
  expect(model.get("iterations")).toEqual([]);
});

it("numbers no more outliers than stand side by side", async () => {
  const steps = Array.from({ length: 300 }, (_, i) => i);
  const [all, none] = [steps.map(() => 10e6), steps.map(() => "")];
  const columns = { mid: all, low: all, high: all, most: all, aside: none };
  const { el } = await show({
    ...trend,
    marks: wire({ x: steps, rank: steps.map(() => 0), outlier: steps.map(() => 1), ...columns }),
  });
  expect(el.querySelectorAll(".hta-dot-mark")).toHaveLength(300);
  const numbers = [...el.querySelectorAll(".hta-value")];
  expect(numbers.length).toBeGreaterThan(5);
  const half = (at: number) => textWidth(numbers[at]?.textContent ?? "") / 2;
  const middles = numbers.map((text) => Number(text.getAttribute("x")));
  for (let at = 1; at < numbers.length; at++) {
    const room = (middles[at] as number) - (middles[at - 1] as number) - half(at) - half(at - 1);
    expect(room).toBeGreaterThan(0);
    expect(room).toBeLessThan(20); // and no fewer
  }
});

it("draws steps that hardly differ as a flat line, and no line through one step", async () => {
  const steady = async (mid: number[]) => {
    const zeros = mid.map(() => 0);
    const columns = { low: mid, high: mid, most: mid, rank: zeros, outlier: zeros, aside: mid.map(() => "") };
    const { el } = await show({ ...trend, marks: wire({ x: mid.map((_, i) => i), mid, ...columns }) });
    return el.querySelector("path.hta-line")?.getAttribute("d") ?? "";
  };
  const heights = (await steady([10e6, 10.1e6])).match(/(?<= )\d+/g)?.map(Number) as [number, number];
  expect(heights[0] - heights[1]).toBe(11); // a tenth of the height, for a hundredth
  expect(await steady([10e6])).toBe("");
});

it("lists findings in words, shows what they are about, and opens their panel", async () => {
  const opened = vi.fn();
  document.body.addEventListener("hta-open", (event) => opened((event as CustomEvent).detail), {
    once: true,
  });
  const finding = { ranks: [2], iterations: [], names: ["<b>gemm</b>"], kind: "kernel_durations" };
  const { el, model } = await show({
    ...panel,
    kind: "overview",
    chart: {},
    marks: null,
    iterations: [5],
    notes: [
      { severity: "warning", share: "14.6 %", text: "<b>gemm</b> is slow.", hint: "Cool it.", ...finding },
      { severity: "open", text: "It cannot be told.", hint: "Record more." },
    ],
  });
  expect(el.querySelector(".hta-notes b")).toBeNull();
  expect(el.querySelector(".hta-notes")?.getAttribute("aria-label")).toBe("What was found");
  const shares = [...el.querySelectorAll(".hta-share")].map((share) => share.textContent);
  expect(shares).toEqual(["warning: 14.6 %", "unknown: ?"]); // not by colour alone
  expect(el.querySelectorAll(".hta-notes button")).toHaveLength(1);
  click(el.querySelector(".hta-notes button") ?? undefined);
  expect([model.get("ranks"), model.get("iterations"), model.get("names"), model.get("window")]).toEqual([
    [2],
    [],
    ["<b>gemm</b>"],
    null,
  ]);
  expect(opened).toHaveBeenCalledWith("kernel_durations");
});

it("shows the range of each kernel and a dot per rank", async () => {
  const { el, model } = await show({
    ...panel,
    chart: { type: "spread", mid: "mean_ns", label: "name", item: "launch", centre: "mean", scale: "log" },
    legend: ["gemm"],
    marks: wire({
      line: [0, 0],
      rank: [0, 1],
      low: [1e3, 2e3],
      mid: [1e4, 2e4],
      high: [1e5, 2e5],
      time_class: ["compute", "compute"],
    }),
  });
  expect(labels(el)).toEqual([
    "gemm: 1.00 µs to 200 µs, means 10.0 µs to 20.0 µs. Choose its events.",
    "gemm, rank 0: mean 10.0 µs, 1.00 µs to 100 µs. Select this rank.",
    "gemm, rank 1: mean 20.0 µs, 2.00 µs to 200 µs. Select this rank.",
  ]);
  click(rows(el)[2]);
  click(rows(el)[0]);
  expect([model.get("ranks"), model.get("names")]).toEqual([[1], ["gemm"]]);
  model.set("legend", ["gemm".repeat(60)]);
  await drawn();
  const name = el.querySelector(".hta-bar-name");
  const left = /translate\(([\d.]+)/.exec(el.querySelector("svg g")?.getAttribute("transform") ?? "")?.[1];
  const letters = name?.textContent?.length ?? 0;
  expect(letters).toBeGreaterThan(8);
  expect(Number(name?.getAttribute("x")) + 7 * letters).toBeLessThanOrEqual(Number(left)); // where the plot begins
});

it("draws a linear spread from zero and says what its lines and dots are", async () => {
  const { el } = await show({
    ...panel,
    chart: {
      type: "spread",
      mid: "busy_pct",
      label: "stream",
      item: "iteration",
      centre: "median",
      scale: "linear",
      measure: "Busy time",
    },
    legend: ["stream 7"],
    marks: wire({ line: [0], rank: [3], low: [0], mid: [20], high: [80], time_class: ["compute"] }),
  });
  expect(labels(el)).toEqual([
    "stream 7: 0 % to 80.0 %, medians 20.0 % to 20.0 %. Choose its events.",
    "stream 7, rank 3: median 20.0 %, 0 % to 80.0 %. Select this rank.",
  ]);
  const words = "Line: least to greatest iteration of all ranks. Dot: a rank's median.";
  expect(el.querySelector(".hta-legend")?.textContent).toBe(words);
  expect(el.querySelector("svg.hta-bars")?.getAttribute("aria-label")).toBe("Busy time by stream and rank");
  const [from, to] = [...(el.querySelector(".hta-range")?.getAttribute("d") ?? "").matchAll(/[MH]([\d.]+)/g)];
  const dot = Number(el.querySelector(".hta-dot-mark")?.getAttribute("cx"));
  expect((dot - Number(from?.[1])) / (Number(to?.[1]) - Number(from?.[1]))).toBeCloseTo(0.25);
});

it("shows means as means: their weight, the least on top, and what a full bar is", async () => {
  const marks = wire({
    label: ["fill", "gemm"],
    note: ["grid", "registers"],
    value: [0, 50],
    count: [1, 3],
    time_class: ["compute", "compute"],
    names: ['["fill"]', '["gemm"]'],
  });
  const mean = {
    note: "limiter",
    combine: "mean",
    weight: "time_ns",
    ascending: true,
    limit: 100,
    measure: "Occupancy",
  };
  const { el } = await show({
    ...panel,
    chart: { ...bars.chart, value: "occupancy_pct", ...mean },
    marks,
    left_out: 2,
  });
  expect(el.querySelector(".hta-legend")?.textContent).toBe(
    "Occupancy: mean by time, lowest first; at the right: limiter",
  );
  expect(el.querySelector("svg.hta-bars")?.getAttribute("aria-label")).toBe("lowest first");
  expect(rows(el)[1]?.querySelector("title")?.textContent).toBe("gemm: 50 %, the mean of 3 rows; registers");
  const length = (row: Element | undefined) =>
    Number(row?.querySelectorAll("rect")[1]?.getAttribute("width"));
  const [none, half] = rows(el).map(length);
  const { el: full } = await show({
    ...panel,
    chart: { ...bars.chart, value: "occupancy_pct", ...mean, limit: 50 },
    marks,
  });
  expect(length(rows(full)[1])).toBeCloseTo(2 * (half ?? 0));
  expect(none).toBe(1); // a mean of nothing is still to be seen
  expect(labels(el)[1]).toBe("gemm: 50.0 %, registers. Choose its events.");
  expect(rows(el)[1]?.lastElementChild?.textContent).toBe("registers");
  expect(el.textContent).toContain("2 more bars are not drawn");
});

it("cuts a note that would reach into the values, and has all of it in the tooltip", async () => {
  const note = "the same kernels with the same inputs are slower than on the other ranks";
  const { el } = await show({
    ...bars,
    chart: { ...bars.chart, note: "cause" },
    marks: wire({
      label: ["rank 2"],
      note: [note],
      value: [4e6],
      count: [1],
      time_class: ["communication"],
      names: ["[]"],
    }),
  });
  const [row] = rows(el);
  expect(row?.lastElementChild?.textContent).toContain("…");
  expect(row?.querySelector("title")?.textContent).toContain(note);
});

it("draws a histogram on a logarithmic axis", async () => {
  const { el } = await show({
    ...panel,
    chart: { type: "histogram", value: "latency_ns", time_class: "host" },
    marks: wire({ low: [1, 1e3, 1e6], high: [1e3, 1e6, 1e9], count: [5, 0, 1000] }),
  });
  expect(labels(el)).toEqual(["1 ns to 1.00 µs: 5", "1.00 ms to 1.00 s: 1,000"]);
});

const flame = {
  ...panel,
  chart: {
    type: "flame",
    weights: [
      ["host_ns", "host_self_ns", "Host time", "host"],
      ["device_ns", "", "Kernel time", "compute"],
    ],
  },
  marks: wire({
    parent: [-1, 0, 0, 1],
    name: ["step", "aten::mm", "(narrower than 0.1 %)", "launch"],
    count: [2, 4, 9, 4],
    width_0: [100, 60, 40, 60],
    total_0: [100, 60, 40, 60],
    width_1: [50, 50, 0, 50],
    total_1: [50, 50, 0, 50],
  }),
};

it("draws call stacks, goes into a box and weighs by kernel time", async () => {
  const { el, model } = await show(flame);
  expect(labels(el)).toEqual([
    "step: 100 ns, 100 %, 2 calls",
    "aten::mm: 60 ns, 60.0 %, 4 calls",
    "launch: 60 ns, 60.0 %, 4 calls",
    "(narrower than 0.1 %): 40 ns, 40.0 %, 9 calls",
  ]);
  const boxes = [...el.querySelectorAll(".hta-box")];
  expect(boxes.map((box) => box.getAttribute("x"))).toEqual(["0", "0", "0", "384"]);
  click(rows(el)[1]);
  expect(model.get("names")).toEqual(["aten::mm"]);
  press(rows(el)[1], "z", { ctrlKey: true }); // undo, not ours
  await drawn();
  expect(labels(el)).toHaveLength(4);
  press(rows(el)[1], "z");
  await drawn();
  expect(labels(el)).toHaveLength(2);
  press(rows(el)[1], "Escape");
  await drawn();
  [...el.querySelectorAll("button")].find((button) => button.textContent === "Kernel time")?.click();
  await drawn();
  expect(labels(el)).toHaveLength(3);
});

it("fills a box with rectangles of the right areas that do not overlap", () => {
  const box = { x: 5, y: 7, width: 300, height: 120 };
  for (const sizes of [[1], [6, 6, 4, 3, 2, 2, 1], [90, 5, 4, 1], Array(40).fill(2), [1e5, 1]]) {
    const whole = sizes.reduce((sum, size) => sum + size, 0);
    const boxes = squarified(sizes, box);
    const area = boxes.map(({ width, height }) => width * height);
    for (const [i, size] of sizes.entries()) expect(area[i]).toBeCloseTo((300 * 120 * size) / whole, 5);
    for (const [i, one] of boxes.entries()) {
      expect(one.x).toBeGreaterThan(5 - 1e-6);
      expect(one.y).toBeGreaterThan(7 - 1e-6);
      expect(one.x + one.width).toBeLessThan(305 + 1e-6);
      expect(one.y + one.height).toBeLessThan(127 + 1e-6);
      const inner = { x: one.x + 1e-6, y: one.y + 1e-6, width: one.width - 2e-6, height: one.height - 2e-6 };
      expect(boxes.slice(i + 1).filter((other) => overlap(inner, other))).toEqual([]);
    }
  }
  // the example of the paper: 6 above 6 at the left, then 4 and 3 side by side
  const paper = squarified([6, 6, 4, 3, 2, 2, 1], { x: 0, y: 0, width: 6, height: 4 });
  expect(paper.slice(0, 3).map(({ x, y, width }) => [x, y, width])).toEqual([
    [0, 0, 3],
    [0, 2, 3],
    [3, 0, expect.closeTo(12 / 7)],
  ]);
});

const treemap = {
  ...panel,
  chart: {
    type: "treemap",
    weights: [
      ["device_ns", "", "Kernel time", "compute"],
      ["host_ns", "host_self_ns", "Host time", "host"],
    ],
    prefix: "nn.Module: ",
    rest: "(outside modules)",
  },
  marks: wire({
    parent: [-1, 0, 0, -1],
    name: ["Net_0", "Linear_0", "<b>", "(outside modules)"],
    short: ["Net_0", "Linear_0", "<b>", "(outside modules)"],
    count: [2, 4, 6, 0],
    width_0: [60, 30, 20, 40],
    total_0: [60, 30, 20, 40],
    width_1: [100, 0, 0, 0],
    total_1: [80, 0, 0, 0], // another thread took 20 meanwhile
  }),
};

it("draws modules within modules, and what they leave beside them, of a whole that it says", async () => {
  const { el, model } = await show(treemap);
  expect(labels(el)).toEqual([
    "Net_0: 60 ns, 60.0 %, 2 calls",
    "Linear_0: 30 ns, 30.0 %, 4 calls",
    "<b>: 20 ns, 20.0 %, 6 calls",
    "Net_0 itself: 10 ns, 10.0 %",
    "(outside modules): 40 ns, 40.0 %",
  ]);
  expect(el.querySelector(".hta-bar > .hta-muted")?.textContent).toMatch(/^100 ns in all\. /);
  const box = (row: Element | undefined) => {
    const at = (name: string) => Number(row?.querySelector("rect")?.getAttribute(name));
    return { x: at("x"), y: at("y"), width: at("width"), height: at("height") };
  };
  const [net, ...within] = rows(el).slice(0, 4).map(box);
  for (const { x, y, width, height } of within) {
    expect([x >= (net?.x ?? 0), y >= (net?.y ?? 0) + 14]).toEqual([true, true]);
    expect(x + width).toBeLessThan((net?.x ?? 0) + (net?.width ?? 0));
    expect(y + height).toBeLessThan((net?.y ?? 0) + (net?.height ?? 0));
  }
  click(rows(el)[1]);
  expect(model.get("names")).toEqual(["nn.Module: Linear_0"]);
  click(rows(el)[4]);
  expect(model.get("names")).toEqual(["nn.Module: Linear_0"]);
  press(rows(el)[1], "z");
  await drawn();
  expect(labels(el)).toEqual(["Linear_0: 30 ns, 100 %, 4 calls"]);
  press(rows(el)[0], "Escape");
  await drawn();
  expect(labels(el)).toHaveLength(4); // Net_0 alone: without what runs outside
  [...el.querySelectorAll("button")].find((button) => button.textContent === "Whole model")?.click();
  [...el.querySelectorAll("button")].find((button) => button.textContent === "Host time")?.click();
  await drawn();
  expect(labels(el)).toEqual(["Net_0: 100 ns, 100 %, 2 calls"]);
});

it("offers options, and leaves the default out", async () => {
  const { el, model } = await show({
    ...bars,
    form: [
      { name: "by", label: "One bar per", choices: ["rank", "iteration"], default: "rank", hint: "" },
      { name: "operator", label: "Operator", choices: [], default: "", hint: "the largest" },
      { name: "kind", label: "Kind", choices: ["", "copies"], default: "", hint: "all kinds" },
    ],
  });
  const kinds = el.querySelectorAll("select")[1] as HTMLSelectElement;
  expect([...kinds.options].map((each) => each.text)).toEqual(["all kinds", "copies"]);
  const select = el.querySelector("select") as HTMLSelectElement;
  select.value = "iteration";
  select.dispatchEvent(new Event("change", { bubbles: true }));
  expect(model.get("options")).toEqual({ by: "iteration" });
  const input = el.querySelector("input") as HTMLInputElement;
  expect(input.placeholder).toBe("the largest");
  input.value = " aten::mm ";
  input.dispatchEvent(new Event("change", { bubbles: true }));
  expect(model.get("options")).toEqual({ by: "iteration", operator: "aten::mm" });
  select.value = "rank";
  select.dispatchEvent(new Event("change", { bubbles: true }));
  expect(model.get("options")).toEqual({ operator: "aten::mm" });
});

/** What the page downloads, until globals are restored. */
function downloads(): Blob[] {
  const saved: Blob[] = [];
  vi.stubGlobal("URL", {
    createObjectURL: (blob: Blob) => {
      saved.push(blob);
      return "blob:x";
    },
    revokeObjectURL: () => {},
  });
  return saved;
}

const itemOf = (el: HTMLElement, label: string) =>
  [...el.querySelectorAll<HTMLElement>('[role="menuitem"]')].find((one) => one.textContent === label);

it("asks the kernel for the whole of a cut table, in chunks", async () => {
  const saved = downloads();
  const { el, model } = await show({ ...bars, rows: 900 });
  expect(el.querySelector("summary")?.textContent).toContain("the first 2 of 900 rows");
  const item = (label: string) => itemOf(el, label);
  const menu = el.querySelector<HTMLElement>('[aria-haspopup="menu"]');
  menu?.click();
  await drawn();
  expect([...el.querySelectorAll('[role="menuitem"]')].map((one) => one.textContent)).toEqual([
    "CSV",
    "Parquet",
    "SVG",
    "PNG",
    "Copy plotly figure",
  ]);
  expect(document.activeElement).toBe(item("CSV"));
  press(document.activeElement, "ArrowDown");
  expect(document.activeElement).toBe(item("Parquet"));
  item("CSV")?.click();
  for (const chunk of [0, 1]) {
    await drawn();
    const { call, method, params } = (model.sent.at(-1)?.content ?? {}) as Record<string, unknown>;
    expect([method, params]).toMatchObject(["file", { form: "csv", chunk }]);
    const bytes = new DataView(new TextEncoder().encode(`part${chunk}`).buffer);
    model.emit("msg:custom", { rpc: 1, call, result: { chunks: 2 } }, [bytes]);
  }
  await drawn();
  expect(await saved[0]?.text()).toBe("part0part1");
  menu?.click();
  await drawn();
  press(document.activeElement, "Escape");
  await drawn();
  expect(el.querySelector('[role="menu"]')).toBeNull();
  expect(document.activeElement).toBe(menu);
  vi.unstubAllGlobals();
});

it("writes the table itself where it is all there, and asks the kernel for lines that were searched", async () => {
  const saved = downloads();
  const csv = async (state: object) => {
    const { el, model } = await show({ ...bars, ...state });
    el.querySelector<HTMLElement>('[aria-haspopup="menu"]')?.click();
    await drawn();
    itemOf(el, "CSV")?.click();
    await drawn();
    document.body.replaceChildren();
    return [saved.splice(0).length, model.sent.length];
  };
  expect(await csv({ rows: 2 })).toEqual([1, 0]);
  expect(await csv({ rows: 2, search: "gemm" })).toEqual([0, 1]);
  vi.unstubAllGlobals();
});

it("offers of a cut table in a report what the report holds", async () => {
  const { el, model } = await show({ ...bars, rows: 900, frozen: true });
  el.querySelector<HTMLElement>('[aria-haspopup="menu"]')?.click();
  await drawn();
  const labels = [...el.querySelectorAll('[role="menuitem"]')].map((one) => one.textContent);
  expect(labels).toEqual(["CSV, first 2 rows", "SVG", "PNG", "Copy plotly figure"]);
  expect(model.sent).toEqual([]);
});

it("draws the short names that Python sends, and tells the full ones", async () => {
  const full = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)";
  const short = "add<float>";
  const marks = { value: [4e6], count: [1], time_class: ["compute"], names: ['["x"]'] };
  const { el } = await show({
    ...bars,
    marks: wire({ ...marks, label: [full], short: [short] }),
    table: named(full, short),
  });
  expect(el.querySelector(".hta-bar-name")?.textContent).toBe(short);
  expect(labels(el)[0]).toContain(full);
  expect(rows(el)[0]?.querySelector("title")?.textContent).toContain(full);
  const [cell, other] = el.querySelectorAll<HTMLElement>("td");
  expect([cell?.textContent, cell?.title]).toEqual([short, full]);
  expect([other?.textContent, other?.title]).toEqual(["toString", "toString"]);

  const spread = { line: [0], rank: [0], low: [1e3], mid: [1e4], high: [1e5], time_class: ["compute"] };
  const chart = {
    type: "spread",
    mid: "mean_ns",
    label: "name",
    item: "launch",
    centre: "mean",
    scale: "log",
  };
  const lines = await show({ ...panel, chart, legend: [full], marks: wire({ ...spread, short: [short] }) });
  expect(lines.el.querySelector(".hta-bar-name")?.textContent).toBe(short);
  expect(labels(lines.el)[0]).toContain(full);

  const boxes = { parent: [-1], name: [full], short: [short], count: [1], width_0: [9], total_0: [9] };
  const weights = [["dur_ns", "", "Time", "host"]];
  const flame = await show({ ...panel, chart: { type: "flame", weights }, marks: wire(boxes) });
  expect(flame.el.querySelector(".hta-bar-name")?.textContent).toBe(short);
  expect(labels(flame.el)[0]).toContain(full);
});

/** A table whose first column is a long name, and whose second only looks as if it had a short one. */
function named(full: string, short: string) {
  const table = wire({ name: [full], line: ["toString"] });
  for (const column of table.columns) column.short = { [full]: short };
  return table;
}

it("keeps parameters where they alone tell names apart", () => {
  const names = [
    "void at::native::softmax<4>(int, float const*)",
    "void at::native::softmax<4>(int, half const*)",
  ];
  const [one, other] = fittedNames(names, 203);
  expect(one).not.toBe(other);
  expect(fittedNames(names, 1000)).toEqual(names);
});

it("distinguishes kernels whose shortened names would be the same", () => {
  const kernel = (part: string) => `sm90_xmma_gemm_bf16bf16_bf16f32_f32_${part}_n_tilesize128x128x64_cublas`;
  const names = [kernel("nn"), kernel("tn"), kernel("nt"), "Memset (Device)", kernel("nn")];
  const labels = fittedNames(names, 203);
  expect(labels).toEqual([
    "sm90_xm…2_nn_n_tilesize128x1…",
    "sm90_xm…2_tn_n_tilesize128x1…",
    "sm90_xm…2_nt_n_tilesize128x1…",
    "Memset (Device)",
    "sm90_xm…2_nn_n_tilesize128x1…",
  ]);
});

it("makes a picture without classes, with text escaped", async () => {
  const { el } = await show(bars);
  const svg = toSvg(el.querySelector("svg.hta-bars") as SVGSVGElement, "#fff");
  expect(svg).toContain("gemm&lt;b&gt;");
  expect(svg).not.toContain("class=");
  expect(new DOMParser().parseFromString(svg, "image/svg+xml").querySelector("parsererror")).toBeNull();
});

it("finds scales, units and short names", () => {
  expect([linear(10, 20, 100)(15), linear(10, 20, 100).invert(50)]).toEqual([50, 15]);
  expect(logarithmic(1, 100, 100)(10)).toBeCloseTo(50);
  expect(logarithmic(1, 100, 100).invert(50)).toBeCloseTo(10);
  expect([decades(5, 2000), decades(4, 50)]).toEqual([
    [10, 100, 1000],
    [5, 10, 20, 50],
  ]);
  for (const [at, unit] of ["KiB", "MiB", "GiB", "TiB"].entries()) {
    const bytes = 3 * 1024 ** (at + 1);
    expect(unitOf("bytes", [bytes]).text(bytes)).toBe(`3.00 ${unit}`);
  }
  expect(unitOf("queue_length", [4]).text(4)).toBe("4");
  expect(unitOf("flops", [2e12]).text(2e12)).toBe("2.00 TFLOP");
  expect(toggled(["a"], ["a", "b"])).toEqual(["a", "b"]);
  expect(toggled(["a", "b"], ["a"])).toEqual(["b"]);
  expect(brief("void at::native::(anonymous namespace)::softmax<4, int>(int, float const*)")).toBe(
    "softmax<4, int>",
  );
  expect(brief("Memcpy HtoD (Pinned -> Device)")).toBe("Memcpy HtoD (Pinned -> Device)");
  expect(fitted("abcdefghij", 7 * 5)).toBe("abc…j");
  expect(pattern("/", 0, 0, 20, 10)).toMatch(/^(M[\d.]+ [\d.]+L[\d.]+ [\d.]+)+$/);
});

it("makes pictures of twice the size, and says where that cannot be done", async () => {
  class Loaded {
    src = "";
    naturalWidth = 300;
    naturalHeight = 200;
    decode = async () => {};
  }
  vi.stubGlobal("Image", Loaded);
  const drawn: unknown[][] = [];
  const context = { drawImage: (...what: unknown[]) => drawn.push(what.slice(1)) };
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(context as never);
  let made: Blob | null = new Blob(["png"]);
  vi.spyOn(HTMLCanvasElement.prototype, "toBlob").mockImplementation((done) => done(made));
  expect(await rasterized("<svg/>")).toBe(made);
  expect(drawn).toEqual([[0, 0, 600, 400]]);
  made = null;
  await expect(rasterized("<svg/>")).rejects.toThrow("no picture");
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

it("dots the whole of a box, and nothing else", () => {
  const dots = [...pattern(".", 10, 20, 30, 18).matchAll(/M([\d.]+) ([\d.]+)/g)].map(([, x, y]) => [
    Number(x),
    Number(y),
  ]);
  const [across, down] = [0, 1].map((side) => [...new Set(dots.map((dot) => dot[side] as number))]) as [
    number[],
    number[],
  ];
  expect(dots).toHaveLength(across.length * down.length);
  for (const [at, from, size] of [
    [across, 10, 30],
    [down, 20, 18],
  ] as const) {
    const step = (at[1] as number) - (at[0] as number);
    expect(at[0]).toBeGreaterThan(from);
    expect(at[0]).toBeLessThan(from + step);
    expect(at.at(-1)).toBeLessThan(from + size);
    expect(at.at(-1)).toBeGreaterThan(from + size - step - 1);
  }
});
