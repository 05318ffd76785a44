// What a brush makes of the selection: nothing is everything, and the same area again is nothing.

/** Ascending and each once; none where it is all there is. */
export function picked(values: readonly number[], all: readonly number[]): number[] {
  const some = [...new Set(values)].sort((a, b) => a - b);
  return some.length === new Set(all).size ? [] : some;
}

export function samePick(selected: readonly number[], some: readonly number[]): boolean {
  return selected.length === some.length && some.every((value, at) => selected[at] === value);
}
