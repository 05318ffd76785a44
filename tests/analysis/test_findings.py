"""Planted causes are found and come first; a clean job has nothing to warn of; every answer is a sentence."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from examples.simulator import SimulatedJob, simulate
from hta_widgets import Scope, Trace, analysis, examples
from hta_widgets.analysis import ANALYSES
from hta_widgets.analysis.findings import CHECKED, OPEN, VERDICT, overview
from hta_widgets.analysis.findings.finding import NOTE_PCT, WARNING_PCT, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.idle.causes import CAUSES, is_data_loading
from tests.analysis.kineto_file import Event, kernel, launch
from tests.analysis.kineto_file import job as kineto_job
from tests.first_lines import first_lines
from tests.support import shared_trace
from tests.verdicts.planted.host_program import MS, US, Program


def opened(job: SimulatedJob, folder: Path) -> Trace:
    simulate(job).write(folder)
    return Trace.open(folder)


def found(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    frame = overview(trace, scope)
    return frame[~frame["severity"].isin((OPEN, VERDICT, CHECKED))].reset_index(drop=True)


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("ddp_4ranks", "straggler"),
        ("single_gpu_dataloader_stall", "data_stall"),
        ("inference_cuda_graphs", "bubble_between_steps"),
    ],
)
def test_what_was_planted_in_the_examples_comes_first(name: str, topic: str) -> None:
    first = found(examples.load(name)).iloc[0]
    assert first["topic"] == topic
    assert first["severity"] == "warning"


def test_a_straggler_is_named_and_so_is_why_it_is_late() -> None:
    trace = examples.load("ddp_4ranks")
    topics = found(trace).set_index("topic")
    assert topics.loc["straggler", "rank"] == 2
    slow = topics.loc["slow_kernels"]
    assert slow["rank"] == 2
    assert "1.12 times as long" in slow["text"]
    assert slow["name"] in trace.rank(2).names
    assert "data_stall" in topics.index


@pytest.mark.parametrize("name", ["ddp_4ranks", "hta/trace_filter"])
def test_ranks_are_compared_by_the_statistics_of_their_kernels(name: str) -> None:
    trace = examples.load(name) if name in examples.names() else Trace.open(shared_trace(name))
    first, last = trace.extent_ns
    for scope in (Scope(), Scope(window_ns=(first, (first + last) // 2)), Scope(streams=(-9,))):
        inputs = Inputs(trace, scope)
        listed = analysis.kernel_durations(trace, inputs.scope)
        listed = listed[listed["event_class"] == "compute"]
        table = inputs.kernel_times
        shown = {(name, rank): value for rank in table for name, value in table[rank].items() if value}
        assert shown == listed.set_index(["name", "rank"])["sum_ns"].to_dict()


def test_the_cost_of_a_stall_is_the_idle_time_of_the_announced_steps() -> None:
    trace = examples.load("single_gpu_dataloader_stall")
    steps = tuple(trace.iterations["iteration"])
    idle = analysis.idle_breakdown(trace, Scope(iterations=steps)).iloc[0]
    stall = found(trace).iloc[0]
    assert stall["cost_ns"] == idle["data_stall_ns"]
    assert stall["share_pct"] == pytest.approx(100 * idle["data_stall_ns"] / idle["window_ns"])
    gaps = analysis.idle_gaps(trace, Scope(iterations=steps))
    assert stall["event_rank"] == 0
    longest = gaps.loc[gaps["data_stall_ns"].idxmax()]
    assert longest["start_ns"] <= stall["start_ns"] < stall["end_ns"] <= longest["end_ns"]
    events = trace.events(Scope(ranks=(0,))).set_index("event_id")
    assert is_data_loading(events.loc[stall["event_id"], "name"])
    assert first_lines(trace).startswith("26.5 ms per step; it could be 12.6 ms without the data loader.")


@pytest.mark.parametrize(
    "job",
    [
        SimulatedJob("clean", "ddp", ranks=2, steps=4, layers=4),
        SimulatedJob("clean", "single", steps=4, layers=6, batch=16),
    ],
    ids=["ddp", "single"],
)
def test_a_clean_job_has_no_warning(job: SimulatedJob, tmp_path: Path) -> None:
    trace = opened(job, tmp_path)
    frame = overview(trace)
    assert not (frame["severity"] == "warning").any()
    if job.strategy == "single":
        assert frame["severity"].tolist() == [VERDICT, CHECKED]
        assert "; nothing to save stands out: the GPU computes 9" in first_lines(trace, frame)


def test_a_rank_that_stands_out_is_looked_at_alone(tmp_path: Path) -> None:
    """One of four devices idles half of its time: it may hold up the job, and an average would hide it."""
    ranks = [
        [
            launch(0, 1, dur=10),
            kernel("one", 10, 490_000, correlation=1),
            launch(490_000 + late, 2, dur=10),
            kernel("two", 490_010 + late, 510_000 - late, correlation=2),
        ]
        for late in (0, 0, 0, 500_000)
    ]
    first = found(kineto_job(tmp_path, *ranks)).iloc[0]
    assert (first["topic"], first["rank"]) == ("idle_host", 3)
    assert first["text"].startswith("The device of rank 3 is idle ")


@pytest.mark.parametrize(("late", "alone"), [(300_000, True), (200_000, False)])
def test_one_of_two_ranks_stands_out_by_what_the_other_loses(tmp_path: Path, late: int, alone: bool) -> None:
    ranks = [
        [
            launch(0, 1, dur=10),
            kernel("one", 10, 490_000, correlation=1),
            launch(490_000 + gap, 2, dur=10),
            kernel("two", 490_010 + gap, 510_000 - gap, correlation=2),
        ]
        for gap in (90_000, late)
    ]
    first = found(kineto_job(tmp_path, *ranks)).iloc[0]
    assert first["topic"] == "idle_host" and pd.notna(first["rank"]) == alone
    assert first["text"].startswith("The device of rank 1 is" if alone else "The devices are")


def test_ranks_that_lose_about_as_much_are_told_together(tmp_path: Path) -> None:
    ranks = [
        [
            launch(0, 1, dur=10),
            kernel("one", 10, 490_000, correlation=1),
            launch(490_000 + late, 2, dur=10),
            kernel("two", 490_010 + late, 510_000 - late, correlation=2),
        ]
        for late in (300_000, 400_000)
    ]
    first = found(kineto_job(tmp_path, *ranks)).iloc[0]
    assert first["topic"] == "idle_host" and pd.isna(first["rank"])
    assert first["cost_ns"] == (300_000 + 400_000) // 2 - 10, "what a rank loses, not all of them together"
    assert first["text"].startswith("The devices are idle ")
    assert first["event_rank"] == 1, "the longest gap is that of the rank that loses most"


def test_the_only_rank_is_the_device_and_no_rank_to_select(tmp_path: Path) -> None:
    """Half of the time idles for a late host: one cause, and it costs, but nothing costs more or less."""
    events = [
        launch(0, 1, dur=10),
        kernel("one", 10, 490_000, correlation=1),
        launch(990_000, 2, dur=10),
        kernel("two", 990_010, 10_000, correlation=2),
    ]
    only = found(kineto_job(tmp_path, events))
    assert only["topic"].tolist() == ["idle_host"]
    assert only["text"].iloc[0].startswith("The device is idle 50.0 % of the time (500 µs) because the host ")
    assert only["rank"].isna().all() and (only["event_rank"] == 0).all()


def test_a_rank_whose_peers_are_not_recorded_may_wait_for_them(tmp_path: Path) -> None:
    """One file of a job of two: that nobody is late is not known."""
    events = [
        launch(0, 1, dur=10),
        kernel("gemm", 10, 500_000, correlation=1),
        launch(20, 2, dur=10),
        kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 500_010, 500_000, stream=8, correlation=2),
    ]
    frame = overview(kineto_job(tmp_path, events))
    assert (
        frame.loc[frame["severity"] == OPEN, "text"]
        .str.contains("The trace has no second rank: it is unknown .*whom the ranks wait for")
        .any()
    )


def test_start_up_is_no_other_idle_time(tmp_path: Path) -> None:
    program = Program()
    with program.step(1):
        program.launch(100 * US)
        program.synchronise()
        program.driver("cudaFree", 30 * MS)
        for _ in range(10):
            program.operator("aten::slow_op", 100 * US)
            program.launch(50 * US)
        program.synchronise()
    idle = Inputs(program.open(tmp_path), Scope()).idle.iloc[0]
    assert idle["start_up_ns"] >= 30 * MS
    assert idle["start_up_ns"] + sum(idle[f"{cause}_ns"] for cause in CAUSES) == idle["idle_ns"]


def test_copies_of_the_only_device_are_no_rank_to_select(tmp_path: Path) -> None:
    def copying(dur: int) -> list[Event]:
        calls = [launch(0, 1, dur=5), launch(5, 2, dur=5), launch(10, 3, dur=5)]
        copy = kernel("Memcpy HtoD", 10_010, dur, correlation=2, cat="gpu_memcpy")
        return [*calls, kernel("k", 10, 10_000, correlation=1), copy, kernel("k", 20_010, 10, correlation=3)]

    (tmp_path / "one").mkdir()
    alone = found(kineto_job(tmp_path / "one", copying(10_000))).set_index("topic").loc["memory_copies"]
    assert alone["text"].startswith("The device does nothing but copy") and pd.isna(alone["rank"])
    (tmp_path / "three").mkdir()
    ranks = found(kineto_job(tmp_path / "three", copying(10), copying(10_000), copying(10)))
    among = ranks.set_index("topic").loc["memory_copies"]
    assert among["text"].startswith("The device of rank 1 does nothing but copy") and among["rank"] == 1


@pytest.mark.parametrize(
    ("share", "expected"),
    [(NOTE_PCT - 0.01, None), (NOTE_PCT, "note"), (WARNING_PCT - 0.01, "note"), (WARNING_PCT, "warning")],
)
def test_what_counts(share: float, expected: str | None) -> None:
    assert severity_of(share) == expected


@pytest.mark.parametrize(
    "name",
    [
        "hta/trace_filter",
        "hta/ns_resolution_trace",
        "hta/nccl_parser_config",
        "hta/amd_trace",
        "hta/mtia_inference_trace",
        "hta/cpu_only",
        "tracelens/inference/vllm_decode_full",
        "kineto/resnet50_num_workers_0",
    ],
)
def test_findings_of_real_traces_are_sentences(name: str) -> None:
    frame = overview(Trace.open(shared_trace(name)))
    empty = overview(Trace.open(shared_trace(name)), Scope(window_ns=(10**15, 10**15 + 1)))
    assert frame.dtypes.equals(empty.dtypes)
    order = ["recording", "saves", "unknown", "not now", "nothing found", "open"]
    places = [order.index(section) for section in frame["section"] if section != VERDICT]
    assert places == sorted(places)
    wholes = frame[frame["part_of"] == ""]  # parts stand behind their whole
    for section, column in (("saves", "saving_ns"), ("unknown", "share_pct"), ("not now", "cost_ns")):
        assert wholes.loc[wholes["section"] == section, column].is_monotonic_decreasing
    optional = filter(None, (*frame["saving"], *frame["suggestion"]))
    for text in (*frame["text"], *optional):
        assert text.endswith(".")
        assert "nan" not in text.lower().split()
        assert "<NA>" not in text
    known = frame[(frame["severity"] != OPEN) & (frame["kind"] != "")]
    assert len(known) or name in ("hta/trace_filter", "hta/cpu_only")
    assert set(known["kind"]) <= set(ANALYSES)
    assert known["share_pct"].between(NOTE_PCT, 100).all()
    assert (frame.loc[frame["severity"] == OPEN, "kind"] == "").all()


def test_a_real_data_loader_stall_is_found() -> None:
    first = found(Trace.open(shared_trace("kineto/resnet50_num_workers_0"))).iloc[0]
    assert first["topic"] == "data_stall"


def test_what_cannot_be_judged_is_reported_with_its_remedy() -> None:
    frame = overview(Trace.open(shared_trace("hta/cpu_only")))
    assert set(frame["severity"]) == {VERDICT, OPEN}
    unknown = frame[frame["severity"] == OPEN]
    assert unknown["text"].iloc[0].startswith("The trace has no device events: it is unknown why devices")
    assert "ProfilerActivity.CUDA" in unknown["suggestion"].iloc[0]
    said = first_lines(Trace.open(shared_trace("hta/cpu_only")), frame)
    assert said.startswith("Where time goes is unknown: the trace has 4 operators and no device events")
    one_of_eight = overview(Trace.open(shared_trace("hta/trace_diff/control")))
    assert "whom the ranks wait for" in one_of_eight.loc[one_of_eight["severity"] == OPEN, "text"].iloc[0]
