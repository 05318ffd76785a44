// Three canvases, kept at the element's size and in its theme, and drawn at most once per frame.
//
// The gutter stands still while one pans and zooms, so it has a canvas of its own, no wider than itself: a canvas on the
// screen costs time in each frame, even if nothing is drawn on it. The lanes beside it are opaque, which spares blending
// them. Above both lie the marks, which are taken off the screen while there are none.

import { element, onAbort } from "../page";
import { FONT } from "./frame";
import { type Palette, readPalette } from "./palette";
import type { Outline } from "./types";

export interface Painter {
  /** width of the gutter */
  gutter(): number;
  /** what the gutter shows: it is drawn again when one of these is another one */
  shownInGutter(): readonly unknown[];
  drawGutter(context: CanvasRenderingContext2D, palette: Palette): void;
  drawLanes(context: CanvasRenderingContext2D, palette: Palette): void;
  /** whether anything is marked */
  marked(): boolean;
  drawMarks(context: CanvasRenderingContext2D, palette: Palette): void;
  resized(): void;
}

const QUALITY = 0.8;

export class Stage {
  size = { width: 0, height: 0, ratio: 1 };
  palette: Palette;
  readonly canvases: readonly HTMLCanvasElement[];
  #lanes = canvas("hta-timeline-lanes", { alpha: false });
  #gutter = canvas("hta-timeline-gutter", { alpha: false });
  #marks = canvas("hta-timeline-marks", { alpha: true });
  #inGutter: readonly unknown[] = [];
  #frame = 0;
  #stale = true;

  constructor(
    private readonly el: HTMLElement,
    private readonly outline: Outline,
    private readonly painter: Painter,
    private readonly signal: AbortSignal,
  ) {
    this.canvases = [this.#lanes, this.#gutter, this.#marks].map((layer) => layer.element);
    this.palette = readPalette(el, outline);
  }

  /** Begin to follow the element's size and the page's theme. */
  watch(): void {
    const resize = new ResizeObserver(() => this.resize());
    resize.observe(this.el);
    const retheme = () => {
      this.palette = readPalette(this.el, this.outline);
      this.invalidate();
    };
    const theme = new MutationObserver(retheme);
    theme.observe(document.body, { attributeFilter: ["data-jp-theme-name"] });
    const part = this.el.closest("[data-theme]"); // light or dark
    if (part) theme.observe(part, { attributeFilter: ["data-theme"] });
    onAbort(this.signal, () => {
      resize.disconnect();
      theme.disconnect();
      cancelAnimationFrame(this.#frame);
    });
    this.resize();
  }

  /** What is on the canvases, as a data URL. */
  toUrl(): string {
    const { element, context } = canvas("", { alpha: true });
    const { width, height, ratio } = this.size;
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
    if (element.width) {
      context.drawImage(this.#gutter.element, 0, 0);
      context.drawImage(this.#lanes.element, this.#gutter.element.width, 0);
      if (!this.#marks.element.hidden) context.drawImage(this.#marks.element, 0, 0);
    }
    return element.toDataURL("image/webp", QUALITY);
  }

  /** Draw everything in the next frame. */
  invalidate(): void {
    this.#stale = true;
    this.invalidateMarks();
  }

  /** Draw what is marked in the next frame. */
  invalidateMarks(): void {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  /** Fit the canvases to the element and the gutter. */
  resize(): void {
    const { clientWidth: width, clientHeight: height } = this.el;
    if (width === 0 || height === 0) return;
    const ratio = devicePixelRatio || 1;
    this.size = { width, height, ratio };
    const gutter = this.painter.gutter();
    this.el.style.setProperty("--hta-gutter", `${gutter}px`);
    this.#gutter.place(0, gutter, height, ratio);
    this.#lanes.place(gutter, width - gutter, height, ratio);
    this.#marks.place(0, width, height, ratio);
    this.#inGutter = [];
    this.painter.resized();
    this.#stale = true;
    this.#draw();
  }

  #draw(): void {
    if (this.size.width === 0) return;
    if (this.#stale) {
      const shown = [...this.painter.shownInGutter(), this.palette];
      if (shown.length !== this.#inGutter.length || shown.some((one, i) => one !== this.#inGutter[i]))
        this.painter.drawGutter(this.#gutter.ready(), this.palette);
      this.#inGutter = shown;
      this.painter.drawLanes(this.#lanes.ready(), this.palette);
    }
    this.#stale = false;
    const marked = this.painter.marked();
    this.#marks.show(marked);
    if (marked) this.painter.drawMarks(this.#marks.ready(), this.palette);
  }
}

interface Canvas {
  element: HTMLCanvasElement;
  context: CanvasRenderingContext2D;
  /** Put it somewhere in the stage, in CSS pixels. */
  place(left: number, width: number, height: number, ratio: number): void;
  show(shown: boolean): void;
  /** To be drawn on in coordinates of the stage. */
  ready(): CanvasRenderingContext2D;
}

function canvas(className: string, settings: CanvasRenderingContext2DSettings): Canvas {
  const made = element("canvas", className);
  const context = made.getContext("2d", settings) as CanvasRenderingContext2D;
  const at = { left: 0, ratio: 1, width: 0, height: 0 };
  const resize = () => {
    made.width = at.width;
    made.height = at.height;
  };
  return {
    element: made,
    context,
    place(left, width, height, ratio) {
      Object.assign(at, {
        left,
        ratio,
        width: Math.round(width * ratio),
        height: Math.round(height * ratio),
      });
      if (!made.hidden) resize();
      Object.assign(made.style, { left: `${left}px`, width: `${width}px`, height: `${height}px` });
    },
    show(shown) {
      if (made.hidden !== shown) return;
      made.hidden = !shown;
      if (shown) resize();
      else made.width = made.height = 0;
    },
    ready() {
      context.setTransform(at.ratio, 0, 0, at.ratio, -at.left * at.ratio, 0);
      context.font = FONT;
      context.textBaseline = "middle";
      return context;
    },
  };
}
