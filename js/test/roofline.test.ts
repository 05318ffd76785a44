// The roofline: its axes, its labels, what its marks and the list select, and the form for peaks.

import { afterEach, expect, it } from "vitest";
import { overlap, placeLabels, textWidth } from "../src/charts/place";
import { sharedDetail } from "../src/charts/roof_list";
import { outline } from "../src/charts/roof_rows";
import { ridge, roofsOf } from "../src/charts/roofs";
import { logarithmic, logTicks } from "../src/charts/scale";
import { decode } from "../src/columns";
import { check } from "../src/peaks";
import { drawn, outside, show, wire } from "./support";

afterEach(() => {
  const found = [...document.querySelectorAll<SVGSVGElement>("svg.hta-bars")].flatMap(outside);
  document.body.replaceChildren();
  expect(found).toEqual([]);
});

const numbers = (low: number, high: number, length: number) =>
  logTicks(low, high, length)
    .filter(({ labelled }) => labelled)
    .map(({ value }) => value);

it.each([
  [["BF16", "BF16"], "BF16"],
  [["BF16", "FP32"], ""],
  [["BF16"], ""], // of one it stands in its row
  [[], ""],
])("says once what details have in common", (details, shared) => {
  expect(sharedDetail(details)).toBe(shared);
});

it("puts numbers at powers of ten, at 2 and 5 where there is room, and at fewer where there is none", () => {
  expect(numbers(0.05, 2000, 300)).toEqual([0.1, 1, 10, 100, 1000]);
  expect(numbers(0.5, 30, 300)).toEqual([0.5, 1, 2, 5, 10, 20]);
  expect(numbers(1e-6, 1e6, 120)).toEqual([1e-6, 1e-3, 1, 1e3, 1e6]);
  const lines = logTicks(1, 100, 300).map(({ value }) => value);
  expect(lines).toEqual([...[1, 2, 3, 4, 5, 6, 7, 8, 9], ...[10, 20, 30, 40, 50, 60, 70, 80, 90], 100]);
  const x = logarithmic(0.05, 2000, 300);
  const at = numbers(0.05, 2000, 300).map(x);
  for (const [i, place] of at.entries()) if (i) expect(place - (at[i - 1] as number)).toBeGreaterThan(26);
});

it("places labels apart from each other, from marks and within the area, the first ones best", () => {
  const area = { width: 200, height: 100 };
  const item = { x: 50, y: 50, r: 5, width: 60 };
  const mark = { x: 45, y: 45, width: 10, height: 10 };
  const many = Array.from({ length: 12 }, () => item);
  const found = placeLabels(many, [mark], area);
  const boxes = found.filter((box) => box !== null);
  expect(found[0]).toEqual({ x: 58, y: 43.5, width: 60, height: 13 });
  expect(boxes.length).toBeGreaterThan(2);
  expect(boxes.length).toBeLessThan(many.length);
  for (const [i, box] of boxes.entries()) {
    expect(box.x >= 0 && box.y >= 0 && box.x + box.width <= 200 && box.y + box.height <= 100).toBe(true);
    expect(overlap(box, mark)).toBe(false);
    for (const other of boxes.slice(i + 1)) expect(overlap(box, other)).toBe(false);
  }
  // at the right edge the label is at the left
  expect(placeLabels([{ x: 190, y: 50, r: 5, width: 60 }], [], area)[0]?.x).toBe(122);
  expect(placeLabels([{ x: 50, y: 50, r: 5, width: 300 }], [], area)).toEqual([null]);
});

it("has shapes of equal area", () => {
  const [circle, square, triangle] = (["circle", "square", "triangle"] as const).map((shape) =>
    [...outline(shape, 0, 0, 10).matchAll(/-?\d+(?:\.\d+)?/g)].map(Number),
  ) as [number[], number[], number[]];
  expect(circle[2]).toBe(10);
  expect((square[2] as number) ** 2).toBeCloseTo(Math.PI * 100);
  expect((-(triangle[4] as number) * (triangle[3] as number)) / 2).toBeCloseTo(Math.PI * 100);
});

