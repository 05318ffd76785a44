"""What each directive of a report's policy keeps out or lets in: one less makes a difference."""

from html import escape, unescape

import pytest
from playwright.sync_api import Page, Route

from hta_widgets import report
from tests.report.test_page import policy_of

pytestmark = pytest.mark.browser

OUTSIDE = "https://outside.example"

# stands for the front end: it runs, styles itself and draws a picture that it made
BUNDLE = """
document.body.dataset.ran = 1;
const style = document.createElement("style");
style.textContent = "body { outline-width: 7px; outline-style: solid }";
document.head.append(style);
const picture = new Image();
picture.onload = () => { document.body.dataset.drawn = 1; };
picture.src = URL.createObjectURL(new Blob(
  ["<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'/>"], { type: "image/svg+xml" }));
"""
# what a name would do if it became markup
MARKUP = f"""
<base href="{OUTSIDE}/base/">
<form action="{OUTSIDE}/form" target="_self"></form>
<iframe src="{OUTSIDE}/frame"></iframe>
<img src="{OUTSIDE}/image">
<script>document.body.dataset.smuggled = 1</script>
"""
FINDINGS = """() => ({
  runs: document.body.dataset.ran === '1',
  styled: getComputedStyle(document.body).outlineWidth === '7px',
  draws: document.body.dataset.drawn === '1',
  smuggled: document.body.dataset.smuggled === '1',
  based: document.baseURI.startsWith('https://outside'),
})"""
USUAL = {"runs", "styled", "draws"}

# a directive that is left out -> what is then different from `USUAL`
WITHOUT: dict[str, set[str]] = {
    "": set(),
    "default-src": {"asked for frame"},
    "script-src": {"runs", "styled", "draws"},  # nothing of ours works
    "style-src": {"styled"},
    "img-src": {"draws"},
    "base-uri": {"based"},
    "form-action": {"asked for form"},
}


def document() -> str:
    about = {"made": "now", "version": "hta_widgets 1", "notes": []}
    widgets = {"explorer": report.Frozen({"_view": "explorer"})}
    return report.page(widgets, "explorer", title="Job", bundle=BUNDLE, about=about)


def test_each_directive_has_its_case() -> None:
    assert set(policy_of(document())) == set(WITHOUT) - {""}


@pytest.mark.parametrize("left_out", WITHOUT)
def test_a_directive_less_is_noticed(page: Page, left_out: str) -> None:
    html = document()
    before = html.split('Content-Security-Policy" content="', 1)[1].split('"', 1)[0]
    directives = unescape(before).split("; ")
    kept = [text for text in directives if text.split()[0] != left_out]
    assert len(kept) == len(directives) - bool(left_out)
    html = html.replace(before, escape("; ".join(kept))).replace("</main>", f"</main>{MARKUP}", 1)
    asked: set[str] = set()

    def serve(route: Route) -> None:
        if route.request.url == "https://report.example/":
            route.fulfill(body=html, content_type="text/html")
        else:
            asked.add(f"asked for {route.request.url.rsplit('/', 1)[-1].rstrip('?')}")
            route.fulfill(body="")

    page.unroute_all()
    page.route("**/*", serve)
    page.goto("https://report.example/")
    if "draws" in USUAL - WITHOUT[left_out]:
        page.wait_for_selector("body[data-drawn]")
    found = {name for name, holds in page.evaluate(FINDINGS).items() if holds}
    page.evaluate("() => document.querySelector('form').submit()")
    page.wait_for_timeout(200)  # for what should not come there is no event
    assert (found | asked) - {"asked for favicon.ico"} == USUAL ^ WITHOUT[left_out]
