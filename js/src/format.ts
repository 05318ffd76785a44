// Numbers as text: the rule is that of hta_widgets/formatting.py, and tests/formatting_cases.json holds both to it.

const ABSENT = "–";

/** Below zero with a minus sign, no hyphen. */
const digits = (options: Intl.NumberFormatOptions) => {
  const { format } = new Intl.NumberFormat("en-US", options);
  return { format: (value: number) => format(value).replace("-", "\u2212") };
};
const THREE_DIGITS = digits({ minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
const ALL_DIGITS = digits({ maximumFractionDigits: 12 });
const DECIMALS = Array.from({ length: 10 }, (_, n) =>
  digits({ minimumFractionDigits: n, maximumFractionDigits: n }),
);

/** A unit, and how many of the stored unit make one of it. */
export interface Unit {
  name: string;
  scale: number;
}

/** What is measured, by the suffix of a column's name. */
export type Quantity =
  | "ns"
  | "bytes"
  | "gbps"
  | "gb_s"
  | "flops"
  | "tflops_s"
  | "flops_per_byte"
  | "pct"
  | "";

const units = (scales: Record<string, number>): Unit[] =>
  Object.entries(scales).map(([name, scale]) => ({ name, scale }));

// Smallest first; the unit with the scale 1 is the one that is stored.
const UNITS: Record<Quantity, Unit[]> = {
  ns: units({ ns: 1, µs: 1e3, ms: 1e6, s: 1e9 }),
  bytes: units({ B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 }),
  gbps: units({ "B/s": 1e-9, "kB/s": 1e-6, "MB/s": 1e-3, "GB/s": 1 }),
  flops: units({ FLOP: 1, kFLOP: 1e3, MFLOP: 1e6, GFLOP: 1e9, TFLOP: 1e12, PFLOP: 1e15 }),
  gb_s: units({ "GB/s": 1 }),
  tflops_s: units({ "TFLOP/s": 1 }),
  flops_per_byte: units({ "FLOP/byte": 1 }),
  pct: units({ "%": 1 }),
  "": units({ "": 1 }),
};

/** Three significant digits, but all digits before the decimal point, and at most six decimals. */
export function significant(value: number): string {
  if (!Number.isFinite(value)) return ABSENT;
  if (value === 0) return "0"; // also -0
  const size = Math.abs(value);
  return size >= 1e-4 && size < 1000 ? THREE_DIGITS.format(value) : fixed(value, size < 1 ? 6 : 0);
}

/** So many decimals, 9 at most: where digits have to align, and for ticks that differ in the last one. */
export function fixed(value: number, decimals: number): string {
  return (DECIMALS[decimals] as ReturnType<typeof digits>).format(value);
}

/** 1234567 -> "1,234,567" */
export function grouped(count: number): string {
  return ALL_DIGITS.format(count);
}

/** "1 row", "0 rows", "2 rows" */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${grouped(count)} ${count === 1 ? noun : plural}`;
}

/** The text of a value that is a change: with a plus sign if the value is above zero, and known. */
export function signed(value: number, text: string): string {
  return value > 0 && text[0] !== "<" ? `+${text}` : text;
}

/** The unit in which values are stored. */
export function storedUnit(quantity: Quantity): Unit {
  return UNITS[quantity].find((unit) => unit.scale === 1) as Unit;
}

/** The unit in which the largest of the values reads best; the one that is stored if all are zero. */
export function unitFor(quantity: Quantity, values: Iterable<number>): Unit {
  let largest = 0;
  for (const value of values) {
    const size = Math.abs(value);
    if (size > largest && size < Number.POSITIVE_INFINITY) largest = size;
  }
  if (largest === 0) return storedUnit(quantity);
  let [best, ...larger] = UNITS[quantity] as [Unit, ...Unit[]];
  // What would round to as many of a unit as make the next one is given in the next one.
  for (const unit of larger) if (largest >= unit.scale - best.scale / 2) best = unit;
  return best;
}

/** The unit in which a time reads best. */
export function timeUnit(ns: number): Unit {
  return unitFor("ns", [ns]);
}

/** A value with its unit: by default the one in which it reads best. */
export function amount(value: number, quantity: Quantity, unit = unitFor(quantity, [value])): string {
  if (!Number.isFinite(value)) return ABSENT;
  return `${inUnit(value, quantity, unit)} ${unit.name}`.trimEnd();
}

/** 12_345_678 -> "12.3 ms" */
export function duration(ns: number): string {
  return amount(ns, "ns");
}

/** "16.2 → 12.9 ms", or the one time that both are. */
export function fromTo(before: number, after: number): string {
  const [from, to] = [duration(before), duration(after)];
  if (from === to) return to;
  const [number, unit] = from.split(" ");
  return `${to.endsWith(` ${unit}`) ? number : from} → ${to}`;
}

/** 23.04 -> "23.0 %" */
export function percent(value: number): string {
  return amount(value, "pct");
}

/** All digits, for tooltips: 12_345_678 -> "12,345,678 ns" */
export function exact(value: number, unit: string): string {
  if (!Number.isFinite(value)) return "no value";
  return `${ALL_DIGITS.format(value)} ${unit}`.trimEnd();
}

/** How to print one column of a table: its heading, its unit, and its cells. */
export interface ColumnFormat {
  heading: string;
  unit: string;
  /** how many of the stored unit make one of it */
  scale: number;
  cell(value: number): string;
  title(value: number): string;
}

/** What a column measures, by the suffix of its name. */
export function quantityOf(column: string): Quantity {
  return (/(?:^|_)(ns|pct|bytes|gbps|gb_s|flops|tflops_s|flops_per_byte)$/.exec(column)?.[1] ??
    "") as Quantity;
}

/** A column's format by its name, in the unit that suits its values; a column `change_...` has signs. */
export function columnFormat(name: string, values: Iterable<number>): ColumnFormat {
  const quantity = quantityOf(name);
  const unit = unitFor(quantity, values);
  const stem = quantity ? name.slice(0, -quantity.length).replace(/_$/, "") : name;
  return {
    heading: stem.replaceAll("_", " "),
    unit: unit.name,
    scale: unit.scale,
    cell(value) {
      const text = inUnit(value, quantity, unit);
      return name.startsWith("change_") ? signed(value, text) : text;
    },
    title: (value) => exact(value, storedUnit(quantity).name),
  };
}

/** What cannot be divided has all its digits where it is whole and in its own unit. */
function inUnit(value: number, quantity: Quantity, unit: Unit): string {
  if (quantity === "pct" && value && Math.abs(value) < 0.01) return value > 0 ? "< 0.01" : "> −0.01";
  return unit.scale === 1 && ["ns", "bytes", "flops", ""].includes(quantity) && Number.isInteger(value)
    ? ALL_DIGITS.format(value + 0) // not -0
    : significant(value / unit.scale);
}
