// Positions of numbers on an axis. (d3-scale would bring colours, dates and interpolation along.)

export interface Scale {
  (value: number): number;
  invert(at: number): number;
}

/** From [low, high] to [0, length]. */
export function linear(low: number, high: number, length: number): Scale {
  const span = high - low || 1;
  return Object.assign((value: number) => ((value - low) / span) * length, {
    invert: (at: number) => low + (at / length) * span,
  });
}

/** As `linear`, on a logarithmic axis; both ends are positive. */
export function logarithmic(low: number, high: number, length: number): Scale {
  const over = linear(Math.log(low), Math.log(high), length);
  return Object.assign((value: number) => over(Math.log(value)), {
    invert: (at: number) => Math.exp(over.invert(at)),
  });
}

/** Powers of ten between the two; 1, 2, 5 times them where there is but one; else the two themselves. */
export function decades(low: number, high: number): number[] {
  const powers: number[] = [];
  for (let at = 10 ** Math.floor(Math.log10(low)); at <= high; at *= 10) powers.push(at);
  const within = (all: number[]) => all.filter((at) => at >= low && at <= high);
  const tens = within(powers);
  if (tens.length > 1) return tens;
  const round = within(powers.flatMap((at) => [at, 2 * at, 5 * at]));
  return round.length > 1 ? round : [low, high];
}

export interface LogTick {
  value: number;
  /** a number stands there; the others are lines only */
  labelled: boolean;
}

const APART = 26; // px: the least distance of numbers

/** Lines at 1 to 9 times each power of ten, the round ones with numbers as far as there is room. */
export function logTicks(low: number, high: number, length: number): LogTick[] {
  const decade = length / Math.log10(high / low);
  const fine = decade * Math.log10(2) >= APART;
  const every = Math.max(1, Math.ceil(APART / decade)); // of the powers of ten
  const found: LogTick[] = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
    for (let digit = 1; digit <= 9; digit++) {
      const value = Number(`${digit}e${power}`); // 3 * 0.1 is 0.30000000000000004
      if (value < low || value > high || (digit > 1 && decade < APART)) continue;
      const labelled = digit === 1 ? power % every === 0 : fine && (digit === 2 || digit === 5);
      found.push({ value, labelled });
    }
  }
  return found;
}
