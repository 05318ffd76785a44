// Which lanes are on display and how far they are scrolled.

import type { Counter } from "./counters";
import type { Hit } from "./hit";
import { ALL_LANES, type LaneChoice } from "./lane_choice";
import { arrange, HEADER_HEIGHT, type Layout, scrolled } from "./layout";
import { trackOf } from "./tooltip";
import type { Outline } from "./types";

/** Room that is left around a lane that was scrolled to. */
const MARGIN = 4;

export class LaneView {
  /** where everything stands at this scroll position */
  layout: Layout;
  scroll = 0;
  ranks: readonly number[] = [];
  #choice: LaneChoice = ALL_LANES;
  #counters: readonly Counter[] = [];
  /** where everything stands before scrolling */
  #whole: Layout;
  #collapsed = new Set<number>();
  #unfolded = new Set<number>();

  constructor(
    private readonly outline: Outline,
    /** height that the lanes have on the screen */
    private readonly room: () => number,
    private readonly changed: () => void,
  ) {
    this.#whole = this.layout = this.#arranged();
  }

  /** Show tracks by words, and pin some. */
  choose(choice: LaneChoice): void {
    this.#choice = choice;
    this.#arrange();
  }

  /** Draw these counters under the lanes. */
  count(counters: readonly Counter[]): void {
    this.#counters = counters;
    this.#arrange();
  }

  /** Show the lanes of these ranks, or of all if there are none. */
  show(ranks: readonly number[]): void {
    this.ranks = ranks;
    this.#arrange();
  }

  /** Collapse or unfold what was hit; false if it is neither a header nor a fold. */
  toggle(found: Hit): boolean {
    if (found.on === "header") toggle(this.#collapsed, found.rank);
    else if (found.on === "fold") toggle(this.#unfolded, found.lane);
    else return false;
    this.#arrange();
    return true;
  }

  /** Scroll the lanes; false if they stand at that end already. */
  scrollBy(dy: number): boolean {
    const furthest = Math.max(0, this.layout.height - this.room());
    const next = Math.min(Math.max(this.scroll + dy, 0), furthest);
    if (next === this.scroll) return false;
    this.scroll = next;
    this.layout = scrolled(this.#whole, next);
    this.changed();
    return true;
  }

  /** Scroll to a lane, which may be collapsed. */
  reveal(lane: number): void {
    const track = trackOf(this.outline, lane);
    if (track && this.#collapsed.delete(track.rank)) this.#arrange();
    const row = this.#whole.rows.find((r) => r.lane === lane);
    const { pinned } = this.#whole;
    if (!row || row.y < pinned) return;
    const covered = pinned + HEADER_HEIGHT;
    const below = row.y + row.h - this.scroll - this.room();
    if (row.y < this.scroll + covered) this.scrollBy(row.y - this.scroll - covered - MARGIN);
    else if (below > 0) this.scrollBy(below + MARGIN);
  }

  #arrange(): void {
    this.#whole = this.#arranged();
    this.layout = scrolled(this.#whole, this.scroll);
    this.scrollBy(0);
    this.changed();
  }

  #arranged(): Layout {
    const folding = { collapsedRanks: this.#collapsed, unfolded: this.#unfolded };
    return arrange(this.outline, this.ranks, folding, this.#choice, this.#counters);
  }
}

function toggle<T>(set: Set<T>, value: T): void {
  if (!set.delete(value)) set.add(value);
}
