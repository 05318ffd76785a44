"""The pages say what the code says."""

import re
from importlib import util
from pathlib import Path

import pytest

from tests.support import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def test_event_columns_page_follows_the_schema() -> None:
    spec = util.spec_from_file_location("event_columns", ROOT / "docs" / "event_columns.py")
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (ROOT / "docs" / "event_columns.md").read_text(encoding="utf-8")
    assert written == module.page(), "run `python docs/event_columns.py`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    assert not [target for target in targets if not (page.parent / target).exists()]
