// Which tracks are shown, and which stay at the top: chosen by what their names hold, and one by one; and where.
//
// hta_widgets/timeline/lane_choice.py has the same rule.

import { type Grouping, labelOf } from "./lane_groups";
import type { Outline, TrackInfo } from "./types";

/** A track as Python names it. */
export type TrackName = [rank: number, label: string];

export interface LaneChoice {
  /** what a track's rank, kind and label must hold, or, after a minus, must not; commas in between */
  filter: string;
  pinned: readonly TrackName[];
  groups: Grouping;
  /** tracks that come first in their group, in this order */
  order: readonly TrackName[];
}

export const ALL_LANES: LaneChoice = { filter: "", pinned: [], groups: "rank", order: [] };

/** The filter that hides a track, too. */
export function hiding(outline: Outline, track: TrackInfo, filter: string): string {
  return [filter.trim(), `-${textOf(outline, track)}`].filter(Boolean).join(", ");
}

/** What the filter looks at; a comma in a name would end a phrase. */
function textOf(outline: Outline, track: TrackInfo): string {
  return `rank ${labelOf(outline, track)} ${track.kind} ${track.label}`.toLowerCase().replaceAll(",", " ");
}

export function isShown(outline: Outline, track: TrackInfo, filter: string): boolean {
  const text = textOf(outline, track);
  return phrases(filter).every((phrase) =>
    phrase.length > 1 && phrase.startsWith("-") ? !holds(text, phrase.slice(1).trim()) : holds(text, phrase),
  );
}

function phrases(filter: string): string[] {
  return filter
    .toLowerCase()
    .split(",")
    .map((phrase) => phrase.trim());
}

/** Whether the phrase occurs, and not as a part of a longer number: `stream 2` is not in `stream 20`. */
function holds(text: string, phrase: string): boolean {
  const digit = (at: number) => /[0-9]/.test(text[at] ?? "");
  for (let at = text.indexOf(phrase); at >= 0; at = text.indexOf(phrase, at + 1)) {
    const end = at + phrase.length;
    if (!(digit(at) && digit(at - 1)) && !(digit(end - 1) && digit(end))) return true;
  }
  return false;
}

export function isPinned(track: TrackInfo, pinned: readonly TrackName[]): boolean {
  return pinned.some(([rank, label]) => rank === track.rank && label === track.label);
}
