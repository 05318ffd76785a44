import { h, render } from "preact";
import { act } from "preact/test-utils";
import { expect, it } from "vitest";
import { distributionOf, rangeOf, textOf } from "../src/column_filter";
import { Table } from "../src/columns";
import { DataTable } from "../src/table";

it("reads ranges in the unit that is shown, to the stored unit", () => {
  const us = (text: string) => rangeOf(text, 1000, true);
  expect(us("10 to 20")).toEqual([10_000, 20_000]);
  expect(us("1.1..2.345")).toEqual([1100, 2345]);
  expect(us(">= 1,234.567")).toEqual([1_234_567, null]);
  expect(us("> 10")).toEqual([10_001, null]);
  expect(us("<10")).toEqual([null, 9999]);
  expect(us("≤ 10")).toEqual([null, 10_000]);
  expect(us(" 7 ")).toEqual([7000, 7000]);
  expect(us("-3 to 1e3")).toEqual([-3000, 1_000_000]);
  for (const text of ["long", "10 20", "to 3", "> ", "1..2..3", ""]) expect(us(text)).toBeUndefined();
  const [least] = rangeOf("> 0.5", 1, false) as [number, null];
  expect(least).toBeGreaterThan(0.5);
  expect(least).toBeLessThan(0.5000000001);
});

it("writes a filter as it would be typed", () => {
  for (const text of ["10 to 20", ">= 1.5", "<= 2.345", "7"])
    expect(textOf(rangeOf(text, 1000, true), 1000)).toBe(text);
  expect([textOf("gemm", 1), textOf(undefined, 1)]).toEqual(["gemm", ""]);
});

it("counts what values are like", () => {
  const common = distributionOf(["c", "a", "b", "c", "b", "c"]).values?.map(([text]) => text);
  expect(common).toEqual(["c", "b", "a"]); // the commonest first, of equals by name
  expect(distributionOf(["b", "a"]).values?.map(([text]) => text)).toEqual(["a", "b"]);
  expect(distributionOf(["b", "a", "b"])).toEqual({
    values: [
      ["b", 2],
      ["a", 1],
    ],
    distinct: 2,
    missing: 0,
  });
  const { edges, counts, missing } = distributionOf([0, 48, 47, Number.NaN, 1]);
  expect([edges?.length, edges?.[0], edges?.at(-1), missing]).toEqual([25, 0, 48, 1]);
  expect(counts?.map((count, bin) => [bin, count]).filter(([, count]) => count)).toEqual([
    [0, 2],
    [23, 2],
  ]);
  expect(distributionOf([100, 148, 147, 101]).counts).toEqual(counts); // wherever they begin
  expect(distributionOf([3, 3])).toEqual({ edges: [3, 3], counts: [2], missing: 0 });
  expect(distributionOf([Number.NaN])).toEqual({ edges: [], counts: [], missing: 1 });
});

it("filters the rows of a table by column, and says how many are left", async () => {
  const values = Float64Array.from({ length: 20 }, (_, i) => i * 1000);
  const names = Array.from({ length: 20 }, (_, i) => (i % 2 ? "void gemm<int>()" : "add"));
  const table = new Table(20, [
    { name: "name", kind: "text", values: names, short: { "void gemm<int>()": "gemm" } },
    { name: "dur_ns", kind: "int", values },
  ]);
  const chosen: number[] = [];
  const choosing = { chosen: () => false, choose: (row: number) => void chosen.push(row) };
  const el = document.createElement("div");
  document.body.append(el);
  await act(() => render(h(DataTable, { table, caption: "Kernels", choosing }), el));
  const rows = () => [...el.querySelectorAll("tbody > tr")].map((row) => row.textContent);
  expect(rows()).toHaveLength(20);
  const toggle = async () => {
    const button = el.querySelector<HTMLElement>("p button");
    await act(() => button?.click());
    return button?.ariaPressed;
  };
  expect(await toggle()).toBe("true");
  const type = async (label: string, text: string) => {
    const box = el.querySelector<HTMLInputElement>(`input[aria-label="${label}"]`) as HTMLInputElement;
    box.value = text;
    await act(() => void box.dispatchEvent(new Event("input", { bubbles: true })));
    await act(() => void box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true })));
    return box;
  };
  await type("Filter dur", ">= 15");
  expect(rows()).toHaveLength(5);
  await type("Filter name", "GEMM");
  expect(rows()).toEqual(["gemm15.0", "gemm17.0", "gemm19.0"]);
  expect(el.querySelector("[role=status]")?.textContent).toBe("3 of the 20 rows here");
  await act(() => el.querySelectorAll<HTMLElement>("tbody > tr")[1]?.click());
  expect(chosen).toEqual([17]);
  const box = await type("Filter dur", "long");
  expect(box.getAttribute("aria-invalid")).toBe("true");
  expect(rows()).toHaveLength(3);
  await act(() => void box.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true })));
  expect(rows()).toHaveLength(10);
  await type("Filter name", "void"); // which the cells do not show
  expect(rows()).toHaveLength(10);
  expect(await toggle()).toBe("false");
  expect(rows()).toHaveLength(20);
  render(null, el);
  el.remove();
});
