// Lines of equal value over a square grid, straight between neighbours.

export type Point = [x: number, y: number];

export interface Grid {
  /** the values, column after column: a column is what shares the first coordinate */
  values: readonly number[];
  /** values of a column, and columns */
  size: number;
  /** where a place of the grid is drawn; its coordinates may lie between those of values */
  place(column: number, row: number): Point;
}

export interface Contour {
  level: number;
  /** a path around where the value is at most the level */
  area: string;
  lines: [Point, Point][];
}

const CORNERS = [
  [0, 0],
  [1, 0],
  [1, 1],
  [0, 1],
] as const; // prettier-ignore

export function contour({ values, size, place }: Grid, level: number): Contour {
  const value = (column: number, row: number) => values[column * size + row] as number;
  const lines: [Point, Point][] = [];
  let area = "";
  for (let column = 0; column + 1 < size; column++) {
    for (let row = 0; row + 1 < size; row++) {
      const corners = CORNERS.map(([dx, dy]) => [column + dx, row + dy] as const);
      const around: Point[] = [];
      const crossings: { at: Point; leaves: boolean }[] = [];
      for (const [i, [x, y]] of corners.entries()) {
        const [nextX, nextY] = corners[(i + 1) % corners.length] as readonly [number, number];
        const [here, there] = [value(x, y), value(nextX, nextY)];
        if (here <= level) around.push(place(x, y));
        if (here <= level === there <= level) continue;
        const share = (level - here) / (there - here);
        const at = place(x + share * (nextX - x), y + share * (nextY - y));
        around.push(at);
        crossings.push({ at, leaves: here <= level });
      }
      if (around.length) area += `M${around.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}Z`;
      for (const [i, { at, leaves }] of crossings.entries())
        if (leaves) lines.push([at, crossings[(i + 1) % crossings.length]?.at as Point]);
    }
  }
  return { level, area, lines };
}

/** Round levels between the least and the greatest value, at most so many. */
export function levels(values: readonly number[], most: number, least: number): number[] {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const wanted = Math.max((high - low) / most, least);
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = power * ([1, 2, 5].find((digit) => digit * power >= wanted) ?? 10);
  const found: number[] = [];
  for (let level = step * (Math.floor(low / step) + 1); level < high; level += step) found.push(level);
  return found;
}
