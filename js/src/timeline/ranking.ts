// Goes through the longest events, or gaps, of the selection, one by one. The kernel ranks them.

import { signal as makeSignal } from "@preact/signals";
import type { Call } from "./kernel";
import type { Ranked } from "./keys";
import type { Selected } from "./path_request";
import type { Slice } from "./types";

/** A gap: the first lane of its stream, start and end. */
export type GapPlace = [lane: number, start: number, end: number];
export type Place = { slice: Slice } | { gap: GapPlace };

interface Answer {
  slices?: Omit<Slice, "count">[];
  gaps?: GapPlace[];
}

export class Ranking {
  /** where one is among them, or why there are none */
  readonly text = makeSignal("");
  #key = "";
  #places: Place[] = [];
  #at = -1;

  constructor(
    private readonly call: Call,
    private readonly selected: () => Selected,
  ) {}

  /** The next longest; the longest where the selection, or what is gone through, has changed. Null: there is none. */
  async step(what: Ranked, step: 1 | -1): Promise<Place | null> {
    const selected = this.selected();
    const key = JSON.stringify([what, selected]);
    if (key !== this.#key) {
      try {
        const { result } = await this.call<Answer>(what, selected);
        this.#places = [
          ...(result.slices ?? []).map((slice) => ({ slice: { ...slice, count: 1 } })),
          ...(result.gaps ?? []).map((gap) => ({ gap })),
        ];
      } catch (error) {
        this.text.value = error instanceof Error ? error.message : String(error);
        return null;
      }
      [this.#key, this.#at] = [key, -1];
    }
    const { length } = this.#places;
    this.#at = Math.min(Math.max(this.#at + step, 0), length - 1);
    const noun = what === "longest" ? "longest event" : "longest gap";
    this.text.value = length ? `${noun} ${this.#at + 1} of ${length}` : `no ${noun}`;
    return this.#places[this.#at] ?? null;
  }

  /** Say no longer where one is: something else is selected. */
  forget(): void {
    this.#key = "";
    this.text.value = "";
  }

  /** The slice of the same name that comes next, or before. */
  async sameName(slice: Slice, step: 1 | -1): Promise<Slice | null> {
    try {
      const { result } = await this.call<{ slice: Omit<Slice, "count"> | null }>("same_name", {
        id: slice.id,
        step,
      });
      return result.slice && { ...result.slice, count: 1 };
    } catch (error) {
      this.text.value = error instanceof Error ? error.message : String(error);
      return null;
    }
  }
}
