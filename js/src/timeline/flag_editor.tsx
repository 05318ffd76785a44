// Where the note of a flag is written: a line at its place on the time axis.

import { render } from "preact";
import { Button } from "../button";
import { element, onAbort } from "../page";
import type { Flag } from "./flags";
import { TOP } from "./frame";

const WIDTH = 260;
/** As Python takes it. */
const LONGEST_NOTE = 1000;

export interface Editing {
  /** the note was written */
  keep(flag: Flag): void;
  remove(flag: Flag): void;
  /** the keys are the timeline's again */
  leave(): void;
}

export class FlagEditor {
  readonly el = element("div", "hta-timeline-flag");

  constructor(
    private readonly to: Editing,
    signal: AbortSignal,
  ) {
    this.el.hidden = true;
    this.el.style.top = `${TOP}px`;
    this.el.style.width = `${WIDTH}px`;
    // what is typed and pressed here is not meant for the lanes below
    for (const name of ["keydown", "pointerdown", "pointerup", "pointermove", "wheel"])
      this.el.addEventListener(name, (event) => event.stopPropagation(), { signal });
    onAbort(signal, () => render(null, this.el));
  }

  open(flag: Flag, x: number, width: number): void {
    this.el.hidden = false;
    this.el.style.left = `${Math.max(0, Math.min(x, width - WIDTH - 12))}px`;
    render(<Form key={flag[0]} flag={flag} done={(act) => this.#close(act)} to={this.to} />, this.el);
    const input = this.el.querySelector("input");
    input?.focus({ preventScroll: true });
    input?.select();
  }

  #close(act: () => void): void {
    if (this.el.hidden) return;
    const inside = this.el.contains((this.el.getRootNode() as Document | ShadowRoot).activeElement);
    this.el.hidden = true;
    render(null, this.el);
    act();
    if (inside) this.to.leave();
  }
}

interface Props {
  flag: Flag;
  to: Editing;
  done(act: () => void): void;
}

function Form({ flag, to, done }: Props) {
  const [time, before] = flag;
  const keep = (form: HTMLFormElement) => {
    const note = form.querySelector("input")?.value.trim() ?? before;
    done(() => {
      if (note !== before) to.keep([time, note]);
    });
  };
  return (
    <form
      aria-label="Flag"
      onSubmit={(event) => {
        event.preventDefault();
        keep(event.currentTarget);
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        done(() => {});
      }}
      onFocusOut={(event) => {
        const form = event.currentTarget;
        if (!form.contains(event.relatedTarget as Node | null)) keep(form);
      }}
    >
      <input
        class="hta-search"
        aria-label="Note of the flag"
        placeholder="Note"
        maxLength={LONGEST_NOTE}
        spellcheck={false}
        defaultValue={before}
      />
      <Button title="Remove this flag" onClick={() => done(() => to.remove(flag))}>
        Remove
      </Button>
    </form>
  );
}
