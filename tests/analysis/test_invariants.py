"""What holds for every job: random ones, shuffled ones, recorded ones, and whatever Python hashes first."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.analysis.every_analysis import all_answers, digests
from tests.analysis.random_jobs import Job
from tests.support import EVERY_CASE, ROOT, SHARED_TRACES, UNLIKE_GPU_TRACES

pytestmark = pytest.mark.slow

SEEDS = st.integers(0, 10**6)
JOBS = st.builds(
    Job, seed=SEEDS, ranks=st.integers(1, 3), steps=st.integers(0, 3), operators=st.integers(0, 5),
    ties=st.booleans(), nasty=st.booleans(),
)  # fmt: skip
SOME = settings(max_examples=30 if EVERY_CASE else 4, deadline=None)
FEW = settings(SOME, max_examples=10 if EVERY_CASE else 2)  # of what asks everything twice
Answers = dict[str, pd.DataFrame | str]


def opened(job: Job, shuffled: int | None = None) -> tuple[Trace, dict[int, list[int]]]:
    with tempfile.TemporaryDirectory() as folder:
        path, order = job.write(Path(folder), shuffled)
        return Trace.open(path, cache=False), order


def frames(answers: Answers, *names: str) -> list[pd.DataFrame]:
    return [frame for name in names if isinstance(frame := answers[name], pd.DataFrame)]


def parts_add_up(answers: Answers, windows: int = 1) -> None:
    for frame in frames(answers, "temporal_breakdown", "temporal_breakdown-iteration"):
        parts = ["compute_ns", "exposed_communication_ns", "exposed_memory_ns", "idle_ns"]
        assert (frame[parts].sum(axis=1) == frame["window_ns"]).all()
    for bins, temporal in zip(
        frames(answers, "gpu_utilization"), frames(answers, "temporal_breakdown"), strict=True
    ):
        for column in ("busy_ns", "window_ns"):
            by_rank = bins.groupby("rank")[column].sum().reindex(temporal["rank"], fill_value=0)
            assert by_rank.tolist() == temporal[column].tolist()
    for frame in frames(answers, "comm_comp_overlap"):
        assert (frame["overlapped_ns"] + frame["exposed_ns"] == frame["communication_ns"]).all()
    causes = [
        "host_sync_ns", "data_stall_ns", "host_busy_ns", "launch_latency_ns", "kernel_wait_ns",
        "device_wait_ns", "unknown_ns", "edge_ns",
    ]  # fmt: skip
    for frame in frames(answers, "idle_breakdown", "idle_breakdown-iteration"):
        assert (frame[causes].sum(axis=1) == frame["idle_ns"]).all()
        assert (frame["busy_ns"] + frame["idle_ns"] == frame["window_ns"]).all()
        assert (frame[causes[:3]].sum(axis=1) == frame["host_wait_ns"]).all()
    for frame in frames(answers, "idle_gaps"):
        assert (frame[causes].sum(axis=1) == frame["dur_ns"]).all()
        assert (frame["end_ns"] - frame["start_ns"] == frame["dur_ns"]).all()
    for gaps, idle in zip(frames(answers, "idle_gaps"), frames(answers, "idle_breakdown"), strict=True):
        by_rank = gaps.groupby("rank")["dur_ns"].sum().reindex(idle["rank"], fill_value=0)
        assert by_rank.tolist() == idle["idle_ns"].tolist()
    for types, temporal in zip(
        frames(answers, "kernel_type_breakdown"), frames(answers, "temporal_breakdown"), strict=True
    ):
        by_rank = types.groupby("rank")["dur_ns"].sum().reindex(temporal["rank"], fill_value=0)
        assert by_rank.tolist() == temporal["window_ns"].tolist()
    for whole, collapsed in zip(
        frames(answers, "kernel_breakdown"), frames(answers, "kernel_breakdown-2"), strict=True
    ):
        for column in ("count", "sum_ns"):
            keys = ["rank", "event_class"]
            assert whole.groupby(keys)[column].sum().equals(collapsed.groupby(keys)[column].sum())
        durations = frames(answers, "kernel_durations")[0]
        assert durations["sum_ns"].sum() == whole["sum_ns"].sum()
    for frame in frames(answers, "launch_stats"):
        assert (frame["queued_ns"] + frame["overhead_ns"] == frame["latency_ns"]).all()
        assert (frame["start_ns"] - frame["call_start_ns"] == frame["latency_ns"]).all()
        summary = frames(answers, "launch_summary")[0]
        assert summary["gpu_ns"].sum() == frame["gpu_dur_ns"].sum()
    for frame in frames(answers, "stream_idle_breakdown"):
        intervals = frames(answers, "stream_idle_intervals")[0]
        assert frame["idle_ns"].sum() == intervals["dur_ns"].sum()
    for frame in frames(answers, "annotation_totals"):
        kernels = frames(answers, "annotated_kernels")[0]
        assert frame["sum_ns"].sum() == kernels["dur_ns"].sum()
    for frame in frames(answers, "critical_path"):
        assert (frame["end_ns"] - frame["start_ns"] == frame["dur_ns"]).all()
        for _, path in frame.groupby("rank"):
            begins, ends = path["start_ns"].to_numpy()[1:], path["end_ns"].to_numpy()[:-1]
            assert (begins >= ends).all()
            assert (begins > ends).sum() < windows, "a path has no gap within a window"


def nothing_is_negative(answers: Answers) -> None:
    signed = {"launch_stats": {"latency_ns", "overhead_ns"}, "launch_summary": {"latency_ns", "overhead_ns"}}
    for name, frame in answers.items():
        if isinstance(frame, str):
            continue
        for column in frame.columns:
            is_length = column.endswith(
                ("dur_ns", "sum_ns", "idle_ns", "busy_ns", "window_ns", "blocked_ns", "count")
            )
            if is_length and column not in signed.get(name, ()):
                assert (frame[column].dropna() >= 0).all(), (name, column)


def frames_have_one_form(answers: Answers, form: dict[str, pd.Series]) -> None:
    """Rows are numbered from 0, and columns have the same names and types, however many ranks or rows."""
    for name, frame in answers.items():
        if not isinstance(frame, str):
            assert frame.index.equals(pd.RangeIndex(len(frame))), name
            types = frame.dtypes.astype(str)
            assert types.equals(form.setdefault(name, types)), name


def hosts_nest_and_launches_precede(trace: Trace) -> None:
    for rank in trace.ranks:
        rank_trace = trace.rank(rank)
        child = np.flatnonzero(rank_trace.parent >= 0)
        parent = rank_trace.parent[child]
        assert (rank_trace.depth[child] > rank_trace.depth[parent]).all(), (
            "parents are above their children, so no cycle"
        )
        assert (rank_trace.start[parent] <= rank_trace.start[child]).all()
        device = np.flatnonzero(rank_trace.launch >= 0)
        assert rank_trace.is_device[device].all()
        assert (rank_trace.correlation[device] == rank_trace.correlation[rank_trace.launch[device]]).all()


@SOME
@given(JOBS)
def test_random_jobs_are_answered_and_add_up(job: Job) -> None:
    trace, _ = opened(job)
    hosts_nest_and_launches_precede(trace)
    first, last = trace.extent_ns
    scopes = [
        Scope(),
        Scope(iterations=(0, 1, 5)),
        Scope(window_ns=(first, (first + last) // 2 + 1)),
        Scope(ranks=(0,)),
        Scope(window_ns=(first - 2, first - 1)),
    ]
    form: dict[str, pd.Series] = {}
    turn = 1 + job.seed % (len(scopes) - 1)
    for scope in scopes if EVERY_CASE else (scopes[0], scopes[turn]):
        answers = all_answers(trace, scope)
        frames_have_one_form(answers, form)
        parts_add_up(answers, windows=len(scope.iterations or (1,)))
        nothing_is_negative(answers)


@SOME
@given(JOBS)
def test_launches_of_a_sound_job_precede_their_kernels(job: Job) -> None:
    sound = Job(job.seed, job.ranks, job.steps, job.operators, job.ties, nasty=False)
    trace, _ = opened(sound)
    for rank in trace.ranks:
        rank_trace = trace.rank(rank)
        device = np.flatnonzero(rank_trace.is_device)
        assert (rank_trace.launch[device] >= 0).all()
        assert (rank_trace.start[rank_trace.launch[device]] <= rank_trace.start[device]).all()


# Numbers that say where something stands in the file or in the frame, not what it is.
PLACES = {"node", "parent_node", "match"}


def canonical(frame: pd.DataFrame, order: dict[int, list[int]]) -> list[str]:
    """The rows of a frame as sorted text; events are called by their place in the unshuffled file."""
    frame = frame.drop(columns=[name for name in frame.columns if name in PLACES]).copy()
    ids = [name for name in frame.columns if name.endswith("_id")]
    of_event = "event_rank" if "event_rank" in frame else "rank"
    ranks = frame[of_event].tolist() if of_event in frame else []
    for name in ids:
        frame[name] = [
            order[rank][int(value)] if pd.notna(value) and value >= 0 else None
            for rank, value in zip(ranks, frame[name].tolist(), strict=True)
        ]
    return sorted(repr(tuple(row)) for row in frame.astype(object).itertuples(index=False))


@FEW
@given(st.builds(Job, seed=SEEDS, ranks=st.integers(1, 2), ties=st.just(False), nasty=st.booleans()), SEEDS)
def test_the_order_of_events_in_the_file_does_not_matter(job: Job, shuffle: int) -> None:
    trace, order = opened(job)
    other, shuffled = opened(job, shuffle)
    mine, theirs = all_answers(trace, Scope()), all_answers(other, Scope())
    for name, frame in mine.items():
        again = theirs[name]
        if isinstance(frame, str) or isinstance(again, str):
            assert frame == again, name
        else:
            assert canonical(frame, order) == canonical(again, shuffled), name


def test_answers_do_not_depend_on_the_hash_seed() -> None:
    """Two processes with a seed of their own, of which this is one."""
    asked = "from tests.analysis.every_analysis import digests; print(*digests(), sep='\\n')"
    there = subprocess.run(
        [sys.executable, "-c", asked],
        env={**os.environ, "PYTHONHASHSEED": "4242"}, cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert digests() == there
    assert len(there) > 50


def recorded() -> list[str]:
    if not EVERY_CASE:
        return ["hta/cpu_only", "hta/rank_unavailable", *UNLIKE_GPU_TRACES]
    files = sorted(SHARED_TRACES.rglob("*.json.gz")) + sorted(SHARED_TRACES.rglob("*.json"))
    return [str(path.relative_to(SHARED_TRACES)) for path in files if "_et." not in path.name] or ["none"]


@pytest.mark.parametrize("name", recorded())
def test_recorded_jobs_are_answered_and_add_up(name: str) -> None:
    """Only documented errors, whatever was recorded."""
    path = SHARED_TRACES / name
    if not path.exists():
        pytest.skip("no real traces: set HTA_WIDGETS_TRACES")
    trace = Trace.open(path)
    hosts_nest_and_launches_precede(trace)
    iterations = tuple(int(number) for number in trace.iterations["iteration"].unique()[:2])
    one_of_several = name == "hta/critical_path/cuda_event_sync"
    for scope in (Scope(), Scope(iterations=iterations))[: 2 if EVERY_CASE or one_of_several else 1]:
        answers = all_answers(trace, scope)
        parts_add_up(answers, windows=len(scope.iterations or (1,)))
        nothing_is_negative(answers)
