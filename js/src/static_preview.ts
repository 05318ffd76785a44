// Tells Python in which cell a view is on display: there a picture stands in for it when the notebook is opened without a
// kernel (hta_widgets/widgets/static_preview.py). JupyterLab and Notebook tell a cell's execution by its prompt alone.

import type { Model } from "./model";
import { whenGone } from "./page";

export function tellShown(model: Model, el: HTMLElement, signal: AbortSignal): void {
  const view = Math.random().toString(36).slice(2);
  const tell = (method: string, params: object) =>
    model.send({ rpc: 1, id: `${view}.${method}`, method, params: { view, ...params } });

  let prompt: Element | null | undefined;
  const look = () => {
    const count = /\d+/.exec(prompt?.textContent ?? "")?.[0];
    if (!count) return;
    counted.disconnect();
    tell("view_opened", { count: Number(count) });
    whenGone(signal, () => tell("view_closed", {}));
  };
  // "[*]:" while the cell runs
  const counted = new MutationObserver(look);
  // hosts draw a view first, and give it its place then
  const placed = new ResizeObserver(() => {
    if (!el.isConnected) return;
    placed.disconnect();
    prompt = el.closest(".jp-Cell")?.querySelector(".jp-InputPrompt");
    if (!prompt || model.get("silent")) return;
    counted.observe(prompt, { childList: true, characterData: true, subtree: true });
    look();
  });
  placed.observe(el);
  whenGone(signal, () => {
    placed.disconnect();
    counted.disconnect();
  });
}
