// A part without a kernel still looks alive, so a notice says that it is not. The kernel is gone after a restart;
// and there is none from the start when a reopened notebook restores the part from its saved widget state.

import { listen, type Model, type ViewProps } from "./model";
import { element, onAbort } from "./page";

const RESTARTED = "The kernel was restarted: what you see stays, but does not change. Run the cell again.";
const SAVED = "No kernel answers here: you see the last state. Run the cell to explore further.";

/** Show a notice once the kernel is gone: ipywidgets reports the loss to the model and never reconnects it. */
export function watchKernel(props: ViewProps): void {
  listen(props.model, "comm_live_update", () => showNotice(props, RESTARTED), props.signal);
}

/** Show a notice that the part was restored from a saved notebook. */
export function showSavedNotice(props: ViewProps): void {
  showNotice(props, SAVED);
}

/**
 * Freeze the part (see `Rpc.call`) if it has no kernel, and return whether it is frozen. ipywidgets records this on
 * the runtime's model, the only one whose name a view knows; other hosts do not record it.
 */
export async function freezeSaved(model: Model): Promise<boolean> {
  const runtime = String(model.get("_runtime")).replace("anywidget:", "");
  const found = await model.widget_manager?.get_model(runtime).catch(() => undefined);
  if (found?.comm_live !== false) return false;
  model.set("frozen", true);
  model.set("no_kernel", true);
  return true;
}

/** One notice only, on the outermost part. */
function showNotice({ el, signal }: ViewProps, text: string): void {
  if (el.parentElement?.closest(".hta") || el.querySelector(":scope > .hta-kernel-gone")) return;
  const notice = element("p", "hta-notice hta-kernel-gone");
  notice.dataset.severity = "warning";
  notice.setAttribute("role", "status");
  notice.textContent = text;
  el.prepend(notice);
  onAbort(signal, () => notice.remove());
}
