"""Asks axe-core, from the front end's node_modules, what keeps a part of the page from being accessible."""

from typing import Any

from playwright.sync_api import Locator

from tests.support import ROOT

SCRIPT = ROOT / "js" / "node_modules" / "axe-core" / "axe.min.js"

TOLD = """({ id, impact, help, nodes }) => ({
  id, impact, help,
  nodes: nodes.map(({ html, failureSummary }) => ({ html, why: failureSummary })),
})"""
COLOURS = ["color-contrast", "link-in-text-block"]  # the rules of axe that a theme changes

# axe joins the texts of an element without spaces, titles included, and then misses "10" and "19.1 ms" in a
# name that has both: whether each text is in the name is asked here.
RUN = """async (element, only) => {
  const rules = { 'label-content-name-mismatch': { enabled: false } };
  const options = only ? { runOnly: only } : { rules };
  const found = await axe.run(element, { resultTypes: ['violations'], preload: false, ...options });
  if (only) return found.violations.map(TOLD);
  const marks = '[aria-label]:is(button, [role=button], [role=option], [role=tab], [role=menuitem])';
  const unheard = [...element.querySelectorAll(marks)].flatMap((mark) => {
    const texts = document.createTreeWalker(mark, NodeFilter.SHOW_TEXT);
    const name = mark.ariaLabel.toLowerCase();
    const missing = [];
    while (texts.nextNode()) {
      const { data, parentElement } = texts.currentNode;
      if (parentElement.closest('title, [aria-hidden=true]') || data.includes('…')) continue;
      const text = data.trim();
      if (/[\\p{L}\\p{N}]/u.test(text) && !name.includes(text.toLowerCase())) missing.push(text);
    }
    return missing.length ? [{ html: mark.outerHTML, failureSummary: `\\n"${missing.join('", "')}"` }] : [];
  });
  const help = 'The name of an element has the text that is seen';
  const named = unheard.length ? [{ id: 'name-has-text', impact: 'serious', help, nodes: unheard }] : [];
  return [...found.violations, ...named].map(TOLD);
}""".replace("TOLD", TOLD)


def serious_violations(element: Locator, *, colours: bool = False) -> list[str]:
    """What axe calls serious or critical inside the element, a readable text each.

    `colours`: of its colours only, for what was asked in another theme before.
    """
    element.page.evaluate(f"window.axe || (() => {{ {SCRIPT.read_text(encoding='utf-8')} }})()")
    found: list[dict[str, Any]] = element.evaluate(RUN, COLOURS if colours else None)
    return [_told(violation) for violation in found if violation["impact"] in ("serious", "critical")]


def _told(violation: dict[str, Any]) -> str:
    nodes = violation["nodes"]
    lines = [f"{violation['impact']}: {violation['id']}: {violation['help']} ({len(nodes)} elements)"]
    for node in nodes[:5]:
        why = "; ".join(line.strip() for line in node["why"].splitlines()[1:])
        lines += [f"    {node['html'][:200]}", f"        {why[:300]}"]
    return "\n".join(lines)
