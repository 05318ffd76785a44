// A row or grid of toggle buttons of which any number can be on: the mouse and the keyboard of a list of files.

import type { Signal } from "@preact/signals";
import type { ComponentChild } from "preact";
import { useRef, useState } from "preact/hooks";
import { consume } from "./page";
import { combined, type Keys, pick, ranges } from "./shared";

export interface PickerProps {
  label: string;
  /** what there is, in order */
  all: readonly number[];
  selected: Signal<number[]>;
  className: string;
  /** text for screen readers, and for the tooltip */
  describe(value: number): string;
  /** how its button looks, and where it stands */
  look?(value: number): Record<string, unknown>;
  /** what stands above a button and those that follow */
  heads?: ReadonlyMap<number, ComponentChild>;
  children(value: number): ComponentChild;
}

export function Picker(props: PickerProps) {
  const { label, all, selected, className, describe, look, heads, children } = props;
  const root = useRef<HTMLDivElement>(null);
  const anchor = useRef<number | null>(null);
  // Roving tabindex: one stop for Tab, arrows inside.
  const [current, setCurrent] = useState<number | null>(null);
  const stop = current !== null && all.includes(current) ? current : all[0];
  const on = new Set(selected.value);

  const choose = (value: number, keys: Keys) => {
    selected.value = pick(all, selected.value, value, anchor.current, keys);
    if (!keys.shiftKey) anchor.current = value;
    setCurrent(value);
  };

  const focus = (index: number): number | undefined => {
    const at = Math.max(0, Math.min(all.length - 1, index));
    const value = all[at];
    if (value === undefined) return undefined;
    setCurrent(value);
    choices(root.current)[at]?.focus();
    return value;
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const at = all.indexOf(stop ?? Number.NaN);
    const move = combined(event) ? undefined : step(event.key, at, all.length, columns(root.current));
    if (move !== undefined) {
      if (event.shiftKey && anchor.current === null) anchor.current = stop ?? null;
      const value = focus(move);
      if (event.shiftKey && value !== undefined) choose(value, event);
    } else if (
      (event.key === "Escape" && !combined(event)) ||
      (event.key === "a" && (event.ctrlKey || event.metaKey))
    ) {
      selected.value = [];
    } else return;
    consume(event);
  };

  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    <div ref={root} class={className} role="group" aria-label={label} onKeyDown={onKeyDown}>
      {all.map((value) => [
        heads?.get(value),
        <button
          key={value}
          type="button"
          tabIndex={value === stop ? 0 : -1}
          aria-pressed={on.has(value)}
          aria-label={describe(value)}
          title={describe(value)}
          {...look?.(value)}
          onClick={(event) => choose(value, event)}
        >
          {children(value)}
        </button>,
      ])}
    </div>
  );
}

/** Where a key leads from position `at`; undefined if it leads nowhere. */
export function step(key: string, at: number, count: number, perRow: number): number | undefined {
  switch (key) {
    case "ArrowRight":
      return at + 1;
    case "ArrowLeft":
      return at - 1;
    case "ArrowDown":
      return at + perRow;
    case "ArrowUp":
      return at - perRow;
    case "Home":
      return 0;
    case "End":
      return count - 1;
    default:
      return undefined;
  }
}

/** The buttons of the values, in their order. */
function choices(root: HTMLElement | null): HTMLElement[] {
  return root ? [...root.querySelectorAll<HTMLElement>("button[aria-pressed]")] : [];
}

/** How many buttons stand in the first row as it is laid out now. */
function columns(root: HTMLElement | null): number {
  const buttons = choices(root);
  const below = buttons.findIndex((button) => button.offsetTop > (buttons[0]?.offsetTop ?? 0));
  return below > 0 ? below : 1;
}

/** What is selected, in words, with the way back to all. */
export function PickerStatus({
  of,
  count,
  selected,
}: {
  /** what they are, in the plural */
  of: string;
  count: number;
  selected: Signal<number[]>;
}) {
  const chosen = ranges(selected.value);
  if (count < 2) return null;
  return (
    <>
      <span class="hta-muted hta-cut" aria-live="polite" title={chosen}>
        {chosen === "all" ? `all ${count.toLocaleString("en-US")}` : chosen}
      </span>
      <button
        type="button"
        class="hta-all"
        aria-label={`All ${of}`}
        aria-pressed={chosen === "all"}
        onClick={() => {
          selected.value = [];
        }}
      >
        All
      </button>
    </>
  );
}
