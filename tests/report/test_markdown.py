"""The findings as Markdown: everything that was found, and nothing from the trace that is markup."""

import re
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets import Scope, Trace, TraceExplorer, examples
from hta_widgets.analysis import overview
from hta_widgets.analysis.findings.headline import sentence
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.report.markdown import to_markdown


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


@pytest.mark.parametrize("name", examples.names())
def test_it_says_what_the_overview_says(name: str) -> None:
    trace = examples.load(name)
    frame, text = overview(trace), unescaped(to_markdown(trace, title=name))
    assert text.startswith(f"# {name}\n")
    assert f"**{sentence(frame)}**" in text
    for row in frame.to_dict("records"):
        assert " ".join(row["text"].split()) in text
    for row in frame[~frame["severity"].isin(("checked", "open", "verdict"))].to_dict("records"):
        assert row["suggestion"] in text and row["wrong_if"] in text


def test_it_is_about_the_scope() -> None:
    trace = examples.load("ddp_4ranks")
    assert "## 1. Waiting for a late rank: rank 2" in to_markdown(trace)
    alone = to_markdown(trace, Scope(ranks=(0,)))
    assert "Waiting for a late rank" not in alone and alone.startswith("over 4 steps, ")


HOSTILE = (
    "<img src=x onerror=alert(1)> | [click](https://evil) `code` **bold** @everyone #1 ~~x~~ $(rm)\n# heading"
)


def test_names_are_text(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = examples.load("ddp_4ranks")
    frame = overview(trace)
    found = frame.assign(
        text=HOSTILE, title=HOSTILE, suggestion=f"- {HOSTILE}", edits="`edits`.without('``x')"
    )
    monkeypatch.setattr(type(ANALYSES["overview"]), "answer", lambda *_: found)
    text = to_markdown(trace, title=HOSTILE)
    plain = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)  # spans of code hold whatever they hold
    assert not re.search(r"(?<!\\)(?:<|\[|@|#1|\$|~)", plain)
    assert not re.search(r"(?m)^# heading", text)
    cells = {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("|")}
    assert cells == {6}


def test_paths_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = examples.load("ddp_4ranks")
    found = overview(trace).assign(text="The host is in /home/ada/secret/train.py(12): step")
    monkeypatch.setattr(type(ANALYSES["overview"]), "answer", lambda *_: found)
    explorer = TraceExplorer(trace, panels=[])
    assert "secret" not in explorer.to_markdown() and "train.py" in explorer.to_markdown()
    assert "secret" in explorer.to_markdown(paths="full")
    with pytest.raises(ValueError, match="paths"):
        explorer.to_markdown(paths="some")  # type: ignore[arg-type]
    explorer.close()


@pytest.mark.parametrize(
    ("form", "begins"), [("html", b"<!doctype html>"), ("md", b"# "), ("svg", b"<svg"), ("xlsx", b"PK")]
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
