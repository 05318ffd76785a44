"""The document: its policy, what stands in its markup, and how it is written."""

import base64
import hashlib
import io
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hta_widgets.report import Frozen, page, write
from tests.report.reading import content

BUNDLE = "export default 1;"
ABOUT = {"made": "now", "version": "hta_widgets 1", "notes": []}
NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(1)><!--"


def document(title: str = "Job", bundle: str = BUNDLE, text: str = "") -> str:
    parts = {"explorer": Frozen({"_view": "explorer", "text": text})}
    return page(parts, "explorer", title=title, bundle=bundle, about=ABOUT)


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]


def test_policy_allows_the_bundle_and_nothing_from_outside() -> None:
    html = document()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy
    digest = base64.b64encode(hashlib.sha256(BUNDLE.encode()).digest()).decode()
    assert f"default-src &#x27;none&#x27;; script-src &#x27;sha256-{digest}&#x27;;" in policy[1]
    assert "unsafe-eval" not in policy[1]
    assert "http" not in policy[1]
    assert Tags(html).links == []


# Directives of CSP 3 that say where something may be fetched from: without one, `default-src` holds.
FETCHED = (
    "child-src", "connect-src", "font-src", "frame-src", "img-src", "manifest-src", "media-src", "object-src",
    "script-src", "script-src-elem", "script-src-attr", "style-src", "style-src-elem", "style-src-attr",
    "worker-src",
)  # fmt: skip


def policy_of(html: str) -> dict[str, set[str]]:
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert found
    directives = (text.split() for text in unescape(found[1]).split(";"))
    return {name: set(sources) for name, *sources in directives}


def test_whatever_a_name_smuggles_in_can_neither_load_nor_send() -> None:
    policy = policy_of(document())
    allowed = {name: policy.get(name, policy["default-src"]) - {"'none'"} for name in FETCHED}
    harmless = {"data:", "blob:", "'unsafe-inline'"}
    from_outside = {name: sources - harmless for name, sources in allowed.items()}
    assert {name for name, sources in from_outside.items() if sources} == {"script-src"}
    assert all(source.startswith("'sha256-") for source in allowed["script-src"])
    # these do not fall back to default-src: a base turns relative links elsewhere, a form sends what it holds
    assert policy["base-uri"] == policy["form-action"] == {"'none'"}


def test_policy_lets_views_style_themselves_and_save_pictures() -> None:
    policy = policy_of(document())
    assert policy["style-src"] == {"'unsafe-inline'"}
    assert policy["img-src"] == {"data:", "blob:"}


def test_text_from_traces_is_no_markup() -> None:
    html = document(title=NASTY, text=NASTY)
    plain = Tags(document())
    assert Tags(html).tags == plain.tags
    assert content(html)["parts"]["explorer"]["state"]["text"] == NASTY


@pytest.mark.parametrize("bundle", ["'</script>'", "a<!--b", "'</SCRIPT'"])
def test_bundle_that_would_end_its_script_is_refused(bundle: str) -> None:
    with pytest.raises(ValueError, match="bundle"):
        document(bundle=bundle)


def test_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    html = document(title="µ\r\n")
    assert write(tmp_path / "report.html", html).read_bytes() == html.encode()
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError):
        write(tmp_path / "taken", html)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "taken"]


def test_a_write_that_fails_halfway_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = write(tmp_path / "report.html", "old")

    class Half(io.FileIO):
        def write(self, content: Any) -> int:
            super().write(content[: len(content) // 2])
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as full, pytest.raises(OSError, match="No space"):
        full.setattr(Path, "open", lambda path, _mode: Half(path, "x"))
        write(target, document())
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("report.html", "old")]
