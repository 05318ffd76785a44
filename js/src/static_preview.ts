// Reports to Python in which cell a view is on display, so that a static picture can replace it when the notebook is
// opened without a kernel (hta_widgets/widgets/static_preview.py). In JupyterLab and Notebook only the prompt shows
// which execution of a cell this is.

import type { Model } from "./model";
import { onAbort } from "./page";

export function announceView(model: Model, el: HTMLElement, signal: AbortSignal): void {
  const view = Math.random().toString(36).slice(2);
  const send = (method: string, params: object) =>
    model.send({ rpc: 1, call: `${view}.${method}`, method, params: { view, ...params } });

  let prompt: Element | null | undefined;
  const look = () => {
    const count = /\d+/.exec(prompt?.textContent ?? "")?.[0];
    if (!count) return;
    counted.disconnect();
    send("view_opened", { count: Number(count) });
    onAbort(signal, () => send("view_closed", {}));
  };
  // "[*]:" while the cell runs
  const counted = new MutationObserver(look);
  // hosts draw a view first, and give it its place then
  const placed = new ResizeObserver(() => {
    if (!el.isConnected) return;
    placed.disconnect();
    prompt = el.closest(".jp-Cell")?.querySelector(".jp-InputPrompt");
    if (!prompt || model.get("no_kernel")) return;
    counted.observe(prompt, { childList: true, characterData: true, subtree: true });
    look();
  });
  placed.observe(el);
  onAbort(signal, () => {
    placed.disconnect();
    counted.disconnect();
  });
}
