// A button that opens a list of things to do. What takes time tells how far it is, and can be given up.

import { type Signal, signal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Button } from "./button";
import { consume } from "./page";
import { combined } from "./shared";

/** What is being done: hears the share that is done, and is over when it is given up. */
export interface Task {
  progress(share: number): void;
  signal: AbortSignal;
}

export interface Item {
  label: string;
  /** what it does, in words */
  hint: string;
  run(task: Task): void | Promise<void>;
}

const SAID_MS = 1500;
const FAILED_MS = 8000;

export function Menu({ label, items }: { label: string; items: readonly Item[] }) {
  const open = useMemo(() => signal(false), []);
  const said = useMemo(() => signal<Said>({}), []);
  const running = useMemo(() => signal<AbortController | null>(null), []);
  const root = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (open.value) root.current?.querySelector<HTMLElement>('[role="menuitem"]')?.focus();
  }, [open.value]);
  // taken down: nobody waits any more
  useLayoutEffect(() => () => running.peek()?.abort(), []);
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
        if (!open.value || combined(event)) return;
        if (event.key === "Escape") close();
        else if (event.key === "ArrowDown" || event.key === "ArrowUp") move(root.current, event.key);
        else return;
        consume(event);
      }}
    >
      {running.value ? (
        <Button title="Click to give it up" onClick={() => running.value?.abort()}>
          <span role="status">{said.value.now}</span> <span aria-hidden="true">×</span>
          <span class="hta-hidden">: cancel</span>
        </Button>
      ) : (
        <Button
          aria-haspopup="menu"
          aria-expanded={open.value}
          onClick={() => {
            open.value = !open.value;
          }}
        >
          {said.value.now || label}
        </Button>
      )}
      {said.value.failure && (
        <p class="hta-notice" role="alert" data-severity="error">
          {said.value.failure}
        </p>
      )}
      {open.value && (
        <div role="menu" aria-label={label}>
          {items.map((item) => (
            <Button
              key={item.label}
              role="menuitem"
              tabIndex={-1}
              title={item.hint}
              onClick={() => {
                close();
                void run(item, said, running);
              }}
            >
              {item.label}
            </Button>
          ))}
        </div>
      )}
    </div>
  );
}

/** What stands on the button instead of its label, and what went wrong. */
interface Said {
  now?: string;
  failure?: string;
}

async function run(item: Item, said: Signal<Said>, running: Signal<AbortController | null>): Promise<void> {
  const controller = new AbortController();
  running.value = controller;
  said.value = { now: `${item.label}…` };
  const progress = (share: number) => {
    said.value = { now: `${item.label} ${Math.round(100 * share)} %` };
  };
  let told: Said = { now: "Done" };
  try {
    await item.run({ progress, signal: controller.signal });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    told = controller.signal.aborted ? {} : { failure: `${item.label} failed: ${reason}` };
  }
  running.value = null;
  said.value = told;
  setTimeout(
    () => {
      if (said.value === told) said.value = {};
    },
    told.failure ? FAILED_MS : SAID_MS,
  );
}

function move(root: HTMLElement | null, key: string): void {
  const items = [...(root?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? [])];
  const at = items.findIndex((item) => item.matches(":focus"));
  items[(at + (key === "ArrowDown" ? 1 : -1) + items.length) % items.length]?.focus();
}
