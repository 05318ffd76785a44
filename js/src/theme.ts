// Light or dark, as the page is. Every notebook marks it in its own way.

import { onAbort } from "./page";

// where the theme is marked: JupyterLab, VS Code, Colab, marimo; many sites use a class of the page
const ATTRIBUTES = ["data-jp-theme-light", "class", "theme", "data-theme"];
// VS Code gives a light high-contrast theme both names
const LIGHT = ["light", "vscode-light", "vscode-high-contrast-light"];
const DARK = ["dark", "vscode-dark", "vscode-high-contrast"];

/** Keep the element's `data-theme`, which selects the colours of theme.css, in step with the page. */
export function followTheme(el: HTMLElement, signal: AbortSignal): void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const forced = matchMedia("(forced-colors: active)");
  const update = () => {
    // forced colors are light or dark as the system is, whatever the page is marked as
    el.dataset.theme = ((forced.matches ? undefined : pageIsDark()) ?? system.matches) ? "dark" : "light";
  };
  const page = new MutationObserver(update);
  for (const place of [document.documentElement, document.body])
    page.observe(place, { attributeFilter: ATTRIBUTES });
  for (const media of [system, forced]) media.addEventListener("change", update, { signal });
  onAbort(signal, () => page.disconnect());
  update();
}

/** Whether the page is marked as dark; undefined if it is not marked. */
function pageIsDark(): boolean | undefined {
  const { documentElement: html, body } = document;
  const jupyter = body.dataset.jpThemeLight;
  if (jupyter) return jupyter === "false";
  const values = new Set([...html.classList, ...body.classList]);
  for (const place of [html, body]) for (const name of ATTRIBUTES) values.add(place.getAttribute(name) ?? "");
  if (LIGHT.some((word) => values.has(word))) return false;
  return DARK.some((word) => values.has(word)) || undefined;
}
