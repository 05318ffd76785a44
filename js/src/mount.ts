// Draws a part: its view, in the look and with the manners that all parts have.

import firstScreen from "./first_screen.css";
import { freezeSaved, showSavedNotice, watchKernel } from "./kernel_gone";
import type { View, ViewProps } from "./model";
import parts from "./parts.css";
import { adoptStyles } from "./shared";
import { keepShortcuts } from "./shortcuts";
import { followTheme } from "./theme";
import theme from "./theme.css";
import { drawVisibly } from "./visible";

drawVisibly();

export type Mount = (props: ViewProps) => Promise<void>;

/**
 * A function that draws the view that a part's `_view` trait names.
 *
 * @param styles of views that not every bundle has
 * @param sheet what the page knows them by: it may show parts of several bundles
 */
export function mounting(views: Readonly<Record<string, View>>, styles = "", sheet = "more"): Mount {
  return async (props) => {
    const name: string = props.model.get("_view");
    const view = views[name];
    if (!view) throw new Error(`no view ${name} in this bundle`);
    adoptStyles(props.el, "theme", theme + parts + firstScreen);
    adoptStyles(props.el, sheet, styles);
    props.el.classList.add("hta");
    followTheme(props.el, props.signal);
    keepShortcuts(props.el, props.signal);
    watchKernel(props);
    const saved = await freezeSaved(props.model);
    if (props.signal.aborted) return;
    await view(props);
    if (saved) showSavedNotice(props);
  };
}
