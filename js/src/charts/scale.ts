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
