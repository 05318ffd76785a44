// The time axis: where ticks go and how times read.

import { fixed, timeUnit } from "../format";

/** The smallest of 1, 2, 5 times a power of ten that is not below `step` (and not below 1 ns). */
export function niceStep(step: number): number {
  if (!(step > 1)) return 1;
  const power = 10 ** Math.floor(Math.log10(step));
  for (const factor of [1, 2, 5]) if (factor * power >= step * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

/** Multiples of a nice step inside [t0, t1], about `count` of them. */
export function ticks(t0: number, t1: number, count: number): { step: number; values: number[] } {
  const step = niceStep((t1 - t0) / Math.max(count, 1));
  const values: number[] = [];
  for (let k = Math.ceil(t0 / step); k * step <= t1; k++) values.push(k * step + 0); // -0 becomes 0
  return { step, values };
}

/** A tick's text: in the unit of the step's neighbourhood, with as many decimals as distinguish neighbours. */
export function tickText(value: number, step: number): string {
  const unit = timeUnit(Math.max(Math.abs(value), step));
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / unit.scale) - 1e-9));
  return `${fixed(value / unit.scale, Math.min(decimals, 9))} ${unit.name}`;
}
