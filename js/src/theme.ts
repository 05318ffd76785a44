// Light or dark, as the page is: every notebook says it in its own way.

import { whenGone } from "./page";

// what they say it with: JupyterLab, VS Code, Colab, marimo; a class of the page is what many sites use
const SAID = ["data-jp-theme-light", "class", "theme", "data-theme"];
// VS Code calls a light theme of high contrast by both of its names
const LIGHT = ["light", "vscode-light", "vscode-high-contrast-light"];
const DARK = ["dark", "vscode-dark", "vscode-high-contrast"];

/** Keep the element's `data-theme`, by which theme.css goes, as the page's theme is. */
export function followTheme(el: HTMLElement, signal: AbortSignal): void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => {
    el.dataset.theme = (saidDark() ?? system.matches) ? "dark" : "light";
  };
  const page = new MutationObserver(tell);
  for (const place of [document.documentElement, document.body])
    page.observe(place, { attributeFilter: SAID });
  system.addEventListener("change", tell, { signal });
  whenGone(signal, () => page.disconnect());
  tell();
}

/** Whether the page says it is dark; undefined if it says nothing of the kind. */
function saidDark(): boolean | undefined {
  const { documentElement: html, body } = document;
  const jupyter = body.dataset.jpThemeLight;
  if (jupyter) return jupyter === "false";
  const said = new Set([...html.classList, ...body.classList]);
  for (const place of [html, body]) for (const name of SAID) said.add(place.getAttribute(name) ?? "");
  if (LIGHT.some((word) => said.has(word))) return false;
  return DARK.some((word) => said.has(word)) || undefined;
}
