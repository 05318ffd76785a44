// What charts ask of lists of numbers.

const SLACK = 1e-9; // of a step: a bound that is a multiple but for rounding counts as one

/** The greatest number; undefined if there is none. */
export function max(values: Iterable<number | undefined>): number | undefined {
  let most: number | undefined;
  for (const value of values) if (value !== undefined && value >= (most ?? value)) most = value;
  return most;
}

/** The least number; undefined if there is none. */
export function min(values: Iterable<number | undefined>): number | undefined {
  let least: number | undefined;
  for (const value of values) if (value !== undefined && value <= (least ?? value)) least = value;
  return least;
}

/** How many of the ascending values are not above `value`. */
export function bisectRight(values: ArrayLike<number>, value: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] as number) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** About `count` round numbers from `low` to `high`: multiples of 1, 2 or 5 times a power of ten. */
export function ticks(low: number, high: number, count: number): number[] {
  const apart = (high - low) / count;
  if (!(apart > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(apart));
  const square = (apart / power) ** 2; // the nearest by ratio: steps meet at the roots of 1 * 2, 2 * 5 and 5 * 10
  const step = power * (square < 2 ? 1 : square < 10 ? 2 : square < 50 ? 5 : 10);
  const [first, last] = [Math.ceil(low / step - SLACK), Math.floor(high / step + SLACK)];
  // 3 * 0.1 is 0.30000000000000004
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(15)));
}
