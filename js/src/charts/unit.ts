// The unit in which the numbers of a column read best, by the suffix of its name.

import { exact, significant, timeUnit, type Unit } from "../format";

const BYTES = [
  ["TiB", 1024 ** 4],
  ["GiB", 1024 ** 3],
  ["MiB", 1024 ** 2],
  ["KiB", 1024],
] as const;
const RATES = [
  ["GB/s", 1],
  ["MB/s", 1e-3],
  ["kB/s", 1e-6],
] as const;
const LARGE = [
  ["T", 1e12],
  ["G", 1e9],
  ["M", 1e6],
] as const;

export interface Scale extends Unit {
  /** three significant digits and the unit */
  text(value: number): string;
  /** all digits and the stored unit */
  exact(value: number): string;
}

export function unitOf(column: string, values: Iterable<number>): Scale {
  const suffix = /(?:^|_)(ns|pct|bytes|gbps|flops)$/.exec(column)?.[1] ?? "";
  const stored = { ns: "ns", pct: "%", bytes: "B", gbps: "GB/s", flops: "FLOP" }[suffix] ?? "";
  const unit = best(suffix, stored, values);
  return {
    ...unit,
    text: (value) =>
      stored || !Number.isInteger(value)
        ? `${significant(value / unit.scale)} ${unit.name}`.trimEnd()
        : exact(value, ""),
    exact: (value) => exact(value, stored),
  };
}

/** "caused_wait_ns" -> "caused wait" */
export function inWords(column: string): string {
  return column.replace(/_(ns|pct|bytes|gbps|flops)$/, "").replaceAll("_", " ");
}

function best(suffix: string, stored: string, values: Iterable<number>): Unit {
  if (suffix === "ns") return timeUnit(values);
  let largest = 0;
  for (const value of values) if (Math.abs(value) > largest) largest = Math.abs(value);
  if (suffix === "bytes") {
    const [name, scale] = BYTES.find(([, size]) => largest >= size) ?? ["B", 1];
    return { name, scale };
  }
  if (suffix === "gbps") {
    const [name, scale] = RATES.find(([, size]) => largest >= size) ?? RATES[0];
    return { name, scale };
  }
  if (suffix === "flops") {
    const [prefix, scale] = LARGE.find(([, size]) => largest >= size) ?? ["", 1];
    return { name: `${prefix}FLOP`, scale };
  }
  return { name: stored, scale: 1 };
}
