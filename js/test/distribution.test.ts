import { expect, it } from "vitest";
import { drawn, outside, show, wire } from "./support";

const SERIES = [
  { column: "compute_ns", label: "Compute", time_class: "compute" },
  { column: "idle_ns", label: "Idle", time_class: "idle" },
];

it("draws many ranks as a distribution, with bars and marks for those that stand out", async () => {
  const strip = (column: string, counts: number[], least: number, median: number, most: number) =>
    JSON.stringify({ column, counts, least, median, most, longest: 200, ranks: 99 });
  const { el, model } = await show({
    _view: "breakdown",
    kind: "temporal_breakdown",
    sentence: "",
    ranks: [],
    iterations: [],
    window: null,
    names: [],
    chart: { type: "stack", series: SERIES, whole: "window_ns" },
    legend: [strip("compute_ns", [0, 98, 0, 1], 40, 41, 90), strip("idle_ns", [1, 0, 98, 0], 10, 59, 60)],
    notes: [],
    extent: [0, 100],
    rows: 99,
    table: wire({ rank: [70] }),
    form: [],
    options: {},
    marks: wire({
      label: ["rank 70"],
      rank: [70],
      compute_ns: [90],
      idle_ns: [10],
      window_ns: [100],
    }),
  });
  await drawn();
  const marks = () => [...el.querySelectorAll(".hta-distribution-mark")];
  expect(marks()).toHaveLength(2);
  expect(marks()[0]?.closest("[aria-label]")?.getAttribute("aria-label")).toBe(
    "Rank 70, Compute: 90 ns, median 41 ns. Select this rank.",
  );
  expect(el.querySelector('[aria-label^="Compute of 99 ranks"]')?.getAttribute("aria-label")).toBe(
    "Compute of 99 ranks: 40 ns to 90 ns, median 41 ns",
  );
  expect([...el.querySelectorAll<SVGSVGElement>("svg.hta-bars")].flatMap(outside)).toEqual([]);
  const bars = el.querySelectorAll('[aria-label^="Rank 70: Compute"]');
  expect(bars).toHaveLength(1);
  // its bar is as long as among all others: half of the longest
  const [compute, idle] = [...(bars[0]?.querySelectorAll("rect:not(.hta-bar-hit)") ?? [])];
  const ticks = [...(bars[0]?.closest("svg")?.querySelectorAll("text") ?? [])].map(
    (text) => text.textContent,
  );
  expect(compute && idle).toBeTruthy();
  expect(ticks).toContain("200 ns");
  expect(el.querySelectorAll('[aria-label^="Rank 1: Compute"]')).toHaveLength(0);
  marks()[0]
    ?.closest("[role=button]")
    ?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  expect(model.get("ranks")).toEqual([70]);
});
