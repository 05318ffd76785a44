// One box to go anywhere: panels, names of events, ranks, iterations and commands, by typing a part of them.

import { useSignal } from "@preact/signals";
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { isTyping } from "./history";
import { consume, element } from "./page";
import { combined } from "./shared";
import { visible } from "./visible";

export interface Choice {
  group: string;
  label: string;
  /** more about it, which is searched too */
  detail?: string;
  /** what else people type who look for it; not shown */
  keywords?: string;
  run(): void;
}

export interface Choices {
  /** what there is for a text, in the order in which it is listed */
  now(text: string): Choice[];
  /** what takes a moment to find; goes after the others */
  later(text: string): Promise<Choice[]>;
}

/** Show the launcher over the page, in the colours of the part that `inside` is in. One at a time. */
export function openLauncher(inside: HTMLElement, choices: Choices): void {
  const root = inside.closest<HTMLElement>(".hta") ?? inside;
  if (root.querySelector(":scope > dialog")) return;
  const dialog = element("dialog", "hta-help hta-launcher");
  dialog.setAttribute("aria-label", "Go to");
  dialog.addEventListener("keydown", (event) => event.stopPropagation());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => {
    render(null, dialog);
    dialog.remove();
  });
  const choose = (choice: Choice) => {
    dialog.close();
    choice.run();
  };
  render(<Launcher {...{ choices, choose }} />, dialog);
  root.append(dialog);
  dialog.showModal();
  dialog.querySelector("input")?.focus();
}

/** `/` and Ctrl+K open it while the focus is inside the element. */
export function bindLauncher(el: HTMLElement, choices: Choices, signal: AbortSignal): void {
  el.addEventListener(
    "keydown",
    (event) => {
      const named = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k";
      if (!named && (event.key !== "/" || combined(event) || isTyping(event))) return;
      consume(event);
      openLauncher(el, choices);
    },
    { signal },
  );
}

/** Whether all words of a text occur in some of the others, in whatever case. */
export function mentions(text: string, ...parts: (string | undefined)[]): boolean {
  const whole = parts.join(" ").toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => whole.includes(word));
}

function Launcher({ choices, choose }: { choices: Choices; choose(choice: Choice): void }) {
  const text = useSignal("");
  const found = useSignal<{ text: string; choices: Choice[] }>({ text: "", choices: [] });
  const at = useSignal(0);
  const list = useRef<HTMLDivElement>(null);

  useEffect(() => {
    let current = true;
    const asked = text.value.trim();
    choices
      .later(asked)
      .then((more) => {
        if (current) found.value = { text: asked, choices: more };
      })
      .catch(() => undefined); // without a kernel there are no names to find
    return () => {
      current = false;
    };
  }, [text.value]);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [at.value]);

  const offered = () => {
    const wanted = text.value.trim();
    return [...choices.now(wanted), ...(found.value.text === wanted ? found.value.choices : [])];
  };
  const all = offered();
  const chosen = Math.min(at.value, all.length - 1);
  const groups = [...new Set(all.map((choice) => choice.group))];

  const onKeyDown = (event: KeyboardEvent) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const now = offered(); // Enter may come before what was typed last is drawn
    const choice = now[Math.min(at.value, now.length - 1)];
    if (move) at.value = (chosen + move + all.length) % Math.max(all.length, 1);
    else if (event.key === "Enter" && choice) choose(choice);
    else return;
    consume(event);
  };

  return (
    <div class="hta-help-page">
      <input
        type="text"
        class="hta-search"
        role="combobox"
        aria-expanded="true"
        aria-controls="hta-launcher-list"
        aria-activedescendant={all.length ? `hta-choice-${chosen}` : undefined}
        aria-autocomplete="list"
        aria-label="Panel, event name, rank, iteration or command"
        placeholder="Panel, event name, rank, iteration or command"
        spellcheck={false}
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value; // as it was typed: a space at its end begins the next word
          at.value = 0;
        }}
        onKeyDown={onKeyDown}
      />
      <div ref={list} id="hta-launcher-list" class="hta-choices" role="listbox" aria-label="What there is">
        {groups.map((group) => (
          // biome-ignore lint/a11y/useSemanticElements: options stand in groups of a list box
          <div key={group} role="group" aria-label={group}>
            <div class="hta-fact-label" aria-hidden="true">
              {group}
            </div>
            {all.map(
              (choice, index) =>
                choice.group === group && (
                  // biome-ignore lint/a11y/useKeyWithClickEvents: the box above has the keys
                  // biome-ignore lint/a11y/useFocusableInteractive: and the focus
                  <div
                    key={`${group} ${choice.label}`}
                    id={`hta-choice-${index}`}
                    class="hta-choice"
                    role="option"
                    aria-selected={index === chosen}
                    onClick={() => choose(choice)}
                  >
                    <span class="hta-cut">{visible(choice.label)}</span>
                    {choice.detail && <span class="hta-muted hta-cut">{visible(choice.detail)}</span>}
                  </div>
                ),
            )}
          </div>
        ))}
      </div>
      <p class="hta-muted" role="status">
        {all.length === 0 ? "Nothing is called that." : ""}
      </p>
    </div>
  );
}
