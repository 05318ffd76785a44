// The timeline itself: what is visible and what is marked. It knows nothing of widgets or kernels.

import { counted } from "../format";
import { consume } from "../page";
import { type Bands, bandsByRank, NO_BANDS } from "./bands";
import { BrushWords } from "./brush_words";
import { clampView, panBy, reveal, zoomAt } from "./camera";
import { counterAt, describeCounter } from "./counter_rows";
import type { Counter, Counters } from "./counters";
import { Flagging } from "./flagging";
import type { Flag } from "./flags";
import { Flash } from "./flash";
import { Focus } from "./focus";
import { type Place, TOP, timeAt, xOf } from "./frame";
import { Held } from "./held";
import { Highlight } from "./highlight";
import { hit } from "./hit";
import { Hover } from "./hover";
import { actionOf, HELP, heldActionOf } from "./keys";
import type { LaneChoice, TrackName } from "./lane_choice";
import { LaneView } from "./lane_view";
import { type Layout, rowAt } from "./layout";
import type { Found } from "./matches";
import { describeMeasured, measured } from "./measure";
import { act } from "./moves";
import { drawOverlay, type Extent, hasMarks, type Marked, type Marks } from "./overlay";
import { Picture } from "./picture";
import { bindPointer } from "./pointer";
import type { Ranking } from "./ranking";
import type { Gap, Source } from "./source";
import { Stage } from "./stage";
import { describeGap, type Facts, trackOf } from "./tooltip";
import { counterTip, gapLanes, type Pointed, tipFor, trackTip } from "./tooltip_content";
import type { IterationInfo, Outline, Slice, TrackInfo, View } from "./types";
import { describeWaits, type Waits } from "./waits";

/** Widths of the gutter: the usual one, and the most where there is little room. */
export const GUTTER = 172;
const NARROW_GUTTER = 96;
const NARROW = 560;
/** A slice is hit from this many pixels away. */
const REACH = 2.5;
/** What is gone to is shown with so much time on either side, as a share of its length. */
const APPROACH = 2;

export interface Listeners {
  /** it shows another time; `following`: because another timeline does */
  view(view: View, following: boolean): void;
  /** the pointer is at this time; null: elsewhere */
  pointed(t: number | null): void;
  window(window: [number, number] | null): void;
  focus(slice: Slice | null): void;
  /** an idle stretch was chosen: its lane, and when it begins */
  gap(lane: number, start: number): void;
  /** what is focused, in words; null for nothing */
  announce(facts: Facts | null): void;
  /** moments were flagged, or notes written, here */
  flags(flags: readonly Flag[]): void;
  /** a track was pinned, or unpinned, here */
  pin(track: TrackName): void;
  /** a track was hidden here */
  hide(track: TrackInfo): void;
  /** tracks were put in an order here */
  order(tracks: readonly TrackName[]): void;
  /** something of this rank is to be seen */
  wanted(rank: number): void;
  /** how many slices are chosen by name; null if no names are selected */
  found(found: Found | null): void;
}

export class Timeline {
  view: View;
  /** how far the view may go: the trace, or all that it is compared with */
  bounds: readonly [number, number];
  window: [number, number] | null = null;
  /** the idle stretch that was chosen last; a slice takes its place */
  gap: Extent | null = null;
  /** what is measured from */
  held: Slice | null = null;
  readonly hover: Hover;
  readonly focus: Focus;
  readonly highlight: Highlight;
  readonly flagging: Flagging;
  /** the lane under the pointer */
  #under: number | null = null;
  /** goes through the longest events and gaps, where a kernel ranks them */
  ranking: Ranking | null = null;
  #gutter = GUTTER;
  /** how far below the axis the lanes would stand that are being moved */
  #drop: number | null = null;
  #bands: ReadonlyMap<number, Bands>;
  #iterations: readonly number[] = [];
  #searched: readonly number[] = [];
  #flash: Flash;
  #place: Marked | null = null;
  #causeLanes: readonly number[] = [];
  /** the ranks that are shown when no place is */
  #shownRanks: readonly number[] = [];
  #held: Held;
  #brushWords: BrushWords;
  #lanes: LaneView;
  #stage: Stage;

