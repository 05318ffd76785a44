// The timeline itself: what is visible, what is marked, and when to draw. It knows nothing of widgets or kernels.
//
// Two canvases: slices below, and above them what follows the pointer, so that hovering redraws no slice.

import { clampView, frameAround, panBy, reveal, zoomAt } from "./camera";
import { drawAxis, drawBands, drawGutter, FONT, type Place, TOP, timeAt } from "./frame";
import { hit } from "./hit";
import { type Action, actionOf, HELP } from "./keys";
import { Labels } from "./labels";
import { arrange, type Layout, ROW_HEIGHT, rowsBetween } from "./layout";
import { drawMinimap } from "./minimap";
import { drawOverlay } from "./overlay";
import { type Palette, readPalette } from "./palette";
import { bindPointer } from "./pointer";
import { Scanline } from "./scanline";
import type { Source } from "./source";
import { describe, type Facts, Tooltip, trackOf } from "./tooltip";
import type { Flow, IterationInfo, Outline, Slice, View } from "./types";

const GUTTER = 172;
const NARROW_GUTTER = 96;
const NARROW = 560;
/** A slice is hit from this many pixels away. */
const REACH = 2.5;

export interface Listeners {
  view(view: View): void;
  window(window: [number, number] | null): void;
  focus(slice: Slice | null): void;
  /** what the focused slice is, in words; "" for none */
  announce(facts: Facts | null): void;
}

export class Timeline {
  layout: Layout;
  view: View;
  window: [number, number] | null = null;
  #ranks: readonly number[] = [];
  #iterations: readonly number[] = [];
  #collapsed = new Set<number>();
  #unfolded = new Set<number>();
  #scroll = 0;
  #hover: Slice | null = null;
  #focus: Slice | null = null;
  #flows: Flow[] = [];
  #pointerX: number | null = null;
  #size = { width: 0, height: 0, ratio: 1 };
  #palette: Palette;
  #base = canvas();
  #over = canvas();
  #scanline = new Scanline();
  #labels: Labels;
  #tip = new Tooltip();
  #frame = 0;
  #stale = { base: true, over: true };