const rows = {
  x: [500, 0.25, 0, 8],
  y: [600, 0.4, 0, 2],
  size: [6e6, 3e6, 2e6, 1e5],
  label: ["aten::mm", "aten::add", "aten::copy_", "aten::bmm<b>"],
  part: ["tensor_16bit", "", "", "simt_fp32"],
  peak: [1000, Number.NaN, Number.NaN, 50],
  bandwidth: [2000, 2000, 2000, 2000],
  achievable: [700, Number.NaN, Number.NaN, Number.NaN],
  device: ["X1", "X1", "X1", "X1"],
  calls: [10, 20, 5, 1],
  share: [60, 30, 20, 1],
  moved: [900, 1600, 1700, 250],
  bound: ["compute", "memory", "memory", "memory"],
  efficiency: [60, 80, 85, 12],
  headroom: [2.4e6, 6e5, 3e5, 88e3],
  short: ["aten::mm", "aten::add", "aten::copy_", "aten::bmm<b>"],
  detail: ["", "", "", ""],
};

it("knows the roofs of what is drawn, each once", () => {
  const { peaks, memories } = roofsOf(decode(wire(rows)));
  expect(memories).toEqual([{ device: "X1", bandwidth: 2000 }]);
  expect(peaks.map(({ unit, peak, achievable }) => [unit, peak, achievable])).toEqual([
    ["tensor_16bit", 1000, false],
    ["tensor_16bit", 700, true],
    ["simt_fp32", 50, false],
  ]);
  expect(peaks.map(ridge)).toEqual([500, 350, 25]);
  const unknown = wire({
    ...rows,
    peak: rows.peak.map(() => Number.NaN),
    bandwidth: rows.peak.map(() => Number.NaN),
  });
  expect(roofsOf(decode({ ...unknown }))).toMatchObject({ memories: [] });
});

const device = {
  name: "X1",
  source: "X1 datasheet",
  achievable_source: "",
  memory_gb_s: 2000,
  units: [
    { unit: "simt_fp32", peak: 50, achievable: null },
    { unit: "tensor_16bit", peak: 1000, achievable: null },
  ],
};

const panel = {
  _view: "breakdown",
  kind: "roofline",
  title: "How far",
  sentence: "Far.",
  expression: 'explorer.frame("roofline")',
  drawing: "",
  ranks: [],
  iterations: [],
  names: [],
  window: null,
  focus: null,
  legend: [],
  left_out: 0,
  extent: [],
  notes: [{ text: "19 % has no formula.", kind: "formula_coverage" }],
  form: [],
  options: {},
  rows: 4,
  table: wire({ rank: [0] }),
  chart: { type: "roofline" },
  marks: wire(rows),
  devices: [device],
  peaks: {},
};

const marksOf = (el: Element) => [...el.querySelectorAll<SVGElement>(".hta-roofline .hta-bar-row")];

const headings = (el: Element) =>
  [...el.querySelectorAll(".hta-roof-list th")].map((head) => head.textContent);

it("draws what has an intensity, the largest first, and lists all by headroom", async () => {
  const { el } = await show(panel);
  expect(marksOf(el).map((mark) => mark.getAttribute("aria-label")?.split(",")[0])).toEqual([
    "aten::mm",
    "aten::add",
    "aten::bmm<b>",
  ]);
  expect(marksOf(el)[0]?.getAttribute("aria-label")).toBe(
    "aten::mm, 6.00 ms (60.0 % of device time), 500 FLOP/byte, 600 TFLOP/s on 16-bit tensor, 900 GB/s, " +
      "60.0 % of the compute roof, 85.7 % of what is achievable, headroom 2.40 ms. Choose its events.",
  );
  expect(el.querySelector(".hta-roof-chart > p")?.textContent).toBe(
    "1 of 4 (2.00 ms) has no counted FLOPs: in the list only.",
  );
  expect(el.querySelectorAll(".hta-roof-line")).toHaveLength(4);
  expect(el.querySelector(".hta-roof-labels")?.textContent).toContain("memory 2,000 GB/s");
  expect(el.querySelector("b")).toBeNull();
  expect(headings(el)).toEqual([
    ...["name", "headroom ms", "time ms", "share %", "calls", " TFLOP/s", " GB/s", "of roof %", "bound"],
  ]);
  expect(
    [...el.querySelectorAll(".hta-roof-list td[data-column=name]")].map((cell) => cell.textContent),
  ).toEqual(rows.label);
});

