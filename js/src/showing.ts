// Shows the evidence of a finding in the explorer around it, and goes back to what was selected and visible before.

import type { Signal } from "@preact/signals";
import { frameAround } from "./timeline/camera";
import type { Marked } from "./timeline/overlay";
import type { Timeline } from "./timeline/timeline";
import type { View } from "./timeline/types";

/** Asks the explorer around a part to show evidence (`detail`: `Evidence`), or to go back (`detail`: null). */
export const SHOW = "hta-show";

/** Asks the explorer around a story to try the change against a finding in "What if" (`detail`: its number). */
export const TRY = "hta-try";

/** Asks the explorer around a story to frame a place of a finding (`detail`: `Mark`), or none any more (null). */
export const MARK = "hta-mark";

/** Asks the explorer to select the whole job. */
export const WHOLE = "hta-whole";

/** A place in time that shows a finding; nothing is selected for it, so that all numbers stay what they are. */
export interface Mark extends Marked {
  rank: number;
  /** whose lanes are shown for it, the first at the top */
  ranks: readonly number[];
}

/** What to select and where to look; traits that it lacks stay as they are. */
export interface Evidence {
  kind?: string;
  ranks?: number[];
  iterations?: number[];
  names?: string[];
  focus?: [number, number] | null;
  window: [number, number];
}

/** How much of the time around it is shown with the evidence, as a share of its length, on each side. */
const MARGIN = 0.35;
const AROUND = 0.5;

interface Before {
  selected: Map<string, unknown>;
  panels: string[];
  view: View | undefined;
  scrolled: [Element, number];
}

/** Frames places of a timeline, and goes back to what was visible before. */
export class Framing {
  /** the timeline on display, once it is built */
  timeline: Timeline | undefined;
  #before: View | undefined;

  constructor(
    /** what comes into view with a place */
    private readonly stage: () => Element | null,
  ) {}

  /** Frame a place: it takes half of the view, with as much on both sides. */
  mark(mark: Mark | null): void {
    const { timeline } = this;
    if (!timeline) return;
    if (!mark) {
      timeline.mark(null, []);
      if (this.#before) timeline.look(this.#before);
      this.#before = undefined;
      return;
    }
    this.#before ??= timeline.view;
    timeline.mark(mark, mark.ranks);
    timeline.look(frameAround(mark.span[0], mark.span[1], AROUND, timeline.bounds));
    this.stage()?.scrollIntoView({ block: "nearest" });
  }
}

export class Showing extends Framing {
  #before: Before | undefined;

  constructor(
    private readonly el: HTMLElement,
    /** the traits that evidence sets, as the selection has them */
    // biome-ignore lint/suspicious/noExplicitAny: each trait has a type of its own
    private readonly traits: Readonly<Record<string, Signal<any>>>,
    private readonly panels: Signal<string[]>,
  ) {
    super(() => el.querySelector(".hta-stage"));
  }

  /** Select what the evidence is about, zoom to it, light it up, and open its panel first of all. */
  show(evidence: Evidence): void {
    this.#before ??= {
      selected: new Map(Object.entries(this.traits).map(([name, { value }]) => [name, value])),
      panels: this.panels.value,
      view: this.timeline?.view,
      scrolled: scrolling(this.el),
    };
    for (const [name, signal] of Object.entries(this.traits)) {
      const wanted = evidence[name as keyof Evidence];
      if (wanted !== undefined) signal.value = wanted;
    }
    const { kind } = evidence;
    if (kind) this.panels.value = [kind, ...this.panels.value.filter((other) => other !== kind)];
    const { timeline } = this;
    if (!timeline) return;
    const [start, end] = evidence.window;
    timeline.look(frameAround(start, end, MARGIN, timeline.bounds));
    timeline.flash([start, end]);
    this.el.querySelector('[data-area="timeline"]')?.scrollIntoView({ block: "start" });
  }

  /** Restore selection, panels, zoom and scroll position. */
  back(): void {
    const before = this.#before;
    if (!before) return;
    this.#before = undefined;
    for (const [name, value] of before.selected) {
      const signal = this.traits[name];
      if (signal) signal.value = value;
    }
    this.panels.value = before.panels;
    if (before.view) this.timeline?.look(before.view);
    const [scroller, top] = before.scrolled;
    scroller.scrollTop = top;
  }
}

/** What scrolls the element, and how far it is scrolled. */
function scrolling(el: Element): [Element, number] {
  for (let at = el.parentElement; at; at = at.parentElement) {
    const moves = /auto|scroll/.test(getComputedStyle(at).overflowY);
    if (moves && at.scrollHeight > at.clientHeight) return [at, at.scrollTop];
  }
  const page = document.scrollingElement ?? document.documentElement;
  return [page, page.scrollTop];
}
