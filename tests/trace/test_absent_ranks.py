"""A job of which ranks are missing says so: in `health`, in the header, beside every answer."""

from pathlib import Path

import pytest

from hta_widgets import BreakdownPanel, Trace, TraceExplorer
from hta_widgets.trace.absent_ranks import Absent, absent_ranks
from hta_widgets.widgets.freezing import settle
from tests.job.many_ranks import write_job
from tests.trace.helpers import kernel, write


def lost(tmp_path: Path, *ranks: int, of: int = 8) -> Path:
    """A job without the files of some ranks."""
    job = write_job(tmp_path / "job", of, slow=2)
    for rank in ranks:
        (job / f"rank{rank}.json").unlink()
    return job


def told(trace: Trace) -> list[str]:
    return trace.health.query("check == 'absent_ranks'")["detail"].tolist()


@pytest.mark.parametrize(
    ("missing", "text"),
    [
        ((5,), "rank 5 of 8"),
        ((0, 7), "ranks 0 and 7 of 8"),
        ((1, 3, 6), "ranks 1, 3 and 6 of 8"),
        ((1, 3, 4, 5, 6), "5 of 8 ranks"),
    ],
)
def test_missing_ranks_are_named(tmp_path: Path, missing: tuple[int, ...], text: str) -> None:
    trace = Trace.open(lost(tmp_path, *missing))
    assert (trace.absent.ranks, trace.absent.count, trace.absent.of) == (missing, len(missing), 8)
    assert trace.without == f"without {text}"
    assert repr(trace) == f"Trace({8 - len(missing)} ranks, without {text})"
    assert told(trace) == [f"nothing was opened of {text}: no answer holds what is missing"]


def test_a_whole_job_lacks_nothing(tmp_path: Path) -> None:
    trace = Trace.open(lost(tmp_path))
    assert trace.absent == Absent()
    assert (trace.without, told(trace)) == ("", [])


def test_a_rank_opened_by_itself_is_compared_with_none(tmp_path: Path) -> None:
    trace = Trace.open(lost(tmp_path) / "rank3.json")
    assert trace.absent == Absent()
    assert (trace.without, told(trace)) == ("", [])


def test_the_explorer_says_it_at_its_head_and_beside_each_answer(tmp_path: Path) -> None:
    job = lost(tmp_path, 5)
    explorer = TraceExplorer(job, panels=["temporal_breakdown"]).wait()
    explorer._at_rest()
    ranks = next(field for field in explorer.header if field["label"] == "Ranks")
    assert ranks["value"] == "7 of 8"
    assert ranks["title"].startswith("Without rank 5 of 8\n")
    assert [notice["severity"] for notice in explorer.notices] == ["warning"]
    assert "rank 5 of 8" in explorer.notices[0]["text"]
    assert any(row["check"] == "absent_ranks" for row in explorer.health)
    explorer.close()
    for kind in ("temporal_breakdown", "stragglers", "kernel_breakdown"):
        panel = BreakdownPanel(job, kind)
        settle([panel])
        assert panel.whole.endswith("without rank 5 of 8")


def test_one_unreadable_file_is_told_beside_the_missing_rank(tmp_path: Path) -> None:
    job = lost(tmp_path)
    (job / "rank5.json").write_text("not a trace {")
    trace = Trace.open(job)
    assert trace.without == "without rank 5 of 8, 1 file that could not be read"


def groups(*ranks: int) -> dict[str, object]:
    return {"pg_config": [{"pg_name": "0", "ranks": list(ranks)}]}


def info(rank: int, **more: object) -> dict[str, object]:
    return {"distributedInfo": {"rank": rank, **more}}


def test_process_groups_name_the_ranks_where_no_number_is_stated() -> None:
    some = {rank: info(rank, **groups(0, 1, 2, 3)) for rank in (0, 2, 3)}
    assert absent_ranks(some, numbered=True) == Absent(1, (1,), 4)
    pairs = {0: info(0, **groups(0, 1)), 2: info(2, **groups(2, 3))}
    assert absent_ranks(pairs, numbered=True) == Absent(2, (1, 3), 4)
    assert absent_ranks({0: info(0), 2: info(2)}, numbered=True) == Absent()  # nothing says so


def test_files_that_do_not_say_which_rank_they_are_are_counted(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / f"{name}.json", [kernel("gemm", 0, 1)], distributedInfo={"world_size": 4})
    trace = Trace.open(tmp_path)
    assert trace.absent == Absent(2, (), 4)
    assert trace.without == "without 2 of 4 ranks"


def test_nothing_is_claimed_of_files_that_contradict_each_other() -> None:
    assert absent_ranks({0: info(0, world_size=4), 1: info(1, world_size=8)}, numbered=True) == Absent()
    assert absent_ranks({0: info(0, world_size=4), 9: info(9, world_size=4)}, numbered=True) == Absent()
    odd = {0: {"distributedInfo": {"pg_config": [{"ranks": "[0, 1]"}, 7, {"ranks": [True, -1]}]}}, 1: {}}
    assert absent_ranks(odd, numbered=True) == Absent()