it("says nothing of a list alone where all have an intensity", async () => {
  const { el } = await show({ ...panel, marks: wire({ ...rows, x: [1, 2, 3, 4], y: [1, 2, 3, 4] }) });
  expect(marksOf(el)).toHaveLength(4);
  expect(el.querySelector(".hta-roof-chart > p")).toBeNull();
});

it("says once what the details of all rows are, and in each row where they differ", async () => {
  const same = await show({ ...panel, marks: wire({ ...rows, detail: rows.detail.map(() => "2 ranks") }) });
  expect(headings(same.el)).not.toContain("detail");
  expect(same.el.querySelector(".hta-legend")?.textContent).toContain("area: time, 2 ranks");
  const mixed = ["2 ranks", "2 ranks", "1 rank", "2 ranks"];
  const other = await show({ ...panel, marks: wire({ ...rows, detail: mixed }) });
  expect(headings(other.el)).toContain("detail");
  expect(other.el.querySelector(".hta-legend")?.textContent).not.toContain("2 ranks");
});

it("keeps the numbers of the axis inside the picture, and names off the levels of roofs", async () => {
  const { el } = await show({
    ...panel,
    marks: wire({ ...rows, x: [590, 0.25, 0, 200], y: [700, 0.4, 0, 50] }),
  });
  const chart = el.querySelector(".hta-roofline");
  const last = [...(chart?.querySelectorAll("g[transform$=' 0)'] > text") ?? [])].at(-1);
  expect(last?.textContent).toBe("1,000");
  const at = Number(last?.parentElement?.getAttribute("transform")?.match(/[\d.]+/)?.[0]);
  expect(48 + at + textWidth("1,000") / 2).toBeLessThanOrEqual(Number(chart?.getAttribute("width")));
  const names = [...(chart?.querySelectorAll(".hta-roof-labels .hta-bar-name") ?? [])];
  const onRoof = names.find((name) => name.textContent === "aten::bmm<b>");
  const levels = [...(chart?.querySelectorAll(".hta-roof-line") ?? [])].map((line) =>
    Number(line.getAttribute("d")?.match(/^M\S+ ([\d.]+)H/)?.[1]),
  );
  const foot = Number(onRoof?.getAttribute("y"));
  expect(levels.filter((level) => level > 0)).toHaveLength(3);
  expect(levels.filter((level) => level > foot - 10 && level < foot + 3)).toEqual([]);
});

it("selects by mark, by row and by keyboard, and forgets with Escape", async () => {
  const { el, model } = await show(panel);
  marksOf(el)[0]?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  await drawn();
  expect(model.get("names")).toEqual(["aten::mm"]);
  expect(marksOf(el).map((mark) => mark.getAttribute("aria-pressed"))).toEqual(["true", "false", "false"]);
  el.querySelectorAll<HTMLElement>(".hta-roof-list tbody tr")[2]?.click();
  expect(model.get("names")).toEqual(["aten::copy_", "aten::mm"]);
  marksOf(el)[1]?.dispatchEvent(new FocusEvent("focusin", { bubbles: true }));
  await drawn();
  expect(el.querySelector(".hta-roof-tip strong")?.textContent).toBe("aten::add");
  marksOf(el)[0]?.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  expect(model.get("names")).toEqual([]);
});

it("selects what a drag goes around, and nothing where the pointer hardly moved", async () => {
  const { el, model } = await show({ ...panel, names: ["aten::copy_"] });
  const ground = el.querySelector(".hta-roofline .hta-brush");
  const pointer = async (type: string, clientX: number, clientY: number) => {
    ground?.dispatchEvent(new MouseEvent(type, { bubbles: true, clientX, clientY, button: 0, buttons: 1 }));
    await drawn();
  };
  const drag = async (x: number, y: number) => {
    await pointer("pointerdown", 0, 0);
    await pointer("pointermove", x, y);
    await pointer("pointerup", x, y);
    return model.get("names");
  };
  expect(await drag(2, 2)).toEqual(["aten::copy_"]);
  await pointer("pointerup", 5, 5); // that began elsewhere
  expect(model.get("names")).toEqual(["aten::copy_"]);
  expect(await drag(10_000, 10_000)).toEqual(["aten::add", "aten::bmm<b>", "aten::mm"]);
});

