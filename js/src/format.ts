// Numbers as text: three significant digits, units named once.

const TIME = [
  ["s", 1e9],
  ["ms", 1e6],
  ["µs", 1e3],
  ["ns", 1],
] as const;

export interface Unit {
  name: string;
  /** how many of the stored unit make one of this */
  scale: number;
}

/** Three significant digits, but never fewer than all digits before the decimal point; "–" for no value. */
export function significant(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const whole = value === 0 ? 1 : Math.floor(Math.log10(Math.abs(value))) + 1;
  const digits = Math.min(Math.max(3 - whole, 0), 6);
  return value.toLocaleString("en-US", {
    minimumFractionDigits: value === 0 ? 0 : digits,
    maximumFractionDigits: digits,
  });
}

/** 1234567 -> "1,234,567" */
export function grouped(count: number): string {
  return count.toLocaleString("en-US");
}

/** A number's text with its sign. */
export function signed(value: number, text = significant(value)): string {
  return value > 0 ? `+${text}` : text;
}

/** The unit of time in which the largest of the values reads best. */
export function timeUnit(values: Iterable<number>): Unit {
  let largest = 0;
  for (const value of values) if (Math.abs(value) > largest) largest = Math.abs(value);
  const [name, scale] = TIME.find(([, size]) => largest >= size) ?? TIME[3];
  return { name, scale };
}

/** 12_345_678 -> "12.3 ms" */
export function duration(ns: number): string {
  const unit = timeUnit([ns]);
  return `${significant(ns / unit.scale)} ${unit.name}`;
}

/** 12_345_678 -> "12,345,678 ns" */
export function exact(value: number, unit: string): string {
  if (!Number.isFinite(value)) return "no value";
  const text = value.toLocaleString("en-US", { maximumFractionDigits: 12 });
  return unit ? `${text} ${unit}` : text;
}

/** How to print one column of a table: its heading, its unit, and its cells. */
export interface ColumnFormat {
  heading: string;
  unit: string;
  cell(value: number): string;
  title(value: number): string;
}

/** A column's format by its name: a suffix `_ns`, `_pct`, `_bytes`, `_gbps`; changes, and their intervals, are signed. */
export function columnFormat(name: string, values: Iterable<number>): ColumnFormat {
  const suffix = /_(ns|pct|bytes|gbps)$/.exec(name)?.[1] ?? "";
  const text = (value: number, plain = significant(value)) =>
    /^(change|low|high)_/.test(name) ? signed(value, plain) : plain;
  const heading = (suffix ? name.slice(0, -suffix.length - 1) : name).replaceAll("_", " ");
  if (suffix === "ns") {
    const unit = timeUnit(values);
    return {
      heading,
      unit: unit.name,
      cell: (value) => text(value / unit.scale),
      title: (value) => exact(value, "ns"),
    };
  }
  const unit = { pct: "%", bytes: "B", gbps: "GB/s", "": "" }[suffix] ?? "";
  const whole = suffix === "" || suffix === "bytes";
  return {
    heading,
    unit,
    cell: (value) => text(value, whole && Number.isInteger(value) ? exact(value, "") : undefined),
    title: (value) => exact(value, unit),
  };
}
