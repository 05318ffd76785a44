// What the brushed time holds, told beside the brush while it is drawn and once it rests.

import { onAbort } from "../page";
import { TOP } from "./frame";
import type { Source } from "./source";
import { type Facts, Tooltip } from "./tooltip";
import type { Outline } from "./types";
import { describeWindow } from "./window_sums";

/** After an answer the next question waits so many times as long as it took: the drag comes first. */
const REST = 4;

/** The window's end on the screen, and how large and of which colour the timeline is. */
interface Spot {
  x: number;
  width: number;
  height: number;
  colour: string;
}

export class BrushWords {
  readonly tooltip = new Tooltip("hta-timeline-sums");
  #window: readonly [number, number] | null = null;
  #lanes: readonly number[] = [];
  #at: Spot = { x: 0, width: 0, height: 0, colour: "" };
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asking = false;
  #took = 0;

  constructor(
    private readonly outline: Outline,
    private readonly source: Source,
    /** called with what is told of the window that is brushed now */
    private readonly told: (facts: Facts) => void,
    signal: AbortSignal,
  ) {
    onAbort(signal, () => clearTimeout(this.#timer));
  }

  /** Tell of a window on some lanes, at a place on the screen; null: of none. */
  tell(window: readonly [number, number] | null, lanes: readonly number[], at: Spot): void {
    this.#window = window;
    this.#lanes = lanes;
    this.#at = at;
    if (!window) this.hide();
    else if (!this.#asking) this.#soon();
  }

  hide(): void {
    this.tooltip.hide();
  }

  #soon(): void {
    this.#timer ??= setTimeout(() => void this.#ask(), REST * this.#took);
  }

  async #ask(): Promise<void> {
    this.#timer = undefined;
    const [window, lanes] = [this.#window, this.#lanes];
    if (!window) return;
    this.#asking = true;
    const begun = performance.now();
    try {
      const sums = await this.source.sums(...window, lanes);
      if (this.#window) this.#show(window, describeWindow(this.outline, ...window, sums));
    } catch {
      // a kernel that is busy or gone: the brush still says how long it is
    }
    this.#took = performance.now() - begun;
    this.#asking = false;
    if (this.#window && this.#window !== window) this.#soon();
  }

  #show(window: readonly [number, number], facts: Facts): void {
    const { x, width, height, colour } = this.#at;
    this.tooltip.show(facts, colour, x, TOP, width, height);
    if (window === this.#window) this.told(facts);
  }
}
