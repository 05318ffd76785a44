"""An example whose names try to run as HTML and to turn the text around them, and what a page made of it."""

import gzip
import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from hta_widgets import examples

MARKUP = "<img src=x onerror=document.body.dataset.ran=1>"
TURNING = "\u202eevil\x07 שלום 12 \u0645\u0631\u062d\u0628\u0627"
LINK = "<a href=javascript:document.body.dataset.ran=1>"
TEMPLATES = "&lt;b&gt;&quot;${document.body.dataset.ran=1}{{7*7}}`<%=7*7%>"
HOSTILE = f"{TURNING}{MARKUP}{LINK}{TEMPLATES}"

_KNOWN = ("ProfilerStep", "cuda", "aten::")  # by these analyses find what they tell about

# Texts whose ASCII letters do not follow each other from left to right on their line; texts that begin or end
# outside the page, or are hidden, have no place.
TURNED = r"""() => {
  const turned = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.data;
    if (/^[\x00-\x7f]*$/.test(text) || text.length > 3000 || !node.parentElement.checkVisibility()) continue;
    let last = null;
    for (let i = 0; i < text.length; i++) {
      if (!/[!-~]/.test(text[i])) continue;
      range.setStart(node, i);
      range.setEnd(node, i + 1);
      const box = range.getBoundingClientRect();
      if (box.width === 0) continue;
      if (last && Math.abs(box.top - last.top) < 2 && box.left < last.left - 0.5) {
        turned.push(text.slice(0, 200));
        break;
      }
      last = box;
    }
  }
  return turned;
}"""

# Letters that no reader sees, in texts and in what is read out or shown in a tooltip.
UNSEEN = r"""() => {
  const unseen = /[\u202a-\u202e\u2066\u2067\x00-\x08\x0b-\x1f\x7f-\x9f]/;
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.nodeType === 3) { if (unseen.test(node.data)) found.push(node.data.slice(0, 200)); continue; }
    for (const name of ['title', 'aria-label', 'aria-valuetext', 'alt', 'placeholder'])
      if (unseen.test(node.getAttribute(name) ?? '')) found.push(name + '=' + node.getAttribute(name));
  }
  return found;
}"""


def hostile_copy(example: str, folder: Path) -> Path:
    """A copy of an example in `folder`, each name but those of ATen followed by what is hostile."""
    folder.mkdir()
    for path in sorted(examples.path(example).iterdir()):
        document = json.loads(gzip.decompress(path.read_bytes()))
        for event in document["traceEvents"]:
            _poison(event)
        (folder / path.name.removesuffix(".gz")).write_text(json.dumps(document), "utf-8")
    return folder


def _poison(event: dict[str, Any]) -> None:
    if event.get("ph") == "M":
        if "name" in event.get("args", {}):
            event["args"]["name"] += HOSTILE
    elif event.get("ph") == "X" and not event["name"].startswith(_KNOWN):
        event["name"] += HOSTILE


def expect_harmless(page: Page) -> None:
    """No name ran, none became markup, and every line reads from left to right."""
    assert page.evaluate("document.body.dataset.ran ?? null") is None
    assert page.locator("img:not([src^=data])").count() == 0
    assert page.locator("a[href^=javascript]").count() == 0
    assert page.evaluate(UNSEEN) == []
    assert page.evaluate(TURNED) == []
