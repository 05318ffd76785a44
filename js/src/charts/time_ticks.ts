// Round times for an axis.

import { exact, timeUnit, type Unit } from "../format";
import { ticks } from "./numbers";

/** The unit in which neighbouring times between the two differ visibly. */
export function unitOfTime(start: number, end: number): Unit {
  return timeUnit((end - start) / 2);
}

export function steps(start: number, end: number, unit: Unit, count: number) {
  const round = ticks(start / unit.scale, end / unit.scale, count);
  return round.map((value) => ({
    at: value * unit.scale,
    text: exact(value, unit.name),
  }));
}
