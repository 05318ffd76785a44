"""Answers kept on disk: the same in every bit, and not read once anything they depend on has changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_widgets import Scope, Trace, analysis, examples
from hta_widgets.analysis.core import kept
from hta_widgets.analysis.kernels.peaks import Peaks, register_peaks, unregister_peaks
from hta_widgets.analysis.operators.formulas import register_formula
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.arrow_frames import read_frame
from tests.job.many_ranks import write_job
from tests.support import EVERY_CASE

pytestmark = pytest.mark.slow

SPLIT = [kind for kind, entry in ANALYSES.items() if entry.splits()]
JOBS = ["ddp_4ranks", "gpt2_fsdp_full_shard", "host only"]
ASKED = [("ddp_4ranks", "host only"), ("gpt2_fsdp_full_shard", "host only")]  # in turn
KEPT = [kind for kind, entry in ANALYSES.items() if hasattr(entry.function, "splits")]


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which a job of which much is asked is read once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HTA_WIDGETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept, "_LEAST_SECONDS", 0.0)
    return tmp_path / "cache"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return write_job(tmp_path / "job", 4, slow=2)


def without_kernels(job: Path) -> Path:
    """A job of which one rank recorded no device."""
    file = job / "rank1.json"
    content = json.loads(file.read_text())
    content["traceEvents"] = [event for event in content["traceEvents"] if event["cat"] != "kernel"]
    file.write_text(json.dumps(content))
    return job


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    """Those of which each analysis is asked, opened without a cache."""
    host_only = without_kernels(write_job(tmp_path_factory.mktemp("host_only") / "job", 3, slow=2))
    return {
        name: Trace.open(host_only if name == "host only" else examples.path(name), cache=False)
        for name in JOBS
    }


def answer(trace: Trace, kind: str, scope: Scope | None = None, **options: Any) -> Any:
    try:
        return ANALYSES[kind].function(trace, scope, **options)
    except MissingDataError as missing:
        return str(missing)


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, str):
        assert found == expected
    else:
        pd.testing.assert_frame_equal(found, expected, check_exact=True, check_freq=False)


def without_keeping(monkeypatch: pytest.MonkeyPatch, ask: Callable[[], Any]) -> Any:
    with monkeypatch.context() as patched:
        patched.setattr(kept, "_file", lambda *_: None)
        return ask()


@pytest.mark.parametrize("kind", KEPT)
def test_what_is_read_back_is_the_answer(kind: str, columns: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTA_WIDGETS_CACHE", str(columns))
    shutil.rmtree(columns / "answers", ignore_errors=True)
    trace = Trace.open(examples.path("gpt2_ddp"))
    steps = tuple(sorted(trace.iterations["iteration"].unique().tolist())[1:3])
    read: list[Path] = []
    scopes = (None, Scope(iterations=steps), Scope(ranks=(1,)))
    for scope in scopes if EVERY_CASE else scopes[KEPT.index(kind) % 3 :][:1]:
        expected = without_keeping(monkeypatch, lambda scope=scope: answer(trace, kind, scope))
        first = answer(trace, kind, scope)
        read.clear()
        with monkeypatch.context() as patched:
            patched.setattr(kept, "read_frame", lambda file: (read.append(file), read_frame(file))[1])
            again = answer(Trace.open(examples.path("gpt2_ddp")), kind, scope)
        for found in (first, again):
            assert_same(found, expected)
        if not isinstance(expected, str):
            assert read and all(file.exists() for file in read)  # so it was kept, and read


@pytest.mark.parametrize(
    ("which", "kind"),
    [(which, kind) for turn, kind in enumerate(SPLIT) for which in (JOBS if EVERY_CASE else ASKED[turn % 2])],
)
def test_ranks_stacked_are_the_answer_about_all(which: str, kind: str, jobs: dict[str, Trace]) -> None:
    trace = jobs[which]
    function = ANALYSES[kind].function
    start, end = trace.extent_ns
    scopes = (
        Scope(window_ns=(start + (end - start) // 3, end - (end - start) // 4)),
        Scope(window_ns=(10**15, 10**15 + 5)),
        Scope(),
        Scope(iterations=(1, 2)),
    )
    turn = (SPLIT.index(kind) + JOBS.index(which)) % 3
    options = [{option.name: choice} for option in ANALYSES[kind].options for choice in option.choices]
    for chosen in options or [{}]:
        if not ANALYSES[kind].splits(**chosen):
            continue
        for scope in scopes if EVERY_CASE else scopes[turn : turn + 2]:
            expected = answer(trace, kind, scope, **chosen)

            def ask(part: Scope, chosen: dict[str, Any] = chosen) -> pd.DataFrame:
                return function(trace, part, **chosen)

            if isinstance(expected, str):
                with pytest.raises(MissingDataError) as missing:
                    kept.stacked_ranks(trace, scope, ask, ask)
                assert str(missing.value) == expected
            else:
                assert_same(kept.stacked_ranks(trace, scope, ask, ask), expected)


def test_what_speaks_of_the_job_does_not_split() -> None:
    assert ANALYSES["kernel_breakdown"].splits() and not ANALYSES["kernel_breakdown"].splits(by="job")
    assert not ANALYSES["overview"].splits() and not ANALYSES["stragglers"].splits()


def test_opened_again_the_overview_reads_no_columns(job: Path) -> None:
    expected = analysis.overview(Trace.open(job))
    again = Trace.open(job)
    assert_same(analysis.overview(again), expected)
    assert len(expected) and all(again.rank(rank).events._table is None for rank in again.ranks)


def test_of_a_job_larger_than_memory_each_rank_is_read_once(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_kernels(job)
    whole = Trace.open(job, cache=False)
    expected = {kind: answer(whole, kind) for kind in SPLIT}
    limit = Trace.open(job).rank(0).events.header.nbytes
    for attempt in ("first", "again"):
        trace = Trace.open(job, memory_limit=limit)
        assert trace.exceeds_memory
        for kind in SPLIT:
            assert_same(answer(trace, kind), expected[kind])
        if attempt == "again":
            assert sum(isinstance(each, str) for each in expected.values()) or not trace.memory.dropped
    # another selection of the same ranks is stacked from what is kept of each
    fewer = Trace.open(job, memory_limit=limit)
    with monkeypatch.context() as patched:
        patched.setattr(kept, "stacked_ranks", None)  # all at once, not a frame for each rank
        some = answer(fewer, "temporal_breakdown", Scope(ranks=(2, 3)))
    assert_same(some, expected["temporal_breakdown"].query("rank >= 2").reset_index(drop=True))
    assert all(fewer.rank(rank).events._table is None for rank in fewer.ranks)
    for kind in SPLIT:
        assert_same(answer(fewer, kind, Scope(ranks=(2, 3))), answer(whole, kind, Scope(ranks=(2, 3))))


def test_what_is_said_for_want_of_memory_is_not_said_with_it(job: Path) -> None:
    expected = analysis.overview(Trace.open(job, cache=False))
    assert expected["event_id"].notna().any()
    less = analysis.overview(Trace.open(job, memory_limit=1))
    assert less["event_id"].notna().sum() < expected["event_id"].notna().sum()
    again = Trace.open(job, memory_limit=1)
    assert_same(analysis.overview(again), less)
    assert not again.memory.dropped
    assert_same(analysis.overview(Trace.open(job)), expected)
    assert_same(analysis.overview(Trace.open(job, memory_limit=1)), expected)


def has_answer(trace: Trace, scope: Scope | None = None, **options: Any) -> bool:
    """Whether the overview is kept, by default of all."""
    compute = analysis.overview.__wrapped__  # type: ignore[attr-defined]
    file = kept._file(trace, compute, scope or Scope(), options, False)
    return file is not None and file.exists()


def test_what_an_answer_depends_on_is_in_its_key(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analysis.overview(Trace.open(job))
    assert has_answer(Trace.open(job))
    for part in (Scope(ranks=(1, 2)), Scope(iterations=(1, 2))):
        assert not has_answer(Trace.open(job), part)
    assert not has_answer(Trace.open(job), by="iteration")
    assert not has_answer(Trace.open(job, classes={"gemm": "communication"}))
    assert not has_answer(Trace.open(job, clock="device"))
    assert not has_answer(Trace.open(job).keep(lambda rank: rank.is_device))
    assert not has_answer(Trace.open({3: job / "rank0.json", 1: job / "rank1.json"}))
    assert not has_answer(Trace.open(job, cache=False))
    with monkeypatch.context() as other:
        other.setattr(kept, "_code", lambda: "another version")
        assert not has_answer(Trace.open(job))
    peaks = register_peaks("nothing", Peaks("a device", {"simt_fp32": 1.0}, 1.0, "a test"))
    assert not has_answer(Trace.open(job))
    unregister_peaks(peaks)
    with register_formula("my::op", flops=lambda inputs: 1.0):
        assert not has_answer(Trace.open(job))
    assert has_answer(Trace.open(job))
    (job / "rank9.json").write_text("{")  # what cannot be read is told in the overview
    assert not has_answer(Trace.open(job))
    (job / "rank9.json").unlink()
    file = job / "rank0.json"
    file.write_text(file.read_text().replace("aten::mm", "aten::mn"))
    assert not has_answer(Trace.open(job))


def test_windows_names_and_streams_are_not_kept(job: Path, cache: Path) -> None:
    trace = Trace.open(job)
    for scope in (Scope(window_ns=(0, 10**9)), Scope(streams=(7,)), Scope(names=("aten::mm",))):
        answer(trace, "temporal_breakdown", scope)
    assert not (cache / "answers").exists()


def test_damaged_answers_are_computed_again(job: Path, cache: Path) -> None:
    expected = analysis.stragglers(Trace.open(job))
    files = {file: file.read_bytes() for file in (cache / "answers").glob(f"*{kept.SUFFIX}")}
    for damage in (
        lambda known: b"",
        lambda known: known[:-9],
        lambda known: known[:99] + b"!" + known[100:],
    ):
        for file, content in files.items():
            file.write_bytes(damage(content))
        assert_same(analysis.stragglers(Trace.open(job)), expected)
        assert {file: file.read_bytes() for file in files} == files


def test_what_does_not_come_back_the_same_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "answer"
    kept._write(file, pd.DataFrame({"a": [(1, 2)]}))  # a tuple comes back as an array
    kept._write(file, pd.DataFrame({"a": [object()]}))
    assert not file.exists()
    kept._write(
        file, frame := pd.DataFrame({"a": pd.array([1, None], "Int64"), "b": pd.Categorical(["x", "y"])})
    )
    assert_same(read_frame(file), frame)


def test_the_oldest_answers_go_first(
    job: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kept, "_TRIM_EVERY", 1)
    trace = Trace.open(job)
    for kind in ("temporal_breakdown", "comm_comp_overlap", "idle_breakdown"):
        answer(trace, kind)
    files = list((cache / "answers").iterdir())
    assert len(files) == 3
    largest = max(file.stat().st_size for file in files)
    monkeypatch.setenv("HTA_WIDGETS_CACHE_BYTES", str(int(1.5 * largest / kept._PART_OF_BUDGET)))
    answer(trace, "kernel_breakdown")
    left = [file for file in (cache / "answers").iterdir() if file not in files]
    assert len(left) == 1 and len(list((cache / "answers").iterdir())) < 4