const fill = async (el: Element, label: string, value: string) => {
  const input = el.querySelector<HTMLInputElement>(`input[aria-label="${label}"]`);
  if (!input) throw new Error(`no field ${label}`);
  input.value = value;
  input.dispatchEvent(new Event("change", { bubbles: true }));
  await drawn();
};

it("takes peaks that a device can have, and refuses others where they are typed", async () => {
  const { el, model } = await show(panel);
  const source = () => el.querySelector(".hta-peaks summary .hta-muted")?.textContent;
  expect(source()).toBe(device.source);
  await fill(el, "Peak of 16-bit tensor, TFLOP/s", "900");
  expect(source()).toBe(`entered by hand, else ${device.source}`);
  expect(el.textContent).not.toContain("its name was not recorded");
  expect(model.get("peaks")).toEqual({ X1: { tflops: { tensor_16bit: 900 } } });
  for (const wrong of ["fast", "-1", "0", "1e10", "950", "NaN", "0x10"]) {
    await fill(el, "Achievable of 16-bit tensor, TFLOP/s", wrong);
    expect(el.querySelector("[role=alert]")?.textContent).toContain(
      "Not applied: achievable of 16-bit tensor",
    );
    expect(model.get("peaks")).toEqual({ X1: { tflops: { tensor_16bit: 900 } } });
  }
  await fill(el, "Achievable of 16-bit tensor, TFLOP/s", "800");
  expect(el.querySelector("[role=alert]")).toBeNull();
  expect(model.get("peaks")).toEqual({
    X1: { tflops: { tensor_16bit: 900 }, achievable: { tensor_16bit: 800 } },
  });
  const reset = [...el.querySelectorAll("button")].find(
    (button) => button.textContent === "Back to the datasheet",
  );
  reset?.click();
  expect(model.get("peaks")).toEqual({});
});

it("needs the memory of a device that nothing is known of, and shows no field in a report to type into", async () => {
  const unknown = {
    ...device,
    name: "Y",
    source: "",
    memory_gb_s: null,
    units: device.units.map((unit) => ({ ...unit, peak: null })),
  };
  expect(check(unknown, { "tflops simt_fp32": "10" }).errors).toMatchObject([{ field: "memory_gb_s" }]);
  expect(check(unknown, { "tflops simt_fp32": "10", memory_gb_s: "5" })).toEqual({
    stated: { tflops: { simt_fp32: 10 }, memory_gb_s: 5 },
    errors: [],
  });
  const { el } = await show({ ...panel, devices: [unknown], frozen: true });
  expect(el.querySelector("details.hta-peaks")?.hasAttribute("open")).toBe(true);
  expect([...el.querySelectorAll("input")].every((input) => input.disabled)).toBe(true);
});

it("asks for the peaks of units that are used, stated or known, and of usual ones where nothing is known", async () => {
  const units = (names: string[], known = 50) =>
    names.map((unit) => ({ unit, peak: known, achievable: null }));
  const asked = async (changed: object, peaks = {}) => {
    const { el } = await show({ ...panel, devices: [{ ...device, ...changed }], peaks });
    const found = [...el.querySelectorAll(".hta-peaks tbody th")].map((head) => head.textContent);
    document.body.replaceChildren();
    return found.slice(1); // memory comes first
  };
  const unknown = units(["tensor_16bit", "tensor_8bit", "tensor_4bit", "simt_fp64"], null as never);
  expect(await asked({ units: units(["tensor_8bit", "simt_fp64"]) })).toHaveLength(2);
  expect(await asked({ units: unknown })).toEqual(["16-bit tensor"]); // it is used
  expect(await asked({ units: unknown }, { X1: { tflops: { simt_fp64: 3 } } })).toHaveLength(2);
  expect(await asked({ units: unknown, source: "" })).toHaveLength(2); // and 8 bits are usual
});
