// A button that opens a list of things to do.

import { type Signal, signal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";

export interface Item {
  label: string;
  /** what it does, in words */
  hint: string;
  run(): void | Promise<void>;
}

const SAID_MS = 1500;

export function Menu({ label, items }: { label: string; items: readonly Item[] }) {
  const open = useMemo(() => signal(false), []);
  const said = useMemo(() => signal(""), []);
  const root = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (open.value) root.current?.querySelector<HTMLElement>('[role="menuitem"]')?.focus();
  }, [open.value]);
  const close = () => {
    open.value = false;
    root.current?.querySelector<HTMLElement>("button")?.focus();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys of the menu inside
    <div
      ref={root}
      class="hta-menu"
      onFocusOut={(event) => {
        if (!root.current?.contains(event.relatedTarget as Node | null)) open.value = false;
      }}
      onKeyDown={(event) => {
        if (!open.value) return;
        if (event.key === "Escape") close();
        else if (event.key === "ArrowDown" || event.key === "ArrowUp") move(root.current, event.key);
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      <button
        type="button"
        aria-haspopup="menu"
        aria-expanded={open.value}
        onClick={() => {
          open.value = !open.value;
        }}
      >
        {said.value || label}
      </button>
      {open.value && (
        <div role="menu" aria-label={label}>
          {items.map((item) => (
            <button
              key={item.label}
              type="button"
              role="menuitem"
              tabIndex={-1}
              title={item.hint}
              onClick={async () => {
                close();
                await run(item, said);
              }}
            >
              {item.label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

async function run(item: Item, said: Signal<string>): Promise<void> {
  try {
    await item.run();
    said.value = "Done";
  } catch {
    said.value = "Failed";
  }
  setTimeout(() => {
    said.value = "";
  }, SAID_MS);
}

function move(root: HTMLElement | null, key: string): void {
  const items = [...(root?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? [])];
  const at = items.findIndex((item) => item.matches(":focus"));
  items[(at + (key === "ArrowDown" ? 1 : -1) + items.length) % items.length]?.focus();
}
