// Which rows stand where: one row per lane, under a header per group and a label per track.

import type { Counter } from "./counters";
import { ALL_LANES, isPinned, isShown, type LaneChoice } from "./lane_choice";
import { grouped, labelOf, ordered } from "./lane_groups";
import type { Outline, TrackInfo } from "./types";

const STREAM_HEIGHT = 22;
export const ROW_HEIGHT = 14;
const FOLDED_HEIGHT = 2;
export const HEADER_HEIGHT = 20;
const COUNTER_HEIGHT = 30;
const TRACK_GAP = 6;
/** Fewer folded frames than this are not worth a fold. */
const LEAST_FOLDED = 4;

export interface Row {
  lane: number;
  y: number;
  h: number;
  rank: number;
}

export interface Header {
  text: string;
  /** whose iterations are marked where this group comes first */
  rank: number;
  y: number;
  /** below the last row of the group */
  bottom: number;
  collapsed: boolean;
}

/** Where all rows are of one rank. */
export interface Stretch {
  rank: number;
  y: number;
  bottom: number;
}

export interface TrackLabel {
  text: string;
  track: TrackInfo;
  /** tracks that share its header; of those at the top: that they do */
  group: readonly TrackInfo[];
  y: number;
  h: number;
  /** outermost lanes that hold next to nothing but one long frame each */
  foldable: number;
  folded: boolean;
}

export interface CounterRow {
  counter: Counter;
  y: number;
  h: number;
}

export interface Layout {
  rows: Row[];
  counters: CounterRow[];
  headers: Header[];
  tracks: TrackLabel[];
  stretches: Stretch[];
  height: number;
  /** height of what stays at the top while the rest scrolls; its rows and labels come first */
  pinned: number;
}

export interface Folding {
  /** headers of groups whose lanes are out of sight */
  collapsed: ReadonlySet<string>;
  /** first lanes of the tracks whose outer frames are shown in full */
  unfolded: ReadonlySet<number>;
}

/**
 * Rows of the chosen ranks in their order (all if none is chosen), below those that are pinned.
 *
 * A counter stands under the lanes of its stream, one of a whole rank under those of its device.
 */
export function arrange(
  outline: Outline,
  ranks: readonly number[],
  folding: Folding,
  { filter, pinned, groups: by, order }: LaneChoice = ALL_LANES,
  counters: readonly Counter[] = [],
): Layout {
  const layout: Layout = {
    rows: [],
    counters: [],
    headers: [],
    tracks: [],
    stretches: [],
    height: 0,
    pinned: 0,
  };
  let y = 0;
  const count = (chosen: (counter: Counter) => boolean) => {
    for (const counter of counters.filter(chosen)) {
      layout.counters.push({ counter, y, h: COUNTER_HEIGHT });
      y += COUNTER_HEIGHT + TRACK_GAP;
    }
  };
  const place = (track: TrackInfo, text: string, group: readonly TrackInfo[]) => {
    const foldable = foldableLanes(track);
    const folded = foldable > 0 && !folding.unfolded.has(track.first);
    const top = y;
    track.sizes.forEach((_, depth) => {
      const h =
        folded && depth < foldable ? FOLDED_HEIGHT : track.kind === "stream" ? STREAM_HEIGHT : ROW_HEIGHT;
      layout.rows.push({ lane: track.first + depth, y, h, rank: track.rank });
      y += h;
    });
    y = Math.max(y, top + ROW_HEIGHT);
    layout.tracks.push({ text, track, group, y: top, h: y - top, foldable, folded });
    y += TRACK_GAP;
    count(({ lane }) => lane === track.first);
  };
  const ofRank = (track: TrackInfo) => `${labelOf(outline, track)} · ${track.label}`;
  const top = ordered(
    outline.tracks.filter((track) => isPinned(track, pinned)),
    order,
  );
  for (const track of top) place(track, `▴ ${ofRank(track)}`, top);
  layout.pinned = y;
  const at = new Map(ranks.map((rank, i) => [rank, i]));
  const shown = outline.tracks
    .filter(
      (track) =>
        (ranks.length === 0 || at.has(track.rank)) &&
        !isPinned(track, pinned) &&
        isShown(outline, track, filter),
    )
    .sort((a, b) => (at.get(a.rank) ?? 0) - (at.get(b.rank) ?? 0));
  const groups = grouped(outline, shown, by, order);
  const anchors = filter.trim() ? new Set() : countedBelow(groups.flatMap(({ tracks }) => tracks));
  for (const { text, tracks } of groups) {
    const collapsed = folding.collapsed.has(text);
    const header = { text, rank: (tracks[0] as TrackInfo).rank, y, bottom: 0, collapsed };
    layout.headers.push(header);
    layout.stretches.push({ rank: header.rank, y, bottom: 0 });
    y += HEADER_HEIGHT;
    for (const track of collapsed ? [] : tracks) {
      if (track.rank !== layout.stretches.at(-1)?.rank) {
        end(layout, y);
        layout.stretches.push({ rank: track.rank, y, bottom: 0 });
      }
      place(track, by === "lane" ? ofRank(track) : track.label, tracks);
      if (anchors.has(track)) count((counter) => counter.rank === track.rank && counter.lane < 0);
    }
    header.bottom = y;
    end(layout, y);
  }
  layout.height = y;
  return layout;
}

