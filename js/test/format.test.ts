// Numbers read the same here and in Python: tests/test_formatting.py reads the same table of cases.

import { expect, it } from "vitest";
import cases from "../../tests/formatting_cases.json";
import {
  amount,
  columnFormat,
  counted,
  duration,
  exact,
  percent,
  type Quantity,
  signed,
  significant,
} from "../src/format";

const of = (quantity: Quantity) => (value: number) => amount(value, quantity);
const FUNCTIONS: Record<string, (value: number) => string> = {
  duration,
  byte_size: of("bytes"),
  bandwidth: of("gbps"),
  flop_count: of("flops"),
  percent,
  significant,
  plain: of(""),
  signed_duration: (value) => signed(value, duration(value)),
};
const number = (value: number | null) => value ?? Number.NaN;
const { column: columns, ...functions } = cases;

for (const [kind, all] of Object.entries(functions)) {
  it(`prints as Python does: ${kind}`, () => {
    const format = FUNCTIONS[kind] as (value: number) => string;
    const found = all.map(([value]) => [value, format(number(value as number | null))]);
    expect(found).toEqual(all);
  });
}

it.each(columns)("prints a column as Python does: $name, $unit", ({ name, values, heading, unit, cells }) => {
  const numbers = values.map(number);
  const format = columnFormat(name, numbers);
  expect([format.heading, format.unit, numbers.map(format.cell)]).toEqual([heading, unit, cells]);
});

it("reads infinity as no value, as Python does", () => {
  const format = columnFormat("idle_ns", [Number.POSITIVE_INFINITY, 2_000_000]);
  expect([format.unit, format.cell(2_000_000), format.cell(Number.POSITIVE_INFINITY)]).toEqual([
    "ms",
    "2.00",
    "–",
  ]);
});

it("prints all digits in tooltips", () => {
  expect([exact(12_345_678, "ns"), exact(0.1, "%"), exact(1.5, ""), exact(Number.NaN, "ns")]).toEqual([
    "12,345,678 ns",
    "0.1 %",
    "1.5",
    "no value",
  ]);
  expect(columnFormat("idle_ns", [5_000_000]).title(1_000)).toBe("1,000 ns");
  expect(columnFormat("peak_bytes", [2 ** 30]).title(2 ** 30)).toBe("1,073,741,824 B");
});

it("counts things as Python does", () => {
  expect([0, 1, 2, 1201].map((number) => counted(number, "row"))).toEqual([
    "0 rows",
    "1 row",
    "2 rows",
    "1,201 rows",
  ]);
  expect(counted(2, "box", "boxes")).toBe("2 boxes");
});
