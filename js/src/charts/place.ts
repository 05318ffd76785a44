// Labels beside marks, so that none covers another: the first that ask get the best place, the last may get none.

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A point with the radius of what is drawn there, and the width of its label. */
export interface Labelled {
  x: number;
  y: number;
  r: number;
  width: number;
}

export const LINE = 13;
const GAP = 3;
const CHARACTER = 6.2; // px, on average
const CAPITAL = 1.7; // by which a capital is wider

/** About how wide a label is. */
export function textWidth(text: string): number {
  return Math.ceil(CHARACTER * text.length + CAPITAL * text.replace(/[^A-Z_]/g, "").length);
}

/** The box of each label, or null where there is no room: within the area, apart from each other and from `taken`. */
export function placeLabels(
  items: readonly Labelled[],
  taken: readonly Box[],
  area: Pick<Box, "width" | "height">,
): (Box | null)[] {
  const occupied = [...taken];
  return items.map(({ x, y, r, width }) => {
    const [right, left, middle] = [x + r + GAP, x - r - GAP - width, x - width / 2];
    const [level, above, below] = [y - LINE / 2, y - r - GAP - LINE, y + r + GAP];
    const places: [number, number][] = [
      [right, level],
      [left, level],
      [middle, above],
      [middle, below],
      [right, above],
      [right, below],
      [left, above],
      [left, below],
    ];
    for (const [at, top] of places) {
      const box = { x: at, y: top, width, height: LINE };
      if (!within(box, area) || occupied.some((other) => overlap(box, other))) continue;
      occupied.push(box);
      return box;
    }
    return null;
  });
}

export function overlap(a: Box, b: Box): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

function within(box: Box, area: Pick<Box, "width" | "height">): boolean {
  return box.x >= 0 && box.y >= 0 && box.x + box.width <= area.width && box.y + box.height <= area.height;
}
