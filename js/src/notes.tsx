// What a panel adds in words, each with a button that selects what it is about.

import type { Signal } from "@preact/signals";
import { Button } from "./button";
import { Held } from "./story/body";

/** Asks the explorer around a panel, if there is one, to open the panel named in `detail`. */
export const OPEN = "hta-open";

// biome-ignore lint/suspicious/noExplicitAny: each trait has a type of its own
type Traits = Record<string, Signal<any>>;

/** hta_widgets/widgets/notes.py describes it. */
export interface Note {
  text: string;
  hint?: string;
  heading?: string;
  severity?: "warning" | "note" | "verdict" | "checked" | "open";
  share?: string;
  kind?: string;
  [trait: string]: unknown;
}

export function Notes({ notes, traits }: { notes: readonly Note[]; traits: Traits }) {
  const findings = notes.some((note) => note.severity);
  const select = (note: Note, from: EventTarget | null) => {
    for (const [name, signal] of Object.entries(traits)) {
      if (note[name] != null) signal.value = note[name];
    }
    if (note.kind) {
      const detail = { detail: note.kind, bubbles: true, composed: true };
      from?.dispatchEvent(new CustomEvent(OPEN, detail));
    }
  };
  return (
    <ul
      class="hta-notes"
      aria-label={findings ? "What was found" : notes.some(isGap) ? "The longest gaps" : "Notes"}
    >
      {notes.map((note) => (
        <li key={note.text} data-severity={note.severity}>
          {note.heading && <b>{note.heading}</b>}
          {note.severity && (
            <strong class="hta-share">
              <span class="hta-hidden">{note.severity === "open" ? "unknown" : note.severity}: </span>
              {note.share ?? "?"}
            </strong>
          )}
          <span class="hta-grow">
            <Held text={note.text} />{" "}
            {note.hint && (
              <span class="hta-muted">
                <Held text={note.hint} />
              </span>
            )}
          </span>
          {note.severity !== "open" && note.severity !== "checked" && (
            <Button
              class="hta-note-show"
              aria-label={`Show: ${note.text}`}
              title={titleOf(note)}
              onClick={(event) => select(note, event.currentTarget)}
            >
              Show
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}

function titleOf(note: Note): string {
  if (isGap(note)) return GAP;
  const selects = note.severity || note.names || note.focus;
  if (!note.kind) return "Select what this is about";
  return selects ? "Select what this is about and open its panel" : "Open its panel";
}

const isGap = (note: Note) => !note.severity && note.window != null;
const GAP = "Show this gap: select its time and the event that ends it";
