// Breadcrumb: the selection in words, each clause with a way to drop it; search, undo, redo, copy code, help.

import { computed, signal as makeSignal } from "@preact/signals";
import type { ComponentChild } from "preact";
import { useRef } from "preact/hooks";
import { Button } from "../button";
import { ALL, type Clause, clausesOf, type Selected, selectedIn } from "../clauses";
import { copyText } from "../export";
import { bindHelp, openHelp } from "../help";
import { bindUndo, requestStep } from "../history";
import { trait, type View } from "../model";
import { consume } from "../page";
import { Rpc } from "../rpc";
import { SearchBox } from "../search";
import { combined, draw } from "../shared";

const COPIED_MS = 1500;

export const breadcrumb: View = ({ model, el, signal }) => {
  const rpc = new Rpc(model, signal);
  const selected = selectedIn(model, signal);
  const canUndo = trait<boolean>(model, "can_undo", signal);
  const canRedo = trait<boolean>(model, "can_redo", signal);
  const code = trait<string>(model, "code", signal);
  const copied = makeSignal(false);
  const clauses = computed(() =>
    clausesOf(
      Object.fromEntries(
        Object.entries(selected).map(([name, { value }]) => [name, value]),
      ) as unknown as Selected,
    ),
  );
  bindUndo(el, rpc, signal);
  bindHelp(el, signal);

  /** All in one message, which Python takes as a single action. */
  const drop = (traits: (keyof Selected)[]) => {
    for (const name of traits) model.set(name, ALL[name]);
    model.save_changes();
  };

  const copy = async () => {
    await copyText(code.value);
    copied.value = true;
    setTimeout(() => {
      copied.value = false;
    }, COPIED_MS);
  };

  function Breadcrumb() {
    return (
      <section class="hta-breadcrumb" aria-label="Selection">
        <Clauses clauses={clauses.value} drop={drop} />
        <SearchBox query={selected.query} signal={signal} />
        <div class="hta-tools">
          <Tool label="Undo" keys="Ctrl+Z" disabled={!canUndo.value} onClick={() => requestStep(rpc, "undo")}>
            <path d="M3 6h6a4 4 0 0 1 0 8H6M6 3 3 6l3 3" />
          </Tool>
          <Tool
            label="Redo"
            keys="Shift+Ctrl+Z"
            disabled={!canRedo.value}
            onClick={() => requestStep(rpc, "redo")}
          >
            <path d="M13 6H7a4 4 0 0 0 0 8h3M10 3l3 3-3 3" />
          </Tool>
          <Button onClick={copy} title={code.value}>
            {copied.value ? "Copied" : "Copy code"}
          </Button>
          <Button aria-label="Keys and gestures" title="Keys and gestures (?)" onClick={() => openHelp(el)}>
            ?
          </Button>
        </div>
      </section>
    );
  }
  draw(<Breadcrumb />, el, signal);
};

function Clauses({ clauses, drop }: { clauses: Clause[]; drop(traits: (keyof Selected)[]): void }) {
  const list = useRef<HTMLUListElement>(null);
  /** Focus moves to the clause that takes the place, else to the previous one, else it stays nearby. */
  const dropAt = (index: number) => {
    const clause = clauses[index];
    if (!clause) return;
    const buttons = list.current?.querySelectorAll<HTMLElement>(".hta-clause button") ?? [];
    const next = buttons[index + 1] ?? buttons[index - 1];
    if (next) next.focus();
    else list.current?.focus();
    drop([clause.trait]);
  };
  return (
    <ul ref={list} class="hta-clauses" tabIndex={-1} aria-label="Selected" aria-live="polite">
      {clauses.length === 0 && <li class="hta-muted">the whole job</li>}
      {clauses.map(({ trait: name, text, title }, index) => (
        <li key={name} class="hta-clause" data-trait={name}>
          <span title={title}>{text}</span>
          <Button
            aria-label={`Drop ${text}`}
            title="Drop"
            onClick={() => dropAt(index)}
            onKeyDown={(event) => {
              if (combined(event) || (event.key !== "Delete" && event.key !== "Backspace")) return;
              consume(event);
              dropAt(index);
            }}
          >
            ×
          </Button>
        </li>
      ))}
      {clauses.length > 1 && (
        <li>
          <Button
            class="hta-quiet"
            onClick={() => {
              list.current?.focus();
              drop(clauses.map((clause) => clause.trait));
            }}
          >
            Clear
          </Button>
        </li>
      )}
    </ul>
  );
}

interface ToolProps {
  label: string;
  keys: string;
  disabled: boolean;
  onClick(): void;
  children: ComponentChild;
}

/** An icon button. It stays focusable while it is disabled, so that a click does not lose the focus. */
function Tool({ label, keys, disabled, onClick, children }: ToolProps) {
  return (
    <Button
      class="hta-icon"
      aria-label={label}
      title={`${label} (${keys})`}
      aria-disabled={disabled}
      onClick={() => {
        if (!disabled) onClick();
      }}
    >
      <svg viewBox="0 0 16 16" aria-hidden="true">
        {children}
      </svg>
    </Button>
  );
}
