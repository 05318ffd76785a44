// The bundle's entry: `Runtime` (hta_widgets/widgets/runtime.py) carries it, every part mounts its view from here.

import { freezeSaved, tellEnd, tellSaved } from "./ended";
import type { View, ViewProps } from "./model";
import parts from "./parts.css";
import { openReport } from "./report/open";
import { adoptStyles } from "./shared";
import { keepShortcuts } from "./shortcuts";
import theme from "./theme.css";
import { breadcrumb } from "./views/breadcrumb";
import { breakdown } from "./views/breakdown";
import { events } from "./views/events";
import { explorer } from "./views/explorer";
import { iterations } from "./views/iterations";
import { ranks } from "./views/ranks";
import { timeline } from "./views/timeline";

export const views: Record<string, View> = {
  ranks,
  iterations,
  timeline,
  breakdown,
  breadcrumb,
  events,
  explorer,
};

/** Draw the view that the part's `_view` trait names. */
export async function mount(props: ViewProps): Promise<void> {
  const name: string = props.model.get("_view");
  const view = views[name];
  if (!view) throw new Error(`no view ${name} in this bundle`);
  adoptStyles(props.el, "theme", theme + parts);
  props.el.classList.add("hta");
  keepShortcuts(props.el, props.signal);
  tellEnd(props);
  const saved = await freezeSaved(props.model);
  if (props.signal.aborted) return;
  await view(props);
  if (saved) tellSaved(props);
}

export default { initialize: () => ({ mount }) };

// In a saved report the bundle stands in the page itself; everywhere else it is a widget's module.
if (globalThis.document?.documentElement.hasAttribute("data-hta-report"))
  void openReport(document, { mount, views });
