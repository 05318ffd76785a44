// After a restart of the kernel a part still looks alive: a line says that nothing answers it any more.

import { listen, type ViewProps } from "./model";

const TEXT =
  "The kernel that answered here was restarted: what you see stays, but does not change. Run the cell again.";

/** Once for the outermost part. ipywidgets tells a model when it loses its kernel, and never joins the two again. */
export function tellEnd({ model, el, signal }: ViewProps): void {
  listen(
    model,
    "comm_live_update",
    () => {
      if (el.parentElement?.closest(".hta") || el.querySelector(":scope > .hta-ended")) return;
      const notice = document.createElement("p");
      notice.className = "hta-notice hta-ended";
      notice.dataset.severity = "warning";
      notice.setAttribute("role", "status");
      notice.textContent = TEXT;
      el.prepend(notice);
      signal.addEventListener("abort", () => notice.remove(), { once: true });
    },
    signal,
  );
}
