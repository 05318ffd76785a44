import { expect, it } from "vitest";
import { columnFormat, duration, exact, signed, significant } from "../src/format";

it("prints three significant digits and keeps whole digits", () => {
  expect([0, 0.012345, 1.2345, 12.345, 123.45, 12345.6, -1.5, Number.NaN].map(significant)).toEqual([
    "0",
    "0.0123",
    "1.23",
    "12.3",
    "123",
    "12,346",
    "-1.50",
    "–",
  ]);
});

it("gives changes and their intervals a sign", () => {
  expect([2, -2, 0, Number.NaN].map((value) => signed(value))).toEqual(["+2.00", "-2.00", "0", "–"]);
  const cells = ["change_ns", "low_ns", "change_pct", "change_count", "exclusive_ns"].map((name) =>
    columnFormat(name, [1500]).cell(1500),
  );
  expect(cells).toEqual(["+1.50", "+1.50", "+1,500", "+1,500", "1.50"]);
});

it("chooses the unit of time", () => {
  expect([1, 1500, 2_500_000, 3_000_000_000, 0].map(duration)).toEqual([
    "1.00 ns",
    "1.50 µs",
    "2.50 ms",
    "3.00 s",
    "0 ns",
  ]);
  expect(exact(12_345_678, "ns")).toBe("12,345,678 ns");
});

it("names a column's unit once", () => {
  const idle = columnFormat("idle_ns", [5_000_000, 1_000]);
  expect([idle.heading, idle.unit, idle.cell(1_000), idle.title(1_000)]).toEqual([
    "idle",
    "ms",
    "0.00100",
    "1,000 ns",
  ]);
  expect(columnFormat("overlap_pct", []).unit).toBe("%");
  expect(columnFormat("rank", []).cell(1023)).toBe("1,023");
});
