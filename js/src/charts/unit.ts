// The unit in which the numbers of a column read best, by the suffix of its name.

import { amount, exact, quantityOf, storedUnit, type Unit, unitFor } from "../format";

export interface Scale extends Unit {
  /** three significant digits and the unit */
  text(value: number): string;
  /** all digits and the stored unit */
  exact(value: number): string;
}

export function unitOf(column: string, values: Iterable<number>): Scale {
  const quantity = quantityOf(column);
  const unit = unitFor(quantity, values);
  return {
    ...unit,
    text: (value) => amount(value, quantity, unit),
    exact: (value) => exact(value, storedUnit(quantity).name),
  };
}

/** "caused_wait_ns" -> "caused wait"; "mfu_reading" (exact, about, at least) -> "how well MFU is known" */
export function inWords(column: string): string {
  const known = /^(.+)_reading$/.exec(column)?.[1];
  if (known) return `how well ${known.toUpperCase()} is known`;
  return column.replace(/_(ns|pct|bytes|gbps|flops)$/, "").replaceAll("_", " ");
}
