// The bundle's entry: `Runtime` (hta_widgets/widgets/runtime.py) carries it, every part mounts its view from here.

import type { View, ViewProps } from "./model";
import parts from "./parts.css";
import { adoptStyles } from "./shared";
import theme from "./theme.css";
import { breakdown } from "./views/breakdown";
import { explorer } from "./views/explorer";
import { iterations } from "./views/iterations";
import { ranks } from "./views/ranks";
import { timeline } from "./views/timeline";

export const views: Record<string, View> = { ranks, iterations, timeline, breakdown, explorer };

/** Draw the view that the part's `_view` trait names. */
export async function mount(props: ViewProps): Promise<void> {
  const name: string = props.model.get("_view");
  const view = views[name];
  if (!view) throw new Error(`no view ${name} in this bundle`);
  adoptStyles(props.el, "theme", theme + parts);
  props.el.classList.add("hta");
  props.el.dataset.lmSuppressShortcuts = "true";
  await view(props);
}

export default { initialize: () => ({ mount }) };
