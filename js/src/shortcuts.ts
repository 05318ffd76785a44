// Keys pressed inside a part must not edit the notebook: `d d` deletes a cell, `0 0` restarts the kernel.
//
// JupyterLab, Notebook and Colab listen on the document, and Lab leaves a key alone if the focused element itself says
// so (it looks further up only after its own selectors had their chance). The window hears the key first.

const SUPPRESS = "data-lm-suppress-shortcuts";

/** With Ctrl or Cmd: undo, redo, select all, copy and the launcher are for the part; saving and the rest stay the notebook's. */
const OURS = new Set(["z", "y", "a", "c", "k"]);

export function keepShortcuts(el: HTMLElement, signal: AbortSignal): void {
  window.addEventListener(
    "keydown",
    (event) => {
      const target = event.composedPath()[0];
      if (!(target instanceof Element) || !el.contains(target)) return;
      const notebooks = (event.ctrlKey || event.metaKey) && !OURS.has(event.key.toLowerCase());
      if (notebooks) target.removeAttribute(SUPPRESS);
      else target.setAttribute(SUPPRESS, "true");
    },
    { capture: true, signal },
  );
}
