// What keys and gestures do, in one dialog for the whole explorer.

import { render } from "preact";
import { Button } from "./button";
import { isTyping } from "./history";
import { consume, element } from "./page";
import { combined } from "./shared";

type Section = [title: string, entries: [keys: string, what: string][]];

const ANYWHERE: Section[1] = [
  ["?", "this help"],
  ["Tab", "to the next part; arrow keys move inside it"],
];

const TIMELINE: Section = [
  "Timeline",
  [
    ["drag", "select a window of time"],
    ["click", "look at one slice"],
    ["W S, Ctrl/⌘ wheel", "zoom; W S with Shift: by more"],
    ["A D, ← →, Shift drag", "pan; keys with Shift: by more"],
    ["Page ↑ ↓, after a click wheel", "scroll the lanes"],
    [", .", "previous, next slice"],
    ["↑ ↓", "caller, first call"],
    ["< >", "previous, next slice of the same name"],
    ["L, Shift L", "longest event of the selection, then the next longest; back"],
    ["I, Shift I", "longest gap of a device, then the next longest; back"],
    ["N, Shift N", "next, previous match"],
    ["F", "fit the slice into the view"],
    ["R", "select the slice's time"],
    ["H", "hide the lanes under the pointer: the filter above them has it"],
    ["P, click on a name", "keep the lanes at the top; again: let them go"],
    ["G", "go between launch and kernel"],
    ["Shift click, X", "measure from the focused slice to this one, to the next"],
    ["M, click on a flag", "flag the moment under the pointer; its note"],
    ["Shift M", "next flag"],
    ["[ ]", "previous and next iteration"],
    ["0", "show all"],
    ["Esc", "drop slice, then window"],
  ],
];

const EXPLORER: readonly Section[] = [
  [
    "Everywhere",
    [
      ["/, Ctrl/⌘ K", "go to a panel, event name, rank or iteration"],
      ...ANYWHERE,
      ["Ctrl/⌘ Z", "undo the last selection"],
      ["Shift Ctrl/⌘ Z", "redo"],
    ],
  ],
  [
    "Ranks and iterations",
    [
      ["click, Enter", "select one alone; again: all"],
      ["Ctrl/⌘ click", "add or take away one"],
      ["Shift click, Shift → ←", "select a range"],
      ["Esc", "select all"],
    ],
  ],
  [
    "Panels",
    [
      ["click, Enter", "select what a mark stands for"],
      ["drag, Shift → ←", "select time in a chart over time"],
      ["Z, double click", "go into a call of the call stacks"],
      ["← → Home End", "move along the panel bar"],
      ["Enter, Space", "show or hide the panel"],
    ],
  ],
  [
    "Job",
    [
      ["drag, Shift arrow keys", "select ranks and iterations, or both sides of a wait"],
      ["double click, +", "go into a row of several ranks"],
    ],
  ],
  [
    "Table of events",
    [
      ["↑ ↓ Page Home End", "move"],
      ["click, Enter", "look at the event"],
      ["F", "choose all of its name"],
      ["Esc", "look away"],
    ],
  ],
  [
    "Selection",
    [
      ["×, Delete", "drop a clause"],
      ["Enter", "search at once"],
      ["Esc", "clear the search"],
    ],
  ],
  TIMELINE,
];

const LINES: Section = [
  "Table of changes",
  [
    ["↑ ↓ Home End", "move"],
    ["click, Enter", "light up the line's events in the timelines; again: none"],
    ["click a heading", "order by it: one way, the other, as it was"],
  ],
];

/** What there is where runs are compared; frozen, the table stays as it is. */
export function comparison(frozen: boolean): readonly Section[] {
  return [["Everywhere", ANYWHERE], ...(frozen ? [] : [LINES]), TIMELINE];
}

/** Show the help over the page, in the colours of the part that `inside` is in. One at a time. */
export function openHelp(inside: HTMLElement, sections = EXPLORER): void {
  const root = inside.closest<HTMLElement>(".hta") ?? inside;
  if (root.querySelector(":scope > dialog.hta-help")) return;
  const dialog = element("dialog", "hta-help");
  dialog.setAttribute("aria-labelledby", "hta-help-title");
  dialog.setAttribute("aria-modal", "true");
  const close = () => dialog.close();
  // neither the notebook nor the part below hears the keys that are meant for the dialog
  dialog.addEventListener("keydown", (event) => event.stopPropagation());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) close();
  });
  dialog.addEventListener("close", () => {
    render(null, dialog);
    dialog.remove();
  });
  render(<Help {...{ sections, close }} />, dialog);
  root.append(dialog);
  dialog.showModal(); // the browser keeps the focus inside, closes on Escape and gives the focus back
}

/** `?` opens the help while the focus is inside the element. */
export function bindHelp(el: HTMLElement, signal: AbortSignal, sections = EXPLORER): void {
  el.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "?" || combined(event) || isTyping(event)) return;
      consume(event);
      openHelp(el, sections);
    },
    { signal },
  );
}

function Help({ sections, close }: { sections: readonly Section[]; close(): void }) {
  return (
    <div class="hta-help-page">
      <div class="hta-bar">
        <h3 id="hta-help-title">Keys and gestures</h3>
        <span class="hta-grow" />
        <Button onClick={close}>Close</Button>
      </div>
      <div class="hta-help-sections">
        {sections.map(([title, entries]) => (
          <section key={title}>
            <h4>{title}</h4>
            <dl>
              {entries.map(([keys, what]) => (
                <div key={keys} class="hta-help-entry">
                  <dt>{keys}</dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </div>
  );
}
