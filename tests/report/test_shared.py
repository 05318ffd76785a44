"""What the explorer shares: one file of each kind, and the picture in a saved notebook."""

import re

import pandas as pd
import pytest

from hta_widgets import Trace, TraceExplorer
from hta_widgets.analysis import overview
from hta_widgets.analysis.findings.headline import sentence


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


def test_the_picture_holds_the_headline_and_its_numbers(ddp: Trace) -> None:
    explorer = TraceExplorer(ddp, panels=[])
    svg, frame = explorer.wait().snapshot().to_svg(), overview(ddp)
    words = " ".join(re.findall(r">([^<]+)<", svg))
    assert sentence(frame) in words.replace("  ", " ")
    saves = frame[(frame["section"] == "saves") & (frame["part_of"] == "")]
    for row in pd.DataFrame(saves).to_dict("records"):
        assert f"\N{MINUS SIGN}{row['saving_pct']:.3g} % · simulated" in words
    explorer.close()
