// Requests the critical path of the selection from the kernel. The newest request wins.

import { effect, signal as makeSignal, type Signal } from "@preact/signals";
import { onAbort } from "../page";
import { type Rpc, RpcError } from "../rpc";
import type { PathStatus } from "./bar";
import { decodePath, inflate, type PathLayout } from "./decode";
import { type Call, fetchChunks } from "./kernel";
import { CriticalPath } from "./path";
import type { Outline } from "./types";

/** What the path depends on, as the kernel takes it. */
export interface Selected {
  ranks: readonly number[];
  iterations: readonly number[];
  window: readonly [number, number] | null;
}

const OFF: PathStatus = { state: "off", text: "" };
/** A window that is being dragged is not requested until it rests. */
const REST_MS = 200;

/** Request the path whenever `on` or the selection changes, until `signal` aborts; `show` gets it, or null. */
export function requestPath(
  rpc: Rpc,
  outline: Outline,
  on: Signal<boolean>,
  selected: () => Selected,
  show: (path: CriticalPath | null) => void,
  signal: AbortSignal,
): Signal<PathStatus> {
  const status = makeSignal(OFF);
  const dispose = effect(() => {
    const params = selected();
    if (!on.value) {
      status.value = OFF;
      show(null);
      return;
    }
    const request = new AbortController();
    status.value = { state: "busy", text: "" };
    const timer = setTimeout(async () => {
      const call: Call = (method, args) => rpc.call(method, args, { signal: request.signal });
      try {
        const { result, chunks } = await fetchChunks<PathLayout>(call, "path", params);
        const path = decodePath(await inflate(chunks), result);
        if (request.signal.aborted) return;
        show(new CriticalPath(path, outline));
        status.value = { state: "shown", text: result.message };
      } catch (error) {
        if (request.signal.aborted || signal.aborted) return;
        show(null);
        status.value = { state: "missing", text: error instanceof RpcError ? error.message : String(error) };
      }
    }, REST_MS);
    return () => {
      clearTimeout(timer);
      request.abort();
    };
  });
  onAbort(signal, dispose);
  return status;
}
