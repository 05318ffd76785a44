// Where each rank's cell stands in the grid: a line for each stage, replica or node, or lines of equally many.

import type { Order, Rank } from "./ranks";

export interface Line {
  /** first row of the grid that it takes, from 0 */
  row: number;
  rows: number;
  label: string;
}

export interface Places {
  columns: number;
  lines: Line[];
  /** row and column by rank, from 0 */
  at: ReadonlyMap<number, readonly [number, number]>;
  /** there is room for the ranks' names */
  named: boolean;
}

const NAMED = { most: 128, width: 40 };
const SMALLEST = 11; // px, with the gap
const FULL = [64, 32, 16, 8, 4, 2, 1]; // per line, where nothing says how many: easy to count

const LINES = ["stage", "replica", "node"] as const;

export function placed(ranks: readonly Rank[], order: Order, width: number): Places {
  const named = ranks.length <= NAMED.most;
  const room = Math.max(1, Math.floor(width / (named ? NAMED.width : SMALLEST)));
  const groups = order === "place" ? grouped(ranks) : null;
  const largest = Math.max(1, ...(groups ?? [ranks]).map(({ length }) => length));
  const full = FULL.find((count) => count <= room) ?? 1;
  // rows of a group are as long as each other
  const columns = groups ? Math.ceil(largest / Math.ceil(largest / room)) : Math.min(largest, full);
  const at = new Map<number, readonly [number, number]>();
  const lines: Line[] = [];
  const told = groups !== null || !named; // cells with names need no others
  let row = 0;
  for (const group of groups ?? chunks(ranks, columns)) {
    const [first] = group;
    const rows = Math.ceil(group.length / columns);
    group.forEach(({ rank }, i) => {
      at.set(rank, [row + Math.floor(i / columns), i % columns]);
    });
    if (first && told)
      lines.push({ row, rows, label: labelOf(first, order, groups !== null, row * columns) });
    row += rows;
  }
  return { columns, lines, at, named };
}

function labelOf(first: Rank, order: Order, known: boolean, before: number): string {
  if (order === "measure") return `#${before + 1}`;
  if (!known) return first.label;
  const key = LINES.find((name) => !Number.isNaN(first[name])) ?? "node";
  return `${key} ${first[key]}`;
}

/** Ranks of one stage, else of one replica or one node, together; null where none is known of all. */
function grouped(ranks: readonly Rank[]): Rank[][] | null {
  for (const key of LINES) {
    if (ranks.length === 0 || ranks.some((rank) => Number.isNaN(rank[key]))) continue;
    const groups = new Map<number, Rank[]>();
    for (const rank of ranks) groups.set(rank[key], [...(groups.get(rank[key]) ?? []), rank]);
    return [...groups.values()];
  }
  return null;
}

function chunks(ranks: readonly Rank[], size: number): Rank[][] {
  return Array.from({ length: Math.ceil(ranks.length / size) }, (_, i) =>
    ranks.slice(i * size, (i + 1) * size),
  );
}
