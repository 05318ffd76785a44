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

/** "caused_wait_ns" -> "caused wait" */
export function inWords(column: string): string {
  return column.replace(/_(ns|pct|bytes|gbps|flops)$/, "").replaceAll("_", " ");
}
