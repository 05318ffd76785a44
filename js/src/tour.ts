// What is where, in five steps. Once it was begun, it is offered in the launcher only.

import { effect, type Signal, signal } from "@preact/signals";
import { onAbort } from "./page";
import { remember, remembered } from "./remembered";
import type { Told } from "./toast";

const NAME = "tour";

/** What is lit up, and what is said about it. */
const STEPS: readonly [where: string, text: string][] = [
  [
    '[data-area="story"]',
    "Where the time goes and what can be saved. Click a part of the bar, or press 1 to 9, to see its evidence; Esc returns.",
  ],
  [
    ".hta-controls",
    "The selection: every panel answers about these ranks, iterations and names. Undo with Ctrl+Z.",
  ],
  [
    '[data-area="timeline"]',
    "Every event. Drag to select time, click for details; W S zoom, A D pan, ? lists all keys.",
  ],
  [
    ".hta-aside",
    "What a finding advises; or all about what was clicked: its launch, its lines of Python, the same on other ranks.",
  ],
  [".hta-panel-bar", "Further analyses, the ones that matter here first. / finds anything by its name."],
];

export class Tour {
  /** whether it has been begun in this browser */
  readonly known: Signal<boolean> = signal(remembered(NAME, "") !== null);
  #told: Told | null = null;

  constructor(
    private readonly el: HTMLElement,
    private readonly told: Signal<Told | null>,
    end: AbortSignal,
  ) {
    // whatever is said instead ends it
    const dispose = effect(() => {
      if (told.value !== this.#told) this.#light(null);
    });
    onAbort(end, dispose);
  }

  begin(): void {
    remember(NAME, "begun", "");
    this.known.value = true;
    this.#go(0);
  }

  #go(at: number): void {
    const steps = STEPS.filter(([where]) => this.el.querySelector(where));
    const step = steps[at];
    if (!step) {
      this.told.value = null;
      return;
    }
    const [where, text] = step;
    this.#told = {
      stays: true,
      text: `${at + 1} of ${steps.length}: ${text}`,
      actions: [
        { label: at + 1 < steps.length ? "Next" : "Done", run: () => this.#go(at + 1) },
        ...(at > 0 ? [{ label: "Back", run: () => this.#go(at - 1) }] : []),
      ],
    };
    this.told.value = this.#told;
    this.#light(this.el.querySelector<HTMLElement>(where));
  }

  #light(place: HTMLElement | null): void {
    for (const lit of this.el.querySelectorAll("[data-lit]")) lit.removeAttribute("data-lit");
    place?.setAttribute("data-lit", "");
    place?.scrollIntoView({ block: "nearest" });
  }
}
