"""Files of a job that could not be read: every answer says that it is without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hta_widgets import Scope, Trace
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.analysis.wholes import shown_scope
from tests.cli.conftest import Run
from tests.job.many_ranks import write_job

WITHOUT = "Without 1 file that could not be read."


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = write_job(tmp_path / "job", 3, slow=1)
    (folder / "rank3.json").write_text("{")
    return folder


@pytest.mark.parametrize("kind", ["overview", "temporal_breakdown", "stragglers"])
def test_an_answer_says_so(job: Path, run: Run, kind: str) -> None:
    trace = Trace.open(job)
    assert repr(trace) == "Trace(3 ranks, without 1 file that could not be read)"
    text = " ".join(run("analyze", kind, job).out.split())
    assert WITHOUT in text
    document = run("analyze", kind, job, "--format", "json").json
    frame = ANALYSES[kind].function(trace, shown_scope(trace, kind, Scope()))
    assert document["sentence"] == f"{ANALYSES[kind].said(frame, trace)} {WITHOUT}"
    assert list(document["failed"]) == ["rank3.json"] and document["failed"]["rank3.json"]


def test_an_answer_about_all_does_not(job: Path, run: Run) -> None:
    (job / "rank3.json").unlink()
    assert repr(Trace.open(job)) == "Trace(3 ranks)"
    assert "ithout" not in run("analyze", "temporal_breakdown", job).out
    assert run("analyze", "temporal_breakdown", job, "--format", "json").json["failed"] == {}
