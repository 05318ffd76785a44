// The browser's half of one Python widget, and its traits as signals.
//
// A trait is state that Python sees too. What changes at 60 Hz (hover, drag, scroll) belongs in a plain signal of
// the view and must never become a trait.

import { effect, signal as makeSignal, type Signal } from "@preact/signals";
import { onAbort } from "./page";

// biome-ignore lint/suspicious/noExplicitAny: callbacks of the Jupyter protocol take whatever the event carries
export type Listener = (...args: any[]) => void;

/** What anywidget gives a view: traits by name, and messages. */
export interface Model {
  // biome-ignore lint/suspicious/noExplicitAny: the trait's type is known to the view that reads it
  get(name: string): any;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, listener: Listener): void;
  off(event?: string | null, listener?: Listener | null): void;
  send(content: unknown, callbacks?: unknown, buffers?: ArrayBuffer[] | ArrayBufferView[]): void;
  /** of hosts that are built on ipywidgets' own models */
  widget_manager?: { get_model(id: string): Promise<{ comm_live?: boolean }> };
}

/** Finds and draws other widgets of the same kernel. */
export interface Host {
  getWidget(ref: string, options?: { signal?: AbortSignal }): Promise<ChildWidget>;
}

export interface ChildWidget {
  render(options: { el: HTMLElement; signal?: AbortSignal }): Promise<void>;
}

export interface ViewProps {
  model: Model;
  el: HTMLElement;
  signal: AbortSignal;
  host: Host;
}

export type View = (props: ViewProps) => void | Promise<void>;

/** Listen until the view is taken down. */
export function listen(model: Model, event: string, listener: Listener, signal: AbortSignal): void {
  model.on(event, listener);
  onAbort(signal, () => model.off(event, listener));
}

const unsaved = new WeakSet<Model>();

/** Save what was assigned in this turn as one message: Python takes it as one action to undo. */
function save(model: Model): void {
  if (unsaved.has(model)) return;
  unsaved.add(model);
  queueMicrotask(() => {
    unsaved.delete(model);
    model.save_changes();
  });
}

/** A trait as a signal, both ways: what Python sets shows up here, what is assigned here is saved to Python. */
export function trait<T>(model: Model, name: string, signal: AbortSignal): Signal<T> {
  const value = makeSignal<T>(model.get(name));
  listen(
    model,
    `change:${name}`,
    () => {
      value.value = model.get(name);
    },
    signal,
  );
  const dispose = effect(() => {
    if (value.value === model.get(name)) return;
    model.set(name, value.value);
    save(model);
  });
  onAbort(signal, dispose);
  return value;
}
