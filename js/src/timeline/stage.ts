// Two canvases over each other, kept at the element's size and in its theme, and drawn at most once per frame.
//
// Slices are below; above them stands what follows the pointer, so that hovering redraws no slice.

import { element, onAbort } from "../page";
import { FONT } from "./frame";
import { type Palette, readPalette } from "./palette";
import type { Outline } from "./types";

export interface Painter {
  base(context: CanvasRenderingContext2D, palette: Palette): void;
  over(context: CanvasRenderingContext2D, palette: Palette): void;
  resized(): void;
}

const QUALITY = 0.8;

export class Stage {
  size = { width: 0, height: 0, ratio: 1 };
  palette: Palette;
  readonly canvases: readonly HTMLCanvasElement[];
  #base = canvas();
  #over = canvas();
  #frame = 0;
  #stale = true;

  constructor(
    private readonly el: HTMLElement,
    private readonly outline: Outline,
    private readonly painter: Painter,
    private readonly signal: AbortSignal,
  ) {
    this.canvases = [this.#base.element, this.#over.element];
    this.palette = readPalette(el, outline);
  }

  /** Begin to follow the element's size and the page's theme. */
  watch(): void {
    const resize = new ResizeObserver(() => this.#resize());
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
    this.#resize();
  }

  /** What is on the canvases, as a data URL. */
  toUrl(): string {
    const { element, context } = canvas();
    element.width = this.#base.element.width;
    element.height = this.#base.element.height;
    for (const layer of this.canvases) if (layer.width) context.drawImage(layer, 0, 0);
    return element.toDataURL("image/webp", QUALITY);
  }

  /** Draw everything in the next frame. */
  invalidate(): void {
    this.#stale = true;
    this.invalidateOver();
  }

  /** Draw what follows the pointer in the next frame. */
  invalidateOver(): void {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  #resize(): void {
    const size = { width: this.el.clientWidth, height: this.el.clientHeight, ratio: devicePixelRatio || 1 };
    if (size.width === 0 || size.height === 0) return;
    this.size = size;
    for (const element of this.canvases) {
      element.width = Math.round(size.width * size.ratio);
      element.height = Math.round(size.height * size.ratio);
    }
    this.painter.resized();
    this.#stale = true;
    this.#draw();
  }

  #draw(): void {
    if (this.size.width === 0) return;
    if (this.#stale) this.painter.base(this.#prepared(this.#base), this.palette);
    this.#stale = false;
    this.painter.over(this.#prepared(this.#over), this.palette);
  }

  #prepared({ context }: Canvas): CanvasRenderingContext2D {
    const { ratio } = this.size;
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
  const made = element("canvas");
  return { element: made, context: made.getContext("2d") as CanvasRenderingContext2D };
}
