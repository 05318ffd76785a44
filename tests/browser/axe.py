"""Asks axe-core, from the front end's node_modules, what keeps a part of the page from being accessible."""

from typing import Any

from playwright.sync_api import Locator

from tests.support import ROOT

SCRIPT = ROOT / "js" / "node_modules" / "axe-core" / "axe.min.js"

RUN = """async (element) => {
  const found = await axe.run(element, { resultTypes: ['violations'] });
  return found.violations.map(({ id, impact, help, nodes }) => ({
    id, impact, help,
    nodes: nodes.map(({ html, failureSummary }) => ({ html, why: failureSummary })),
  }));
}"""


def serious_violations(element: Locator) -> list[str]:
    """What axe calls serious or critical inside the element, a readable text each."""
    element.page.evaluate(f"window.axe || (() => {{ {SCRIPT.read_text(encoding='utf-8')} }})()")
    found: list[dict[str, Any]] = element.evaluate(RUN)
    return [_told(violation) for violation in found if violation["impact"] in ("serious", "critical")]


def _told(violation: dict[str, Any]) -> str:
    nodes = violation["nodes"]
    lines = [f"{violation['impact']}: {violation['id']}: {violation['help']} ({len(nodes)} elements)"]
    for node in nodes[:5]:
        why = "; ".join(line.strip() for line in node["why"].splitlines()[1:])
        lines += [f"    {node['html'][:200]}", f"        {why[:300]}"]
    return "\n".join(lines)
