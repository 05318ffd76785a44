// A button that opens a small box of choices; Escape and leaving it close it.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Button } from "./button";
import { consume } from "./page";

export interface PopoverProps {
  label: string;
  title: string;
  /** something is chosen inside */
  pressed: boolean;
  opened?: () => void;
  children: ComponentChildren;
}

export function Popover({ label, title, pressed, opened, children }: PopoverProps) {
  const open = useMemo(() => signal(false), []);
  const root = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    if (open.value) opened?.();
  }, [open.value]);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys of the choices inside
    <span
      ref={root}
      class="hta-menu"
      onFocusOut={(event) => {
        if (event.relatedTarget && !root.current?.contains(event.relatedTarget as Node)) open.value = false;
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !open.value) return;
        consume(event);
        open.value = false;
        root.current?.querySelector<HTMLElement>("button")?.focus();
      }}
    >
      <Button
        title={title}
        aria-expanded={open.value}
        aria-pressed={pressed}
        onClick={() => {
          open.value = !open.value;
        }}
      >
        {label}
      </Button>
      {open.value && (
        <fieldset class="hta-popover" aria-label={label}>
          {children}
        </fieldset>
      )}
    </span>
  );
}

interface RadiosProps<T extends string> {
  label: string;
  choices: readonly (readonly [name: T, label: string])[];
  chosen: T;
  choose(name: T): void;
}

/** Choices of which one is on. */
export function Radios<T extends string>({ label, choices, chosen, choose }: RadiosProps<T>) {
  return (
    <div role="radiogroup" aria-label={label}>
      <p class="hta-muted">{label}</p>
      {choices.map(([name, text]) => (
        <label key={name}>
          <input type="radio" checked={chosen === name} onChange={() => choose(name)} />
          {text}
        </label>
      ))}
    </div>
  );
}
