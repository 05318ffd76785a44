// The critical path of what is selected, asked of the kernel: the newest question wins.

import { effect, signal as makeSignal, type Signal } from "@preact/signals";
import { whenGone } from "../page";
import { type Rpc, RpcError } from "../rpc";
import type { Told } from "./bar";
import { decodePath, inflate, type PathLayout } from "./decode";
import { type Ask, fetchChunks } from "./kernel";
import { CriticalPath } from "./path";
import type { Outline } from "./types";

/** What the path depends on, as the kernel takes it. */
export interface Selected {
  ranks: readonly number[];
  iterations: readonly number[];
  window: readonly [number, number] | null;
}

const OFF: Told = { state: "off", text: "" };
/** A window that is being dragged is not asked about until it rests. */
const REST_MS = 200;

/** Ask whenever `on` and the selection say so, until the view ends; hands the path, or null, to `show`. */
export function askPath(
  rpc: Rpc,
  outline: Outline,
  on: Signal<boolean>,
  selected: () => Selected,
  show: (path: CriticalPath | null) => void,
  signal: AbortSignal,
): Signal<Told> {
  const told = makeSignal(OFF);
  const dispose = effect(() => {
    const question = selected();
    if (!on.value) {
      told.value = OFF;
      show(null);
      return;
    }
    const moot = new AbortController();
    told.value = { state: "busy", text: "" };
    const timer = setTimeout(async () => {
      const ask: Ask = (method, params) => rpc.call(method, params, { signal: moot.signal });
      try {
        const { result, chunks } = await fetchChunks<PathLayout>(ask, "path", question);
        const path = decodePath(await inflate(chunks), result);
        if (moot.signal.aborted) return;
        show(new CriticalPath(path, outline));
        told.value = { state: "shown", text: result.message };
      } catch (error) {
        if (moot.signal.aborted || signal.aborted) return;
        show(null);
        told.value = { state: "missing", text: error instanceof RpcError ? error.message : String(error) };
      }
    }, REST_MS);
    return () => {
      clearTimeout(timer);
      moot.abort();
    };
  });
  whenGone(signal, dispose);
  return told;
}
