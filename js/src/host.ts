// Draws views on a plain page, without a kernel: for saved reports and for component tests.

import type { ChildWidget, Host, Listener, Model, View } from "./model";

export interface SentMessage {
  content: unknown;
  buffers: unknown[];
}

/** A widget model made of plain values: it keeps state and notifies listeners, but no kernel answers. */
export class FrozenModel implements Model {
  readonly sent: SentMessage[] = [];
  saved = 0;
  #state: Record<string, unknown>;
  #listeners = new Map<string, Set<Listener>>();

  constructor(state: Record<string, unknown>) {
    this.#state = { ...state };
  }

  // biome-ignore lint/suspicious/noExplicitAny: as in Model
  get(name: string): any {
    return this.#state[name];
  }

  set(name: string, value: unknown): void {
    if (Object.is(this.#state[name], value)) return;
    this.#state[name] = value;
    this.emit(`change:${name}`);
    this.emit("change");
  }

  save_changes(): void {
    this.saved += 1;
  }

  send(content: unknown, _callbacks?: unknown, buffers: ArrayBuffer[] | ArrayBufferView[] = []): void {
    this.sent.push({ content, buffers });
    this.emit("test:sent", content, buffers);
  }

  on(event: string, listener: Listener): void {
    const listeners = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, listeners.add(listener));
  }

  off(event?: string | null, listener?: Listener | null): void {
    if (!event) this.#listeners.clear();
    else if (!listener) this.#listeners.delete(event);
    else this.#listeners.get(event)?.delete(listener);
  }

  /** Deliver an event, as the kernel would. */
  emit(event: string, ...args: unknown[]): void {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) listener(...args);
  }
}

/** The widgets of one page by reference (`anywidget:<id>`), drawn with the given views. */
export class FrozenHost implements Host {
  constructor(
    private readonly models: Record<string, Model>,
    private readonly views: Readonly<Record<string, View>>,
  ) {}

  async getWidget(ref: string): Promise<ChildWidget> {
    const model = this.models[ref];
    if (!model) throw new Error(`no widget ${ref} on this page`);
    const view = this.views[model.get("_view")];
    if (!view) throw new Error(`no view ${model.get("_view")} in this bundle`);
    return {
      render: async ({ el, signal }) =>
        view({ model, el, signal: signal ?? new AbortController().signal, host: this }),
    };
  }
}