function end({ stretches }: Layout, y: number): void {
  (stretches.at(-1) as Stretch).bottom = y;
}

/** Of each rank the track below which its counters stand: the last of its device, where it has one. */
function countedBelow(tracks: readonly TrackInfo[]): Set<unknown> {
  const onDevice = ({ kind }: TrackInfo) => kind === "stream" || kind === "sync";
  const anchors = new Map<number, TrackInfo>();
  for (const track of tracks) if (!anchors.has(track.rank) || onDevice(track)) anchors.set(track.rank, track);
  return new Set(anchors.values());
}

/** The layout at a scroll position: what is pinned moves along, and covers the rows that it meets. */
export function scrolled(layout: Layout, scroll: number): Layout {
  const { pinned } = layout;
  if (pinned === 0 || scroll === 0) return layout;
  const moved = <T extends { y: number }>(items: readonly T[]): T[] => [
    ...items.filter(({ y }) => y < pinned).map((item) => ({ ...item, y: item.y + scroll })),
    ...items.filter(({ y }) => y >= pinned + scroll),
  ];
  return {
    ...layout,
    rows: moved(layout.rows),
    counters: moved(layout.counters),
    tracks: moved(layout.tracks),
  };
}

/**
 * How far below the axis a group's header stands, null where nothing of it shows.
 *
 * It stays below what is pinned while lanes of its group scroll past, until the next header pushes it away.
 */
export function headerTop({ pinned }: Layout, { y, bottom }: Header, scroll: number): number | null {
  const top = Math.min(Math.max(y - scroll, pinned), bottom - HEADER_HEIGHT - scroll);
  return top > pinned - HEADER_HEIGHT ? top : null;
}

/** Leading lanes of a call stack with hardly any slices (main, run, loop, ...) compared with what they call. */
function foldableLanes(track: TrackInfo): number {
  if (track.kind !== "thread") return 0;
  const busiest = Math.max(...track.sizes);
  let n = 0;
  while (n < track.sizes.length && (track.sizes[n] as number) <= Math.min(3, busiest * 0.02)) n++;
  return n >= LEAST_FOLDED ? n : 0;
}

/** Rows that show between two heights; rows are sorted by y and do not overlap. */
export function rowsBetween(rows: readonly Row[], top: number, bottom: number): Row[] {
  return rows.slice(
    firstBelow(rows, top),
    firstBelow(rows, bottom, (row) => row.y),
  );
}

export function rowAt(rows: readonly Row[], y: number): Row | null {
  const row = rows[firstBelow(rows, y)];
  return row && row.y <= y ? row : null;
}

function firstBelow(rows: readonly Row[], y: number, edge = (row: Row) => row.y + row.h - 1e-6): number {
  let lo = 0;
  let hi = rows.length;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (edge(rows[mid] as Row) < y) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}
