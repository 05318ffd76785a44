// The upright line at the pointer's time: an element that is only moved, so that no canvas is drawn for it.

import { element } from "../page";
import { TOP } from "./frame";

export class Cursor {
  readonly el = element("div", "hta-timeline-cursor");
  #x: number | null = null;

  constructor() {
    this.el.hidden = true;
    this.el.style.top = `${TOP}px`;
  }

  /** Stand at so many pixels; null: nowhere. */
  move(x: number | null): void {
    const at = x === null ? null : Math.round(x);
    if (at === this.#x) return;
    this.#x = at;
    this.el.hidden = at === null;
    if (at !== null) this.el.style.transform = `translateX(${at}px)`;
  }
}
