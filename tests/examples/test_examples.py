"""The simulated examples are what the simulator writes, and the analyses find exactly what went into them.

The recorded ones can be read, and say which machine wrote them.
"""

import gzip
import re
from pathlib import Path

import pytest
from recorder.bundled import BUNDLED

from examples.simulator import Occupation, SimulatedJob, simulate
from examples.simulator.__main__ import DATA, build
from examples.simulator.bundled import JOBS
from hta_widgets import analysis, examples
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

RECORDED = DATA.parent / "recorded"
COLUMNS = [
    "window_ns",
    "compute_ns",
    "communication_ns",
    "memory_ns",
    "exposed_communication_ns",
    "exposed_memory_ns",
    "idle_ns",
]


def numbers(spent: Occupation) -> list[int]:
    return [getattr(spent, column) for column in COLUMNS]


@pytest.fixture(scope="module", params=sorted(JOBS))
def job(request: pytest.FixtureRequest) -> SimulatedJob:
    return JOBS[request.param]


@pytest.fixture(scope="module")
def trace(job: SimulatedJob) -> Trace:
    return examples.load(job.name)


def test_committed_files_are_what_the_build_writes(tmp_path: Path) -> None:
    # Content, not bytes of the gzip stream: those depend on the version of zlib.
    written = {path.relative_to(tmp_path): gzip.decompress(path.read_bytes()) for path in build(tmp_path)}
    committed = {p.relative_to(DATA): gzip.decompress(p.read_bytes()) for p in DATA.rglob("*.gz")}
    assert written == committed


def test_the_examples_are_small() -> None:
    assert sum(path.stat().st_size for path in DATA.rglob("*.gz")) < 1_500_000
    assert sum(path.stat().st_size for path in RECORDED.rglob("*") if path.is_file()) < 6_000_000


def test_names_and_paths() -> None:
    assert examples.names(recorded=False) == list(JOBS)
    assert sorted(examples.names(recorded=True)) == sorted(BUNDLED.values())
    assert {path.name for path in RECORDED.iterdir() if path.is_dir()} == set(BUNDLED.values())
    assert examples.names() == [*examples.names(recorded=False), *examples.names(recorded=True)]
    assert all(examples.path(name).is_dir() for name in examples.names())


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(ValueError, match=r"no example 'ddp'.*ddp_4ranks"):
        examples.path("ddp")


def test_ranks_and_iterations(job: SimulatedJob, trace: Trace) -> None:
    truth = simulate(job).truth
    assert trace.ranks == sorted(truth.ranks)
    assert not trace.failed
    for rank, expected in truth.ranks.items():
        found = trace.rank(rank).iterations
        assert len(found) == len(expected.steps)
        assert list(found["end_ns"] - found["start_ns"]) == [
            step.window_ns for step in expected.steps.values()
        ]
        if job.strategy != "serving":
            assert list(found["iteration"]) == list(expected.steps)


def test_clean_jobs_have_no_health_warnings(trace: Trace) -> None:
    assert trace.health[trace.health["severity"].isin(["warning", "error"])].empty


def test_temporal_breakdown_of_the_whole_is_the_truth(job: SimulatedJob, trace: Trace) -> None:
    frame = analysis.temporal_breakdown(trace).set_index("rank")
    for rank, expected in simulate(job).truth.ranks.items():
        assert list(frame.loc[rank, COLUMNS]) == numbers(expected.device_span)


def test_temporal_breakdown_of_each_step_is_the_truth(job: SimulatedJob, trace: Trace) -> None:
    frame = analysis.temporal_breakdown(trace, by="iteration").set_index(["rank", "iteration"])
    for rank, expected in simulate(job).truth.ranks.items():
        labels = trace.rank(rank).iterations["iteration"]
        for iteration, step in zip(labels, expected.steps.values(), strict=True):
            assert list(frame.loc[(rank, iteration), COLUMNS]) == numbers(step)


def test_overlap_is_the_truth() -> None:
    trace, truth = examples.load("ddp_4ranks"), simulate(JOBS["ddp_4ranks"]).truth
    whole = analysis.comm_comp_overlap(trace).set_index("rank")
    for rank, expected in truth.ranks.items():
        cases = [(whole.loc[rank], expected.device_span)]
        for iteration, step in expected.steps.items():
            scope = Scope(ranks=(rank,), iterations=(iteration,))
            cases.append((analysis.comm_comp_overlap(trace, scope).iloc[0], step))
        for row, spent in cases:
            hidden = spent.communication_ns - spent.exposed_communication_ns
            assert row["communication_ns"] == spent.communication_ns
            assert row["overlapped_ns"] == hidden
            assert row["exposed_ns"] == spent.exposed_communication_ns
            assert row["overlap_pct"] == pytest.approx(100 * hidden / spent.communication_ns)


def test_shifted_clocks_change_no_answer(tmp_path: Path) -> None:
    job = SimulatedJob("test", "ddp", ranks=2, steps=2, layers=2, clock_offsets_ns=(0, 987_654_321))
    simulation = simulate(job)
    simulation.write(tmp_path)
    frame = analysis.temporal_breakdown(Trace.open(tmp_path)).set_index("rank")
    for rank, expected in simulation.truth.ranks.items():
        assert list(frame.loc[rank, COLUMNS]) == numbers(expected.device_span)


@pytest.mark.parametrize("name", examples.names(recorded=True))
def test_recorded_examples_are_whole_and_name_no_folder(name: str) -> None:
    trace = examples.load(name)
    assert trace.ranks == [0] and not trace.failed
    assert "error" not in set(trace.health["severity"])
    assert len(trace.rank(0).iterations) >= 3
    (file,) = examples.path(name).iterdir()
    text = gzip.decompress(file.read_bytes())
    assert b'"name": "NVIDIA H100 80GB HBM3"' in text
    assert not re.findall(rb"(?<![\w./])/[\w.-]+/", text), "a folder of the machine that recorded it"
    assert not re.search(rb"/(?:home|root|tmp)/|torchinductor_|host_name", text)
