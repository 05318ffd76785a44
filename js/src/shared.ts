// Small things that several views need.

import { type ComponentChild, render } from "preact";
import { element, onAbort } from "./page";

/** Render into the view's element until the view is disposed of. */
export function draw(node: ComponentChild, el: HTMLElement, signal: AbortSignal): void {
  render(node, el);
  onAbort(signal, () => render(null, el));
}

/** Add a style sheet once to the document, or to the shadow tree, that the element is in. */
export function adoptStyles(el: HTMLElement, id: string, css: string): void {
  const root = el.getRootNode();
  const parent = root instanceof ShadowRoot ? root : document.head;
  if (parent.querySelector(`style[data-hta="${id}"]`)) return;
  const style = element("style");
  style.dataset.hta = id;
  style.textContent = css;
  parent.append(style);
}

/** Whether Ctrl, Cmd or Alt was held: those combinations belong to the browser, to the notebook, and to undo. */
export function combined(event: { ctrlKey: boolean; metaKey: boolean; altKey: boolean }): boolean {
  return event.ctrlKey || event.metaKey || event.altKey;
}

export interface Keys {
  shiftKey: boolean;
  ctrlKey: boolean;
  metaKey: boolean;
}

/**
 * The selection after a click on `value`, as in a list of files: plain selects it alone (or all, if it was the only
 * one), Ctrl or Cmd toggles it, Shift selects from `anchor` to it. An empty selection means all.
 */
export function pick(
  all: readonly number[],
  selected: readonly number[],
  value: number,
  anchor: number | null,
  keys: Keys,
): number[] {
  if (keys.shiftKey && anchor !== null) {
    const ends = [all.indexOf(anchor), all.indexOf(value)].sort((a, b) => a - b) as [number, number];
    return everythingIsNothing(all, all.slice(Math.max(0, ends[0]), ends[1] + 1));
  }
  if (keys.ctrlKey || keys.metaKey) {
    const next = selected.includes(value) ? selected.filter((item) => item !== value) : [...selected, value];
    return everythingIsNothing(
      all,
      all.filter((item) => next.includes(item)),
    );
  }
  return selected.length === 1 && selected[0] === value ? [] : [value];
}

function everythingIsNothing(all: readonly number[], chosen: readonly number[]): number[] {
  return chosen.length === all.length ? [] : [...chosen];
}

/** `0-3, 5` for [0, 1, 2, 3, 5]; "all" for none. */
export function ranges(values: readonly number[]): string {
  if (values.length === 0) return "all";
  const parts: string[] = [];
  for (let i = 0; i < values.length; ) {
    let j = i;
    while (j + 1 < values.length && values[j + 1] === (values[j] as number) + 1) j++;
    parts.push(j > i ? `${values[i]}–${values[j]}` : `${values[i]}`);
    i = j + 1;
  }
  return parts.join(", ");
}
