// A button that opens a list of actions. A slow action shows its progress and can be cancelled.

import { type Signal, signal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Button } from "./button";
import { consume } from "./page";
import { combined } from "./shared";

/** A running action: reports the share that is done, and is aborted by `signal`. */
export interface Task {
  progress(share: number): void;
  signal: AbortSignal;
}

export interface Item {
  label: string;
  /** what it does, in words */
  hint: string;
  /** what the button says for a moment when it is done; default "Done" */
  done?: string;
  run(task: Task): void | Promise<void>;
}

const DONE_MS = 1500;
const FAILED_MS = 8000;

export interface MenuProps {
  label: string;
  /** what the actions are of, where a page has several such menus */
  of?: string;
  items: readonly Item[];
}

export function Menu({ label, of, items }: MenuProps) {
  const open = useMemo(() => signal(false), []);
  const status = useMemo(() => signal<TaskStatus>({}), []);
  const running = useMemo(() => signal<AbortController | null>(null), []);
  const root = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (open.value) root.current?.querySelector<HTMLElement>('[role="menuitem"]')?.focus();
  }, [open.value]);
  // disposed of: nobody waits any more
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
        <Button title="Click to cancel" onClick={() => running.value?.abort()}>
          <span role="status">{status.value.now}</span> <span aria-hidden="true">×</span>
          <span class="hta-hidden">: cancel</span>
        </Button>
      ) : (
        <Button
          aria-haspopup="menu"
          aria-expanded={open.value}
          aria-label={of && `${of}: ${status.value.now || label}`}
          onClick={() => {
            open.value = !open.value;
          }}
        >
          {status.value.now || label}
        </Button>
      )}
      {status.value.failure && (
        <p class="hta-notice" role="alert" data-severity="error">
          {status.value.failure}
        </p>
      )}
      {open.value && (
        <div role="menu" aria-label={of ? `${of}: ${label}` : label}>
          {items.map((item) => (
            <Button
              key={item.label}
              role="menuitem"
              tabIndex={-1}
              title={item.hint}
              onClick={() => {
                close();
                void run(item, status, running);
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

/** The text that replaces the button's label, and what went wrong. */
interface TaskStatus {
  now?: string;
  failure?: string;
}

async function run(
  item: Item,
  status: Signal<TaskStatus>,
  running: Signal<AbortController | null>,
): Promise<void> {
  const controller = new AbortController();
  running.value = controller;
  status.value = { now: `${item.label}…` };
  const progress = (share: number) => {
    status.value = { now: `${item.label} ${Math.round(100 * share)} %` };
  };
  let outcome: TaskStatus = { now: item.done ?? "Done" };
  try {
    await item.run({ progress, signal: controller.signal });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    outcome = controller.signal.aborted ? {} : { failure: `${item.label} failed: ${reason}` };
  }
  running.value = null;
  status.value = outcome;
  setTimeout(
    () => {
      if (status.value === outcome) status.value = {};
    },
    outcome.failure ? FAILED_MS : DONE_MS,
  );
}

function move(root: HTMLElement | null, key: string): void {
  const items = [...(root?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? [])];
  const at = items.findIndex((item) => item.matches(":focus"));
  items[(at + (key === "ArrowDown" ? 1 : -1) + items.length) % items.length]?.focus();
}
