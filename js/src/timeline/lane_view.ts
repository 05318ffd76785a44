// Which lanes are on display and how far they are scrolled.

import type { Counter } from "./counters";
import type { Hit } from "./hit";
import { ALL_LANES, type LaneChoice, type TrackName } from "./lane_choice";
import { groupOf, reordered } from "./lane_groups";
import { arrange, HEADER_HEIGHT, type Layout, scrolled, type TrackLabel } from "./layout";
import { trackOf } from "./tooltip";
import type { Outline, TrackInfo } from "./types";

/** Room that is left around a lane that was scrolled to. */
const MARGIN = 4;

type Wanted = (track: TrackInfo) => boolean;

export class LaneView {
  /** where everything stands at this scroll position */
  layout: Layout;
  scroll = 0;
  ranks: readonly number[] = [];
  #wanted: Wanted = () => true;
  #choice: LaneChoice = ALL_LANES;
  #counters: readonly Counter[] = [];
  /** where everything stands before scrolling */
  #whole: Layout;
  #collapsed = new Set<string>();
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

  /** Show the lanes of these ranks, or of all if there are none; of their tracks those that are wanted. */
  show(ranks: readonly number[], wanted: Wanted = () => true): void {
    this.ranks = ranks;
    this.#wanted = wanted;
    this.#arrange();
  }

  /** Collapse or unfold what was hit; false if it is neither a header nor a fold. */
  toggle(found: Hit): boolean {
    if (found.on === "header") toggle(this.#collapsed, found.group);
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
    const group = track && groupOf(this.outline, track, this.#choice.groups);
    if (group && this.#collapsed.delete(group)) this.#arrange();
    const row = this.#whole.rows.find((r) => r.lane === lane);
    const { pinned } = this.#whole;
    if (!row || row.y < pinned) return;
    const covered = pinned + HEADER_HEIGHT;
    const below = row.y + row.h - this.scroll - this.room();
    if (row.y < this.scroll + covered) this.scrollBy(row.y - this.scroll - covered - MARGIN);
    else if (below > 0) this.scrollBy(below + MARGIN);
  }

  /** Where a track would stand that is let go at this height below the axis: the height there, and the order then. */
  movedTo(track: TrackInfo, y: number): { y: number; order: TrackName[] } | null {
    const group = this.#groupOf(track);
    const last = group.at(-1);
    if (!last) return null;
    const scroll = last.y < this.#whole.pinned ? 0 : this.scroll;
    const at = group.findIndex((one) => one.y + one.h / 2 > y + scroll);
    const here = at < 0 ? undefined : group[at];
    const before = here?.track === track ? group[at + 1] : here;
    return {
      y: (here ? here.y : last.y + last.h) - scroll,
      order: this.#reordered(group, track, before?.track),
    };
  }

  /** The order in which a track stands one place further up or down; null where it is at that end. */
  movedBy(track: TrackInfo, step: 1 | -1): TrackName[] | null {
    const group = this.#groupOf(track);
    const to = group.findIndex((one) => one.track === track) + step;
    if (to < 0 || to >= group.length) return null;
    return this.#reordered(group, track, group[step > 0 ? to + 1 : to]?.track);
  }

  /** What is shown of the group that a track stands in. */
  #groupOf(track: TrackInfo): TrackLabel[] {
    const group = this.#whole.tracks.find((one) => one.track === track)?.group;
    return this.#whole.tracks.filter((one) => one.group === group);
  }

  #reordered(group: readonly TrackLabel[], track: TrackInfo, before: TrackInfo | undefined): TrackName[] {
    const tracks = group.map((one) => one.track);
    return reordered(this.#choice.order, tracks, track, before);
  }

  #arrange(): void {
    this.#whole = this.#arranged();
    this.layout = scrolled(this.#whole, this.scroll);
    this.scrollBy(0);
    this.changed();
  }

  #arranged(): Layout {
    const folding = { collapsed: this.#collapsed, unfolded: this.#unfolded };
    const outline = { ...this.outline, tracks: this.outline.tracks.filter(this.#wanted) };
    return arrange(outline, this.ranks, folding, this.#choice, this.#counters);
  }
}

function toggle<T>(set: Set<T>, value: T): void {
  if (!set.delete(value)) set.add(value);
}