  constructor(
    readonly el: HTMLElement,
    readonly outline: Outline,
    private readonly source: Source,
    private readonly listeners: Listeners,
    private readonly signal: AbortSignal,
  ) {
    this.layout = arrange(outline, [], { collapsedRanks: this.#collapsed, unfolded: this.#unfolded });
    this.view = clampView({ t0: outline.extent[0], t1: outline.extent[1] }, outline.extent);
    this.#labels = new Labels(outline);
    this.#palette = readPalette(el, outline);
    el.classList.add("hta-timeline");
    el.tabIndex = 0;
    el.setAttribute("role", "application");
    el.setAttribute("aria-label", `Timeline of ${outline.n.toLocaleString("en-US")} slices. ${HELP}`);
    el.replaceChildren(this.#base.element, this.#over.element, this.#tip.el);
    el.addEventListener("keydown", (event) => this.#key(event), { signal });
    bindPointer(this, signal);
    this.#watch();
    this.#resize();
  }

  get place(): Place {
    const { width, height } = this.#size;
    return {
      view: this.view,
      gutter: width < NARROW ? NARROW_GUTTER : GUTTER,
      width,
      height,
      scroll: this.#scroll,
    };
  }

  /** Draw again: better data has come. */
  refresh(): void {
    this.#invalidate();
  }

  look(view: View): void {
    const next = clampView(view, this.outline.extent);
    if (next.t0 === this.view.t0 && next.t1 === this.view.t1) return;
    this.view = next;
    this.listeners.view(next);
    this.#moved();
  }

  zoom(factor: number, at: number): void {
    this.look(zoomAt(this.view, factor, at, this.outline.extent));
  }

  panPixels(dx: number, dy: number): void {
    const { gutter, width } = this.place;
    const ns = (dx * (this.view.t1 - this.view.t0)) / (width - gutter);
    this.look(panBy(this.view, ns, this.outline.extent));
    this.scrollBy(dy);
  }

  /** Scroll the lanes; false if they stand at that end already. */
  scrollBy(dy: number): boolean {
    const furthest = Math.max(0, this.layout.height - (this.#size.height - TOP));
    const next = Math.min(Math.max(this.#scroll + dy, 0), furthest);
    if (next === this.#scroll) return false;
    this.#scroll = next;
    this.#moved();
    return true;
  }

  /** Select the time between two points, in either order. */
  brush(a: number, b: number): void {
    const [from, to] = this.outline.extent;
    const inside = [a, b].map((t) => Math.round(Math.min(Math.max(t, from), to))).sort((x, y) => x - y);
    this.#setWindow(inside[0] === inside[1] ? null : (inside as [number, number]));
  }

  /** The window as others set it: show it, and move there if it is out of sight. */
  showWindow(window: readonly [number, number] | null): void {
    if (window?.[0] === this.window?.[0] && window?.[1] === this.window?.[1]) return;
    this.window = window && [window[0], window[1]];
    if (window) this.look(reveal(this.view, window[0], window[1], this.outline.extent));
    this.#invalidateOver();
  }

  showRanks(ranks: readonly number[]): void {
    this.#ranks = ranks;
    this.#arrange();
  }

  showIterations(iterations: readonly number[]): void {
    this.#iterations = iterations;
    this.#invalidate();
  }

  /** The slice that others focused, by id; -1 for none. */
  async showFocus(id: number): Promise<void> {
    if (id === (this.#focus?.id ?? -1)) return;
    const slice = await this.source.slice(id);
    if (this.signal.aborted) return;
    await this.#setFocus(slice, true);
  }

  hoverAt(x: number, y: number): void {
    const place = this.place;
    const found = hit(place, this.layout, this.window, x, y);
    this.el.style.cursor =
      { edge: "ew-resize", header: "pointer", fold: "pointer", minimap: "grab" }[found.on as string] ?? "";
    this.#pointerX = x;
    this.#hover = this.#sliceAt(x, y);
    if (this.#hover) {
      const [r, g, b] = this.#palette.classes[this.outline.class_of[this.#hover.kind] as number] ?? [
        136, 136, 136,
      ];
      const flows = this.#hover.count === 1 ? this.source.knownFlows(this.#hover) : [];
      this.#tip.show(
        describe(this.outline, this.#hover, flows),
        `rgb(${r} ${g} ${b})`,
        x,
        y,
        place.width,
        place.height,
      );
    } else this.#tip.hide();
    this.#invalidateOver();
  }

  leave(): void {
    this.#pointerX = null;
    this.#hover = null;
    this.#tip.hide();
    this.#invalidateOver();
  }

  clickAt(x: number, y: number): void {
    const found = hit(this.place, this.layout, this.window, x, y);
    if (found.on === "header") toggle(this.#collapsed, found.rank);
    if (found.on === "fold") toggle(this.#unfolded, found.lane);
    if (found.on === "header" || found.on === "fold") this.#arrange();
    else if (found.on === "lanes" || found.on === "edge")
      void this.#setFocus(this.#sliceAt(x, y), false, true);
  }

  #sliceAt(x: number, y: number): Slice | null {
    const place = this.place;
    const found = hit(place, this.layout, null, x, y);
    if (found.on !== "lanes" || !found.row) return null;
    const tolerance = (REACH * (this.view.t1 - this.view.t0)) / (place.width - place.gutter);
    return this.source.find(found.row.lane, timeAt(place, x), tolerance);
  }

  #setWindow(window: [number, number] | null): void {
    this.window = window;
    this.listeners.window(window);
    this.#invalidateOver();
  }

  async #setFocus(slice: Slice | null, scrollThere: boolean, tell = false): Promise<void> {
    // Of a merged item the longest slice is focused; its own times are not known here yet.
    const exact = slice && slice.count > 1 ? await this.source.slice(slice.id) : slice;
    this.#focus = exact;
    this.#flows = exact ? this.source.knownFlows(exact) : [];
    if (exact && scrollThere) this.#reveal(exact);
    if (tell) this.listeners.focus(exact);
    this.listeners.announce(exact && describe(this.outline, exact, this.#flows));
    this.#invalidateOver();
    if (!exact) return;
    const flows = await this.source.flows(exact);
    if (this.#focus?.id !== exact.id || flows.length === this.#flows.length) return;
    this.#flows = flows;
    this.listeners.announce(describe(this.outline, exact, flows));
    this.#invalidateOver();
  }

  #reveal(slice: Slice): void {
    const { t0, t1 } = this.view;
    if (slice.start + slice.dur < t0 || slice.start > t1) {
      const centre = slice.start + slice.dur / 2;
      this.look({ t0: centre - (t1 - t0) / 2, t1: centre + (t1 - t0) / 2 });
    }
    const track = trackOf(this.outline, slice.lane);
    if (track && this.#collapsed.delete(track.rank)) this.#arrange();
    const row = this.layout.rows.find((r) => r.lane === slice.lane);
    if (!row) return;
    const visible = this.#size.height - TOP;
    if (row.y < this.#scroll) this.scrollBy(row.y - this.#scroll - 4);
    else if (row.y + row.h > this.#scroll + visible)
      this.scrollBy(row.y + row.h - this.#scroll - visible + 4);
  }

  #key(event: KeyboardEvent): void {
    const action = actionOf(event);
    if (!action) return;
    // Notebook shortcuts hang on the same letters.
    event.stopPropagation();
    event.preventDefault();
    void this.#act(action);
  }

  async #act(action: Action): Promise<void> {
    const { extent } = this.outline;
    const { t0, t1 } = this.view;
    const focus = this.#focus;
    if (action.do === "zoom") this.zoom(action.factor, this.#zoomCentre());
    else if (action.do === "pan") this.look(panBy(this.view, action.screens * (t1 - t0), extent));
    else if (action.do === "scroll") this.scrollBy(action.rows * ROW_HEIGHT);
    else if (action.do === "all") this.look({ t0: extent[0], t1: extent[1] });
    else if (action.do === "iteration") this.#stepIteration(action.step);
    else if (action.do === "clear") {
      this.leave();
      this.#setWindow(null);
      await this.#setFocus(null, false, true);
    } else if (!focus) return;
    else if (action.do === "fit") this.look(frameAround(focus.start, focus.start + focus.dur, 0.6, extent));
    else if (action.do === "brushFocus") this.brush(focus.start, focus.start + focus.dur);
    else if (action.do === "followFlow") {
      const flow = this.#flows[0];
      if (flow) await this.#setFocus(flow[0].id === focus.id ? flow[1] : flow[0], true, true);
    } else {
      const next = await this.source.neighbour(focus, action.step);
      if (next) await this.#setFocus(next, true, true);
    }
  }

  #zoomCentre(): number {
    const { gutter } = this.place;
    const pointed = this.#pointerX !== null && this.#pointerX > gutter;
    return pointed ? timeAt(this.place, this.#pointerX as number) : (this.view.t0 + this.view.t1) / 2;
  }

  /** Iterations of the first rank on display that has any: ranks run them at nearly the same time. */
  #bands(): IterationInfo[] {
    const rank = this.layout.headers.find((h) =>
      this.outline.iterations.some((i) => i.rank === h.rank),
    )?.rank;
    return this.outline.iterations.filter((i) => i.rank === rank);
  }

  #stepIteration(step: 1 | -1): void {
    const bands = this.#bands();
    const centre = (this.view.t0 + this.view.t1) / 2;
    const current = bands.findIndex((band) => band.end > centre);
    const from = current < 0 ? bands.length : current;
    const target = bands[Math.min(Math.max(from + step, 0), bands.length - 1)];
    if (target) this.look(frameAround(target.start, target.end, 0.02, this.outline.extent));
  }

  #arrange(): void {
    this.layout = arrange(this.outline, this.#ranks, {
      collapsedRanks: this.#collapsed,
      unfolded: this.#unfolded,
    });
    this.scrollBy(0);
    this.#moved();
  }

  #watch(): void {
    const resize = new ResizeObserver(() => this.#resize());
    resize.observe(this.el);
    const retheme = () => {
      this.#palette = readPalette(this.el, this.outline);
      this.#invalidate();
    };
    const theme = new MutationObserver(retheme);
    theme.observe(document.body, { attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", retheme, { signal: this.signal });
    this.signal.addEventListener("abort", () => {
      resize.disconnect();
      theme.disconnect();
      cancelAnimationFrame(this.#frame);
    });
  }

  #resize(): void {
    const size = { width: this.el.clientWidth, height: this.el.clientHeight, ratio: devicePixelRatio || 1 };
    if (size.width === 0 || size.height === 0) return;
    this.#size = size;
    for (const { element } of [this.#base, this.#over]) {
      element.width = Math.round(size.width * size.ratio);
      element.height = Math.round(size.height * size.ratio);
    }
    this.scrollBy(0);
    this.#draw();
  }

  /** Slices stand elsewhere now: what was under the pointer need not be there any more. */
  #moved(): void {
    this.#hover = null;
    this.#tip.hide();
    this.#invalidate();
  }

  #invalidate(): void {
    this.#stale.base = true;
    this.#invalidateOver();
  }

  #invalidateOver(): void {
    this.#stale.over = true;
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.#stale.base) this.#draw();
      else this.#drawOver();
    });
  }

  #draw(): void {
    const place = this.place;
    if (place.width <= place.gutter) return;
    this.#stale.base = false;
    const context = this.#prepared(this.#base);
    const palette = this.#palette;
    context.fillStyle = palette.background;
    context.fillRect(0, 0, place.width, place.height);
    drawBands(context, place, this.layout, this.outline.iterations, this.#iterations, palette);
    this.#drawSlices(context, place);
    drawGutter(context, place, this.layout, palette);
    drawAxis(context, place, this.#bands(), this.#iterations, palette);
    drawMinimap(context, place, this.outline, palette);
    this.#drawOver();
  }

  #drawSlices(context: CanvasRenderingContext2D, place: Place): void {
    const rows = rowsBetween(this.layout.rows, place.scroll, place.scroll + place.height - TOP);
    const width = place.width - place.gutter;
    const { t0, t1 } = this.view;
    const lanes = rows.map((row) => row.lane);
    const items = rows.length > 0 ? this.source.items(t0, t1, width * this.#size.ratio, lanes) : null;
    if (!items) return;
    const target = { x: place.gutter, y: TOP - place.scroll, width, ratio: this.#size.ratio };
    context.save();
    context.beginPath();
    context.rect(place.gutter, TOP, width, place.height - TOP);
    context.clip();
    this.#scanline.draw(context, items, rows, this.view, this.#palette, target);
    this.#labels.draw(context, items, rows, this.view, this.#palette, target);
    context.restore();
  }

  #drawOver(): void {
    this.#stale.over = false;
    const marks = {
      window: this.window,
      hover: this.#hover,
      focus: this.#focus,
      flows: this.#flows,
      pointerX: this.#pointerX,
    };
    drawOverlay(this.#prepared(this.#over), this.place, this.layout, marks, this.#palette);
  }

  #prepared({ context }: Canvas): CanvasRenderingContext2D {
    const { ratio } = this.#size;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    context.textBaseline = "middle";
    return context;
  }
}

interface Canvas {
  element: HTMLCanvasElement;
  context: CanvasRenderingContext2D;
}

function canvas(): Canvas {
  const element = document.createElement("canvas");
  return { element, context: element.getContext("2d") as CanvasRenderingContext2D };
}

function toggle<T>(set: Set<T>, value: T): void {
  if (!set.delete(value)) set.add(value);
}
