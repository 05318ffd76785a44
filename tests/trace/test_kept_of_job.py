"""What opening a job of many ranks tells is kept: it is what the ranks say, and no column is read for it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from hta_widgets import Trace
from hta_widgets.trace import kept_of_job
from tests.job.many_ranks import write_job
from tests.trace.helpers import damage

RANKS = 5


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kept_of_job, "_LEAST_RANKS", RANKS - 1)
    return write_job(tmp_path / "job", RANKS, slow=3)


def told(trace: Trace) -> list[pd.DataFrame]:
    return [trace.iterations, trace.health, pd.DataFrame({"kind": trace.kinds})]


def assert_same(trace: Trace, expected: Trace) -> None:
    for own, other in zip(told(trace), told(expected), strict=True):
        pd.testing.assert_frame_equal(own, other, check_exact=True)


def tables(folder: Path) -> list[Path]:
    return sorted((folder / "jobs").glob("*"))


def test_no_column_is_read_for_what_is_kept(job: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    plain = Trace.open(job, cache=False)
    assert not Trace.open(job, cache=cache).was_opened
    assert_same(Trace.open(job, cache=cache), plain)
    again = Trace.open(job, cache=cache)
    assert again.was_opened
    assert_same(again, plain)
    assert not any(again.rank(rank).events.here for rank in again.ranks)
    assert len(tables(cache)) == 4


def test_another_clock_other_ranks_and_other_content_have_tables_of_their_own(
    job: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    told(Trace.open(job, cache=cache))
    for clock in ("device", "host"):
        assert_same(Trace.open(job, cache=cache, clock=clock), Trace.open(job, cache=False, clock=clock))
    (job / f"rank{RANKS - 1}.json").unlink()
    assert_same(Trace.open(job, cache=cache), Trace.open(job, cache=False))
    first = job / "rank0.json"
    first.write_text(first.read_text().replace("ProfilerStep#3", "ProfilerStep#7"))
    changed = Trace.open(job, cache=cache)
    assert_same(changed, Trace.open(job, cache=False))
    assert 7 in changed.iterations["iteration"].tolist()


@pytest.mark.parametrize("how", ["cut", "changed", "empty"])
def test_a_damaged_table_is_computed_again(job: Path, tmp_path: Path, how: str) -> None:
    cache = tmp_path / "cache"
    told(Trace.open(job, cache=cache))
    for file in tables(cache):
        damage(file, how)
    assert_same(Trace.open(job, cache=cache), Trace.open(job, cache=False))


def test_few_ranks_are_simply_read(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    told(Trace.open(write_job(tmp_path / "job", kept_of_job._LEAST_RANKS - 1, slow=5), cache=cache))
    assert not tables(cache)
