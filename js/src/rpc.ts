// Requests to the kernel over the widget's comm, cancellable by its name.
//
//   browser -> kernel   {rpc: 1, call, method, params}   and   {rpc: 1, call, cancel: true}
//   kernel -> browser   {rpc: 1, call, result} + buffers  or   {rpc: 1, call, error: {type, message}}
//
// The Python half is hta_widgets/widgets/rpc.py.

import { listen, type Model } from "./model";
import { onAbort } from "./page";

export class RpcError extends Error {
  constructor(
    readonly type: string,
    message: string,
  ) {
    super(message);
    this.name = "RpcError";
  }
}

export interface Answer<T> {
  result: T;
  buffers: DataView[];
}

interface Reply {
  rpc?: number;
  call?: string;
  result?: unknown;
  error?: { type: string; message: string };
}

interface Pending {
  resolve(answer: Answer<unknown>): void;
  reject(error: unknown): void;
}

export class Rpc {
  #pending = new Map<string, Pending>();
  #count = 0;
  // Replies reach every view of a model: the prefix identifies the one that sent the request.
  #prefix = Math.random().toString(36).slice(2, 10);

  constructor(
    private readonly model: Model,
    private readonly signal: AbortSignal,
  ) {
    listen(model, "msg:custom", (content, buffers) => this.#settle(content, buffers), signal);
    onAbort(signal, () => this.#cancelAll());
  }

  /** Call Python. Rejects with `RpcError` for an error there, and with `AbortError` once `signal` or the view aborts. */
  call<T>(method: string, params: object = {}, options: { signal?: AbortSignal } = {}): Promise<Answer<T>> {
    const call = `${this.#prefix}.${++this.#count}`;
    return new Promise<Answer<T>>((resolve, reject) => {
      if (this.signal.aborted || options.signal?.aborted) return reject(aborted());
      if (this.model.get("no_kernel")) return reject(new RpcError("NoKernel", "no kernel answers here"));
      const cancel = () => this.#cancel(call);
      const settled = () => options.signal?.removeEventListener("abort", cancel);
      options.signal?.addEventListener("abort", cancel, { once: true });
      this.#pending.set(call, {
        resolve: (answer) => {
          settled();
          resolve(answer as Answer<T>);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      });
      this.model.send({ rpc: 1, call, method, params });
    });
  }

  #settle(content: Reply | null, buffers: DataView[] = []): void {
    if (content?.rpc !== 1 || content.call === undefined) return;
    const pending = this.#pending.get(content.call);
    if (!pending) return;
    this.#pending.delete(content.call);
    if (content.error) pending.reject(new RpcError(content.error.type, content.error.message));
    else pending.resolve({ result: content.result, buffers });
  }

  #cancel(call: string): void {
    const pending = this.#pending.get(call);
    if (!pending) return;
    this.#pending.delete(call);
    this.model.send({ rpc: 1, call, cancel: true });
    pending.reject(aborted());
  }

  #cancelAll(): void {
    for (const call of [...this.#pending.keys()]) this.#cancel(call);
  }
}

function aborted(): DOMException {
  return new DOMException("The request was aborted", "AbortError");
}