  constructor(
    readonly el: HTMLElement,
    readonly outline: Outline,
    readonly source: Source,
    private readonly counters: Counters,
    private readonly waits: Waits,
    private readonly listeners: Listeners,
    private readonly signal: AbortSignal,
  ) {
    const room = () => this.#stage.size.height - TOP;
    this.#lanes = new LaneView(outline, room, () => this.#moved());
    this.bounds = outline.extent;
    this.view = clampView({ t0: outline.extent[0], t1: outline.extent[1] }, outline.extent);
    this.hover = new Hover(() => this.place, listeners.pointed);
    this.focus = new Focus(source, () => this.#focused());
    this.highlight = new Highlight(outline, source, () => this.#moved(), listeners.found);
    el.classList.add("hta-timeline");
    el.tabIndex = 0;
    el.setAttribute("role", "application");
    el.setAttribute("aria-label", `Timeline of ${counted(outline.n, "slice")}. ${HELP}`);
    this.flagging = new Flagging(this, listeners.flags, signal);
    this.#flash = new Flash(el, () => this.#stage.invalidateMarks(), signal);
    this.#brushWords = new BrushWords(outline, source, (facts) => listeners.announce(facts), signal);
    this.#bands = bandsByRank(outline.iterations);
    const picture = new Picture(outline, source, counters, this.#bands);
    this.#stage = new Stage(
      el,
      outline,
      {
        gutter: () => this.place.gutter,
        shownInGutter: () => [this.layout, this.#lanes.scroll],
        drawGutter: (context, palette) => picture.drawGutter(context, this.#scene(), palette),
        drawLanes: (context, palette) => {
          el.dataset.view = `${this.view.t0} ${this.view.t1}`; // what a reader sees now
          picture.drawLanes(context, this.#scene(), palette);
        },
        marked: () => hasMarks(this.#marks()),
        drawMarks: (context, palette) =>
          drawOverlay(context, this.place, this.layout, this.#marks(), palette),
        resized: () => this.scrollBy(0),
      },
      signal,
    );
    el.replaceChildren(
      ...this.#stage.canvases,
      this.hover.cursor.el,
      this.hover.tooltip.el,
      this.#brushWords.tooltip.el,
      this.flagging.el,
    );
    this.#held = new Held(el, signal);
    el.addEventListener("keydown", (event) => this.#key(event), { signal });
    bindPointer(this, signal);
    this.#stage.watch();
  }

  get layout(): Layout {
    return this.#lanes.layout;
  }

  get place(): Place {
    const { width, height } = this.#stage.size;
    const gutter = width < NARROW ? Math.min(NARROW_GUTTER, this.#gutter) : this.#gutter;
    return { view: this.view, gutter, width, height, scroll: this.#lanes.scroll };
  }

  /** Width of the lanes. */
  get pixels(): number {
    const { gutter, width } = this.place;
    return width - gutter;
  }

  /** What is drawn, as a data URL. */
  toUrl(): string {
    return this.#stage.toUrl();
  }

  /** Draw again: better data has come. */
  refresh(): void {
    this.#stage.invalidate();
  }

  look(view: View): void {
    this.#show(clampView(view, this.bounds), false);
  }

  /** Show what another timeline leads to. */
  follow(view: View): void {
    this.#show(view, true);
  }

  /** Draw the cursor of the timeline that leads this one. */
  point(t: number | null): void {
    this.hover.lead(t);
  }

  /** Light up a time for a moment. */
  flash(extent: readonly [number, number]): void {
    this.#flash.begin(extent);
  }

  /** Mark a place that shows a finding, with the lanes of these ranks alone; null marks none. */
  mark(place: Marked | null, ranks: readonly number[]): void {
    this.#place = place;
    const { tracks } = this.outline;
    const has = (rank: number, kind?: string) =>
      tracks.some((track) => track.rank === rank && track.kind === (kind ?? track.kind));
    const shown = ranks.filter((rank) => has(rank));
    this.#causeLanes = tracks
      .filter(({ rank }) => shown.includes(rank))
      .flatMap(({ first, sizes }) => sizes.map((_, depth) => first + depth));
    if (place && shown.length) {
      const because = this.#cause && trackOf(this.outline, this.#cause.lane);
      // of several ranks the host of those alone that record no device
      this.#lanes.show(
        shown,
        (track) =>
          track.kind === "stream" ||
          track === because ||
          (track.kind === "thread" && !(shown.length > 1 && has(track.rank, "stream"))),
      );
    } else this.#lanes.show(this.#shownRanks);
    if (place) {
      this.scrollBy(-this.#lanes.scroll);
      this.el.dataset.place = place.span.join(" ");
      this.el.dataset.ranks = shown.join(" ");
    } else for (const name of ["place", "ranks", "cause"]) delete this.el.dataset[name];
    this.#stage.invalidate();
  }

  /** The slice that causes what the marked place shows: the one that begins and ends with it. */
  get #cause(): Extent | null {
    const cause = this.#place?.cause;
    if (!cause) return null;
    const [start, end] = cause;
    const middle = (Math.max(start, this.view.t0) + Math.min(end, this.view.t1)) / 2;
    for (const lane of this.#causeLanes) {
      const slice = this.source.find(lane, middle, 0);
      if (slice?.start === start && slice.dur === end - start) return slice;
    }
    return null;
  }

  #shownCause(): Extent | null {
    const cause = this.#cause;
    if (cause) this.el.dataset.cause = `${cause.start} ${cause.start + cause.dur}`;
    return cause;
  }

  zoom(factor: number, at: number): void {
    this.look(zoomAt(this.view, factor, at, this.bounds));
  }

  panPixels(dx: number, dy: number): void {
    const ns = (dx * (this.view.t1 - this.view.t0)) / this.pixels;
    this.look(panBy(this.view, ns, this.bounds));
    this.scrollBy(dy);
  }

  /** Scroll the lanes; false if they stand at that end already. */
  scrollBy(dy: number): boolean {
    return this.#lanes.scrollBy(dy);
  }

  /** Select the time between two points, in either order; no time for the same twice. */
  brush(a: number, b: number): void {
    if (this.outline.replayed) {
      this.tellReplayed("select time");
      return;
    }
    const [from, to] = this.outline.extent;
    const inside = [a, b].map((t) => Math.round(Math.min(Math.max(t, from), to))).sort((x, y) => x - y);
    this.window = inside[0] === inside[1] ? null : (inside as [number, number]);
    this.#tellBrush();
    this.listeners.window(this.window);
    this.#stage.invalidateMarks();
  }

  #tellBrush(): void {
    const { place, window } = this;
    const { width, height } = place;
    const x = window ? Math.min(Math.max(xOf(place, window[1]), place.gutter), width) : 0;
    const lanes = this.layout.rows.map((row) => row.lane);
    this.#brushWords.tell(window, lanes, { x, width, height, colour: this.#stage.palette.accent });
  }

  /** What is known of the focused slice has changed. */
  retell(): void {
    this.#focused();
  }

  /** Say what cannot be done at replayed times. */
  tellReplayed(what: string): void {
    this.listeners.announce({ name: "These times are replayed", lines: [`${what} in the recorded view`] });
  }

  /** The window as others set it: show it, and move there if it is out of sight. */
  showWindow(window: readonly [number, number] | null): void {
    if (window?.[0] === this.window?.[0] && window?.[1] === this.window?.[1]) return;
    this.window = window && [window[0], window[1]];
    if (window) this.look(reveal(this.view, window[0], window[1], this.bounds));
    this.#stage.invalidateMarks();
  }

  /** Show the lanes of some ranks; what is searched for is searched on others. */
  showRanks(lanes: readonly number[], searched: readonly number[]): void {
    this.#shownRanks = lanes;
    if (!this.#place) this.#lanes.show(lanes);
    this.#searched = searched;
    void this.highlight.among(searched);
  }

  /** Show tracks by words, and keep some at the top. */
  showLanes(choice: LaneChoice): void {
    this.#lanes.choose(choice);
  }

  /** Give the names of lanes more room, or less. */
  widenGutter(width: number): void {
    this.#gutter = width;
    this.#stage.resize();
  }

  /** Draw these counters under the lanes. */
  showCounters(counters: readonly Counter[]): void {
    this.#lanes.count(counters);
  }

  /** Pin the track under the pointer, else that of the focused slice; unpin it where it is pinned. */
  pin(): void {
    const track = this.#track();
    if (track) this.listeners.pin([track.rank, track.label]);
  }

  /** Hide the track under the pointer, else that of the focused slice. */
  hide(): void {
    const track = this.#track();
    if (track) this.listeners.hide(track);
  }

  /** Move the track under the pointer, else that of the focused slice, one place up or down. */
  reorder(step: 1 | -1): void {
    const track = this.#track();
    const order = track && this.#lanes.movedBy(track, step);
    if (order) this.listeners.order(order);
  }

  /** The track whose lanes are at a height. */
  trackAt(y: number): TrackInfo | undefined {
    const lane = this.#laneAt(y);
    return lane === null ? undefined : trackOf(this.outline, lane);
  }

  /** Show where a track would stand if it were let go at this height, or let it go there. */
  dragTrack(track: TrackInfo, y: number, letGo: boolean): void {
    const to = this.#lanes.movedTo(track, y - TOP);
    this.#drop = letGo ? null : (to?.y ?? null);
    if (letGo && to) this.listeners.order(to.order);
    this.#stage.invalidateMarks();
  }

  /** The moments that are flagged; at replayed times they mean nothing. */
  showFlags(flags: readonly Flag[]): void {
    this.flagging.flags = this.outline.replayed ? [] : flags;
    this.#stage.invalidateMarks();
  }

  showIterations(iterations: readonly number[]): void {
    this.#iterations = iterations;
    this.refresh();
  }

  /** Highlight the slices that have one of the names and hold the query. */
  showNamed(names: readonly string[], query: string): void {
    void this.highlight.named(names, query, this.#searched);
  }

  /** The slice that others focused, by id; -1 for none. */
  async showFocus(id: number): Promise<void> {
    if (id === (this.focus.slice?.id ?? -1)) return;
    const slice = await this.source.slice(id);
    if (this.signal.aborted) return;
    if (slice) this.gap = null;
    const exact = await this.focus.set(slice);
    if (exact) this.#reveal(exact, true); // timelines beside this one have a place of their own to show
  }

  /** Focus a slice that was chosen here; `go` there if it is out of sight. */
  async choose(slice: Slice | null, go: boolean): Promise<void> {
    this.gap = null;
    const exact = await this.focus.set(slice);
    if (exact && go) this.#reveal(exact, false);
    this.listeners.focus(exact);
  }

  /** Mark an idle stretch that was chosen here, and tell of it. */
  chooseGap(lane: number, gap: Gap): void {
    this.#markGap(lane, gap);
    if (!this.outline.replayed) this.listeners.gap(lane, gap[0]);
  }

  /** The moment of a stream at which others look for a gap; null for none. */
  async showGap(place: readonly [lane: number, t: number] | null): Promise<void> {
    if (!place) {
      this.gap = null;
      this.#stage.invalidateMarks();
      return;
    }
    const [lane, t] = place;
    if (this.gap?.lane === lane && this.gap.start <= t && t < this.gap.start + this.gap.dur) return;
    const lanes = gapLanes(this.outline, lane);
    const gap = lanes && (await this.source.gap(lanes, t));
    if (!gap || this.signal.aborted) return;
    this.look(reveal(this.view, gap[0], gap[1], this.bounds, APPROACH));
    this.#markGap(lane, gap);
  }

  /** Look at a time with some around it, unless it can be seen well. */
  approach(start: number, end: number): void {
    this.look(reveal(this.view, start, end, this.bounds, APPROACH));
  }

  hoverAt(x: number, y: number): void {
    const place = this.place;
    this.#brushWords.hide();
    const found = hit(place, this.layout, this.window, x, y);
    this.el.style.cursor =
      { edge: "ew-resize", header: "pointer", fold: "pointer", minimap: "grab" }[found.on as string] ?? "";
    const counted = this.#countedAt(x, y);
    const pointed = this.#pointedAt(x, y);
    this.#under = this.#laneAt(y);
    const track = x < place.gutter && this.#under !== null && trackOf(this.outline, this.#under);
    if (track) {
      this.hover.at(x, y, trackTip(this.outline, track, this.#stage.palette));
      return;
    }
    if (counted) {
      this.hover.at(x, y, counterTip(counted, this.#stage.palette));
      return;
    }
    this.hover.at(x, y, tipFor(pointed, this.outline, this.source, this.highlight.path, this.#stage.palette));
    this.#stage.invalidateMarks();
  }

  leave(): void {
    this.#under = null;
    this.hover.leave();
    this.#stage.invalidateMarks();
  }

  /** Measure from the focused slice on; no more if it is the one already. */
  hold(): void {
    const { slice } = this.focus;
    this.held = slice?.id === this.held?.id ? null : slice;
    this.#focused();
  }

  /** Measure from the focused slice to the one at a point. */
  measureTo(x: number, y: number): void {
    this.held ??= this.focus.slice;
    void this.#pick(x, y);
  }

  clickAt(x: number, y: number): void {
    this.held = null;
    if (this.flagging.editAt(x, y)) return;
    const found = hit(this.place, this.layout, this.window, x, y);
    if (this.#lanes.toggle(found)) return;
    const track = found.on === "gutter" && this.trackAt(y);
    if (track) this.listeners.pin([track.rank, track.label]);
    if (found.on === "lanes" || found.on === "edge") void this.#pick(x, y);
  }

  #laneAt(y: number): number | null {
    return y < TOP ? null : (rowAt(this.layout.rows, y - TOP + this.#lanes.scroll)?.lane ?? null);
  }

  /** Iterations of the first rank on display that has any: ranks run them at nearly the same time. */
  bands(): readonly IterationInfo[] {
    return this.#shownBands.all;
  }

  get #shownBands(): Bands {
    const first = this.layout.headers.find(({ rank }) => this.#bands.has(rank));
    return (first && this.#bands.get(first.rank)) ?? NO_BANDS;
  }

  /** A click: on a slice it focuses the slice, on an idle stream the gap. What is selected stays as it is. */
  async #pick(x: number, y: number): Promise<void> {
    const counted = this.#countedAt(x, y);
    if (counted) {
      this.listeners.announce(counted);
      return;
    }
    const pointed = this.#pointedAt(x, y);
    await this.choose(pointed?.slice ?? null, false);
    const lanes = pointed && !pointed.slice && gapLanes(this.outline, pointed.row.lane);
    const gap = lanes && (await this.source.gap(lanes, pointed.t));
    if (!gap || this.signal.aborted) return;
    this.chooseGap(pointed.row.lane, gap);
  }

  /** The track under the pointer, else that of the focused slice. */
  #track(): TrackInfo | undefined {
    const lane = this.#under ?? this.focus.slice?.lane;
    return lane === undefined ? undefined : trackOf(this.outline, lane);
  }

  #markGap(lane: number, gap: Gap): void {
    this.gap = { lane, start: gap[0], dur: gap[1] - gap[0] };
    this.#showLane(lane);
    this.#stage.invalidateMarks();
    this.listeners.announce(describeGap(this.outline, lane, gap));
  }

  /** The counter at a point, and its value there. */
  #countedAt(x: number, y: number): Facts | null {
    const row = y < TOP ? null : counterAt(this.layout, y - TOP + this.#lanes.scroll);
    return row && describeCounter(this.place, row, this.counters, this.#stage.size.ratio, x);
  }

  #pointedAt(x: number, y: number): Pointed | null {
    const place = this.place;
    const found = hit(place, this.layout, null, x, y);
    if (found.on !== "lanes" || !found.row) return null;
    const { row } = found;
    const t = timeAt(place, x);
    const tolerance = (REACH * (this.view.t1 - this.view.t0)) / this.pixels;
    return { row, t, slice: this.source.find(row.lane, t, tolerance) };
  }

  #focused(): void {
    const { slice, flows } = this.focus;
    const between = measured(this.held, slice);
    const pointed = slice && { slice, row: { lane: slice.lane }, t: slice.start };
    const tip = tipFor(pointed, this.outline, this.source, this.highlight.path, this.#stage.palette, flows);
    this.waits.look(slice);
    this.#tell(between ? describeMeasured(this.outline, between) : (tip?.facts ?? null));
    this.#stage.invalidateMarks();
  }

  /** What is focused, and who waits for whom there. */
  #tell(facts: Facts | null): void {
    const { slice } = this.focus;
    const { exchange } = this.waits;
    const told = slice && exchange ? describeWaits(this.outline, exchange, slice) : "";
    this.listeners.announce(facts && told ? { ...facts, lines: [told, ...facts.lines] } : facts);
  }

  #reveal(slice: Slice, following: boolean): void {
    const { t0, t1 } = this.view;
    if (slice.start + slice.dur < t0 || slice.start > t1) {
      const centre = slice.start + slice.dur / 2;
      const there = { t0: centre - (t1 - t0) / 2, t1: centre + (t1 - t0) / 2 };
      this.#show(clampView(there, this.bounds), following);
    }
    this.#showLane(slice.lane);
  }

  /** Scroll to a lane; of a rank that has none yet, have it. */
  #showLane(lane: number): void {
    const track = trackOf(this.outline, lane);
    if (track) this.listeners.wanted(track.rank);
    this.#lanes.reveal(lane);
  }

  #key(event: KeyboardEvent): void {
    const action = actionOf(event);
    if (!action) return;
    // Notebook shortcuts hang on the same letters.
    consume(event);
    const move = heldActionOf(event);
    if (move && !this.#held.down(event.code, (seconds) => void act(this, move(seconds)))) return;
    void act(this, action);
  }

  #show(next: View, following: boolean): void {
    if (next.t0 === this.view.t0 && next.t1 === this.view.t1) return;
    this.view = next;
    this.listeners.view(next, following);
    this.#moved();
  }

  #moved(): void {
    this.hover.moved();
    this.#stage.invalidate();
  }

  #scene() {
    return {
      place: this.place,
      layout: this.layout,
      ratio: this.#stage.size.ratio,
      bands: this.#shownBands,
      iterations: this.#iterations,
      highlight: this.highlight,
    };
  }

  #marks(): Marks {
    const { slice, flows } = this.focus;
    const { extent } = this.#flash;
    const flash = extent && { extent, strength: this.#flash.strength };
    return {
      place: this.#place,
      cause: this.#shownCause(),
      window: this.window,
      hover: this.hover.extent,
      focus: slice ?? this.gap,
      held: this.held,
      measured: measured(this.held, slice),
      flows,
      exchange: this.waits.exchange,
      flags: this.flagging.flags,
      drop: this.#drop,
      flash,
    };
  }
}
