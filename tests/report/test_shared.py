"""What the explorer shares: one file of each kind."""

import pytest

from hta_widgets import Trace, TraceExplorer


@pytest.mark.parametrize(
    ("form", "begins"), [("html", b"<!doctype html>"), ("md", b"**"), ("svg", b"<svg"), ("xlsx", b"PK")]
)
def test_the_share_menu_gets_each_file(ddp: Trace, form: str, begins: bytes) -> None:
    explorer = TraceExplorer(ddp, panels=["temporal_breakdown"]).wait()
    result, buffers = explorer.ask("file", {"form": form, "key": "it", "chunk": 0})
    assert result["chunks"] == 1 and bytes(buffers[0]).lower().startswith(begins.lower())
    explorer.close()


def test_no_other_file_is_shared(ddp: Trace) -> None:
    explorer = TraceExplorer(ddp, panels=[])
    with pytest.raises(ValueError, match="formats are html, md, svg and xlsx"):
        explorer.ask("file", {"form": "exe", "key": "it", "chunk": 0})
    explorer.close()
