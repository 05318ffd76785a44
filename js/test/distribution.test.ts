import { expect, it } from "vitest";
import { binned, middle } from "../src/charts/distribution";
import { drawn, show, wire } from "./support";

it("counts every value once and finds the middle", () => {
  const values = [0, 1, 5, 5, 99.9, 100];
  const counts = binned(values, 100);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(6);
  expect([counts[0], counts[4], counts.at(-1)]).toEqual([2, 2, 2]);
  expect(middle([3, 1, 2])).toBe(2);
  expect(middle([4, 1, 2, 3])).toBe(2.5);
});

const SERIES = [
  { column: "compute_ns", label: "Compute", time_class: "compute" },
  { column: "idle_ns", label: "Idle", time_class: "idle" },
];

it("draws many ranks as a distribution, with bars and marks for those that stand out", async () => {
  const ranks = [70, ...Array.from({ length: 99 }, (_, rank) => rank).filter((rank) => rank !== 70)];
  const compute = ranks.map((rank) => (rank === 70 ? 90 : 40 + (rank % 3)));
  const { el, model } = await show({
    _view: "breakdown",
    kind: "temporal_breakdown",
    ranks: [],
    iterations: [],
    window: null,
    names: [],
    chart: { type: "stack", series: SERIES, whole: "window_ns" },
    legend: [],
    notes: [],
    extent: [0, 100],
    rows: 99,
    table: wire({ rank: ranks }),
    form: [],
    options: {},
    marks: wire({
      label: ranks.map((rank) => `rank ${rank}`),
      rank: ranks,
      compute_ns: compute,
      idle_ns: compute.map((value) => 100 - value),
      window_ns: ranks.map(() => 100),
      bar: ranks.map((rank) => Number(rank === 70)),
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
  expect(el.querySelectorAll('[aria-label^="Rank 70: Compute"]')).toHaveLength(1);
  expect(el.querySelectorAll('[aria-label^="Rank 1: Compute"]')).toHaveLength(0);
  marks()[0]
    ?.closest("[role=button]")
    ?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  expect(model.get("ranks")).toEqual([70]);
});
