// Many ranks in few rows: runs of neighbours are one row, and the ranks to look at first have rows of their own.

import type { Rank } from "./ranks";

export interface Bin {
  key: string;
  /** in order */
  ranks: readonly number[];
  label: string;
  /** one of the ranks to look at first, above the others */
  pinned: boolean;
}

/** So many ranks have a row each; more share this many rows. */
export const SINGLE = 64;
export const MOST_ROWS = 32;

/** A row for each rank; where they are many, pinned ranks and then runs of neighbours, all of them. */
export function binned(ranks: readonly Rank[], pinned: readonly number[], numbered: boolean): Bin[] {
  const single = (rank: Rank, above: boolean): Bin => ({
    key: `${above ? "pinned" : "rank"} ${rank.rank}`,
    ranks: [rank.rank],
    label: rank.label,
    pinned: above,
  });
  if (ranks.length <= SINGLE) return ranks.map((rank) => single(rank, false));
  const size = Math.ceil(ranks.length / MOST_ROWS);
  const bins = ranks.filter(({ rank }) => pinned.includes(rank)).map((rank) => single(rank, true));
  for (let at = 0; at < ranks.length; ) {
    const run = numbered ? ranks.slice(at, at + size) : runOf(ranks, at, size);
    const label = numbered ? `#${at + 1}–${at + run.length}` : range(run);
    bins.push({ key: `run ${run[0]?.rank}`, ranks: run.map(({ rank }) => rank), label, pinned: false });
    at += run.length;
  }
  return bins;
}

/** So many ranks from `at` on, as far as they are of one stage. */
function runOf(ranks: readonly Rank[], at: number, size: number): Rank[] {
  const run = ranks.slice(at, at + size);
  const other = run.findIndex(({ stage }) => !Object.is(stage, run[0]?.stage));
  return other < 0 ? run : run.slice(0, other);
}

/** `32–63`; `0 … 12` where numbers between them are missing. */
function range(run: readonly Rank[]): string {
  const [first, last] = [run[0] as Rank, run.at(-1) as Rank];
  if (run.length === 1) return first.label;
  const follow = run.every(({ rank }, i) => rank === first.rank + i);
  return follow ? `${first.label}–${last.label}` : `${first.label} … ${last.label}`;
}

/** What a cell of a picture says of several ranks. */
export interface Cell {
  /** of one rank, on average */
  mean: number;
  most: number;
  /** the rank with the most */
  who: number;
  count: number;
}

/** The mean and the most of some ranks' values; null where none has one. */
export function cellOf(ranks: readonly number[], value: (rank: number) => number): Cell | null {
  const cell: Cell = { mean: 0, most: Number.NEGATIVE_INFINITY, who: -1, count: 0 };
  let sum = 0;
  for (const rank of ranks) {
    const own = value(rank);
    if (Number.isNaN(own)) continue;
    cell.count += 1;
    sum += own;
    if (own > cell.most) {
      cell.most = own;
      cell.who = rank;
    }
  }
  cell.mean = sum / cell.count;
  return cell.count ? cell : null;
}
