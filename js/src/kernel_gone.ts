// A part that no kernel answers still looks alive: a line says so. There is none any more after a restart, and none from
// the start where a notebook was opened again and the part came from the widget state that was saved in it.

import { listen, type Model, type ViewProps } from "./model";
import { element, whenGone } from "./page";

const RESTARTED =
  "The kernel that answered here was restarted: what you see stays, but does not change. Run the cell again.";
const SAVED = "No kernel answers here: you see the last state. Run the cell to explore further.";

/** Say so when the kernel goes: ipywidgets tells a model when it loses its kernel, and never joins the two again. */
export function tellEnd(props: ViewProps): void {
  listen(props.model, "comm_live_update", () => tell(props, RESTARTED), props.signal);
}

/** Say that the part came from a saved notebook. */
export function tellSaved(props: ViewProps): void {
  tell(props, SAVED);
}

/**
 * Make the part a frozen one (see `Rpc.call`) if it has no kernel; whether it is one. What ipywidgets knows of that is
 * on the runtime's model, the only one that a view knows the name of; other hosts know nothing of the kind.
 */
export async function freezeSaved(model: Model): Promise<boolean> {
  const runtime = String(model.get("_runtime")).replace("anywidget:", "");
  const found = await model.widget_manager?.get_model(runtime).catch(() => undefined);
  if (found?.comm_live !== false) return false;
  model.set("frozen", true);
  model.set("silent", true);
  return true;
}

/** Once for the outermost part. */
function tell({ el, signal }: ViewProps, text: string): void {
  if (el.parentElement?.closest(".hta") || el.querySelector(":scope > .hta-ended")) return;
  const notice = element("p", "hta-notice hta-ended");
  notice.dataset.severity = "warning";
  notice.setAttribute("role", "status");
  notice.textContent = text;
  el.prepend(notice);
  whenGone(signal, () => notice.remove());
}
