// The pointer on a timeline, or on the one that leads it: its time, what is under it, and the tooltip.

import { Cursor } from "./cursor";
import { type Place, timeAt, xOf } from "./frame";
import type { Extent } from "./overlay";
import { Tooltip } from "./tooltip";
import type { Tip } from "./tooltip_content";

export class Hover {
  readonly tooltip = new Tooltip();
  readonly cursor = new Cursor();
  /** the slice or the gap under the pointer */
  extent: Extent | null = null;
  #x: number | null = null;
  /** the time pointed at on the timeline that leads this one */
  #leaderTime: number | null = null;

  constructor(
    private readonly place: () => Place,
    /** called with the time under the pointer, null if it is on none */
    private readonly pointed: (t: number | null) => void,
  ) {}

  /** The time under the pointer; null if it is on none. */
  get time(): number | null {
    const place = this.place();
    return this.#x !== null && this.#x > place.gutter ? timeAt(place, this.#x) : null;
  }

  at(x: number, y: number, tip: Tip | null): void {
    const { width, height } = this.place();
    this.#x = x;
    this.extent = tip?.extent ?? null;
    if (tip) this.tooltip.show(tip.facts, tip.colour, x, y, width, height);
    else this.tooltip.hide();
    this.#moveCursor();
    this.pointed(this.time);
  }

  leave(): void {
    this.#x = null;
    this.moved();
    this.pointed(null);
  }

  /** Slices stand elsewhere now: what was under the pointer need not be there any more. */
  moved(): void {
    this.extent = null;
    this.tooltip.hide();
    this.#moveCursor();
    if (this.#x !== null) this.pointed(this.time);
  }

  lead(t: number | null): void {
    this.#leaderTime = t;
    this.#moveCursor();
  }

  #moveCursor(): void {
    const place = this.place();
    const x = this.#leaderTime === null ? this.#x : xOf(place, this.#leaderTime);
    this.cursor.move(x !== null && x > place.gutter && x < place.width ? x : null);
  }
}
