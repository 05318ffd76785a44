// What clicking a mark does to the selection.

import type { Signal } from "@preact/signals";
import { type Keys, pick } from "../shared";

export type Window = [number, number] | null;

export interface Selecting {
  ranks: Signal<number[]>;
  iterations: Signal<number[]>;
  window: Signal<Window>;
  names: Signal<string[]>;
}

/** All of `names` if one of them was missing, else none of them. */
export function toggled(selected: readonly string[], names: readonly string[]): string[] {
  const all = names.every((name) => selected.includes(name));
  const others = selected.filter((name) => !names.includes(name));
  return all ? others : [...others, ...names].sort();
}

export function pickRank(selecting: Selecting, all: readonly number[], rank: number, keys: Keys): void {
  selecting.ranks.value = pick(all, selecting.ranks.value, rank, null, keys);
}

/** This window, or all time if it was this one. */
export function pickWindow(selecting: Selecting, start: number, end: number): void {
  const now = selecting.window.value;
  selecting.window.value = now && now[0] === start && now[1] === end ? null : [start, end];
}
