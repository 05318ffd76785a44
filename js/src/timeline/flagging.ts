// Flags moments of the timeline, goes from one to the next, and has their notes written.

import { FlagEditor } from "./flag_editor";
import { type Flag, flagAt, nextFlag, withFlag, withoutFlag } from "./flags";
import { xOf } from "./frame";
import type { Timeline } from "./timeline";

export class Flagging {
  flags: readonly Flag[] = [];
  readonly #editor: FlagEditor;
  /** the flag that was looked at last */
  #visited = Number.NaN;

  constructor(
    private readonly timeline: Timeline,
    private readonly save: (flags: readonly Flag[]) => void,
    signal: AbortSignal,
  ) {
    const editing = {
      keep: (flag: Flag) => save(withFlag(this.flags, flag)),
      remove: ([time]: Flag) => save(withoutFlag(this.flags, time)),
      leave: () => timeline.el.focus({ preventScroll: true }),
    };
    this.#editor = new FlagEditor(editing, signal);
  }

  get el(): HTMLElement {
    return this.#editor.el;
  }

  /** Flag the moment under the pointer, else where the focused slice begins, and ask for a note. */
  place(): void {
    const { hover, focus, view, outline } = this.timeline;
    if (outline.replayed) {
      this.timeline.tellReplayed("flag moments");
      return;
    }
    const time = Math.round(hover.time ?? focus.slice?.start ?? (view.t0 + view.t1) / 2);
    const flag = this.flags.find((one) => one[0] === time) ?? ([time, ""] as const);
    this.save(withFlag(this.flags, flag));
    this.#edit(flag);
  }

  /** Look at the next flag after the last one that was looked at, else after the middle of the view. */
  goToNext(): void {
    const { t0, t1 } = this.timeline.view;
    const isSeen = t0 <= this.#visited && this.#visited <= t1;
    const flag = nextFlag(this.flags, isSeen ? this.#visited : (t0 + t1) / 2);
    if (!flag) return;
    this.timeline.look({ t0: flag[0] - (t1 - t0) / 2, t1: flag[0] + (t1 - t0) / 2 });
    this.#edit(flag);
  }

  /** Have the note written of the flag at a point; false where there is none. */
  editAt(x: number, y: number): boolean {
    const flag = flagAt(this.timeline.place, this.flags, x, y);
    if (flag) this.#edit(flag);
    return flag !== undefined;
  }

  #edit(flag: Flag): void {
    const { place } = this.timeline;
    this.#visited = flag[0];
    this.#editor.open(flag, xOf(place, flag[0]), place.width);
  }
}
