"""`fsdp_units` against planted jobs, and what is exposed against a count from boundary to boundary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest

from examples.simulator import SimulatedJob, simulate
from hta_widgets import examples
from hta_widgets.analysis import fsdp_units, temporal_breakdown
from hta_widgets.analysis.strategy.fsdp_units import CAUSES, sentence
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.analysis.kineto_file import event as an_event
from tests.job.fsdp_jobs import ROOT, US, Done, FsdpJob, Played
from tests.support import crossed

COMMUNICATION = ("all_gather", "reduce_scatter")
DRAINED = FsdpJob(waits=True, backward_ahead=0)
JOBS = {
    "ahead": FsdpJob(),
    "drained": DRAINED,
    "drained, sent for ahead": replace(DRAINED, forward_ahead=1, backward_ahead=1, first_ahead=(0,)),
    "no prefetch in backward": FsdpJob(one_stream=True, backward_ahead=0),
    "one stream": FsdpJob(one_stream=True),
    "slow link": FsdpJob(gather_ns=1_200 * US),
    "wrong order": FsdpJob(first_ahead=(1, 0), gather_ns=350 * US),
    "held back": FsdpJob(held_ns=500 * US),
    "link busy": replace(DRAINED, all_reduce_ns=700 * US),
}


@cache
def opened(case: str) -> Trace:
    with TemporaryDirectory() as folder:
        return JOBS[case].open(Path(folder))


def found_in(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    """Collectives of a frame as the truth has them."""
    rows = frame[frame["part"] != "compute"]
    columns = ["iteration", "name", "phase", "part", "issued_ns", "start_ns", "end_ns"]
    prefetched = rows["prefetched"].fillna(False).astype(bool)
    return sorted(zip(*(rows[column].tolist() for column in columns), prefetched.tolist(), strict=True))


def truth_of(played: Played, names: dict[str, str], shift: int) -> list[tuple[object, ...]]:
    return sorted(
        (
            each.step, names.get(each.unit, each.unit), each.phase, each.part, each.issued + shift,
            each.start + shift, each.end + shift, each.prefetched,
        )
        for each in played.done
        if each.part != "compute"
    )  # fmt: skip


def plain_exposed(work: Iterable[tuple[int, int, str]], own: list[tuple[int, int]]) -> list[int]:
    """For each of these stretches the time in which it runs, no compute does, and none that began before."""
    work = list(work)
    moments = sorted({moment for start, end, _ in work for moment in (start, end)})
    lost = [0] * len(own)
    for begin, end in pairwise(moments):
        if any(kind == "compute" and start <= begin and end <= stop for start, stop, kind in work):
            continue
        running = [at for at, (start, stop) in enumerate(own) if start <= begin and end <= stop]
        if running:
            lost[min(running, key=lambda at: own[at][0])] += end - begin
    return lost


def units_between(done: list[Done], gather: Done) -> int:
    """How many others compute between the issue of a gather and the first kernel of its unit after it."""
    own = [
        each.start for each in done
        if (each.step, each.unit, each.phase, each.part)
        == (gather.step, gather.unit, gather.phase, "compute") and each.start >= gather.end
    ]  # fmt: skip
    others = {
        (each.step, each.unit, each.phase)
        for each in done
        if each.part == "compute" and each.end > gather.issued and each.start < min(own)
    }
    return len(others - {(gather.step, gather.unit, gather.phase)})


@pytest.mark.parametrize(("case", "named"), crossed(JOBS, (True, False)))
def test_units_are_what_the_program_did(case: str, named: bool, tmp_path: Path):
    if case == "wrong order" and not named:
        pytest.skip("units of one size cannot be told apart without their names")
    played = replace(JOBS[case], names_units=named).play()
    trace = played.open(tmp_path)
    frame = fsdp_units(trace)
    names = {} if named else {ROOT: "unit 0"} | {f"layers.{at}": f"unit {at + 1}" for at in range(4)}
    shift = int(frame["start_ns"].min()) - min(each.start for each in played.done)
    assert found_in(frame) == truth_of(played, names, shift)
    # compute of each turn, without gaps
    kernels = [each for each in played.done if each.part == "compute"]
    truth: dict[tuple[object, ...], int] = {}
    for each in kernels:
        key = each.step, names.get(each.unit, each.unit), each.phase
        truth[key] = truth.get(key, 0) + each.end - each.start
    computed = frame[frame["part"] == "compute"]
    keys = zip(computed["iteration"], computed["name"], computed["phase"], strict=True)
    assert dict(zip(keys, computed["dur_ns"], strict=True)) == truth
    # how far ahead
    gathers = frame[frame["part"] == "all_gather"]
    ahead = {
        each.start + shift: units_between(played.done, each)
        for each in played.done
        if each.part == "all_gather"
    }
    assert dict(zip(gathers["start_ns"], gathers["prefetch_units"], strict=True)) == ahead


@pytest.mark.parametrize("case", JOBS)
def test_exposed_times_add_up(case: str):
    trace = opened(case)
    frame = fsdp_units(trace)
    own = frame[frame["part"] != "compute"]
    rank = trace.rank(0)
    work = [
        (int(rank.start[row]), int(rank.end[row]), rank.names[rank.name[row]])
        for row in range(rank.n)
        if rank.is_device[row]
    ]
    kinds = [(start, end, "other" if "nccl" in name else "compute") for start, end, name in work]
    spans = list(zip(own["start_ns"].tolist(), own["end_ns"].tolist(), strict=True))
    assert own["exposed_ns"].tolist() == plain_exposed(kinds, spans)
    if not JOBS[case].all_reduce_ns:  # then there is no other communication
        whole = temporal_breakdown(trace, Scope(window_ns=(rank.extent[0], rank.extent[1])))
        assert frame["exposed_ns"].sum() == whole["exposed_communication_ns"].sum()


def causes(frame: pd.DataFrame, phase: str) -> set[str]:
    """Why layers gather late in a phase, where that costs more than a few launches."""
    late = frame[(frame["exposed_ns"] > 20 * US) & (frame["phase"] == phase) & (frame["name"] != ROOT)]
    return set(late.loc[late["part"] == "all_gather", "cause"])


@pytest.mark.parametrize(
    ("case", "forward", "backward"),
    [
        ("ahead", {"queued"}, set()),  # behind the root's, which nothing hides
        ("drained", {"issued late"}, {"issued late"}),
        ("drained, sent for ahead", {"in time"}, {"in time"}),  # the host launches nothing beside them
        ("no prefetch in backward", {"queued"}, {"out of order"}),
        ("one stream", {"queued"}, set()),
        ("slow link", {"queued"}, {"queued"}),
        ("wrong order", {"in time", "out of order"}, set()),
        ("held back", {"held back"}, set()),
        ("link busy", {"link busy", "issued late"}, {"issued late"}),  # busy since the first layer's turn
    ],
)
def test_why_gathers_are_late(case: str, forward: set[str], backward: set[str]):
    frame = fsdp_units(opened(case))
    assert (causes(frame, "forward"), causes(frame, "backward")) == (forward, backward)


def test_out_of_order_is_what_is_needed_first():
    frame = fsdp_units(opened("wrong order"))
    late = frame[(frame["cause"] == "out of order") & (frame["exposed_ns"] > 20 * US)]
    assert set(late["name"]) == {"layers.0"} and len(late) == 3


def test_another_rank_that_comes_late_is_the_cause(tmp_path: Path):
    late = replace(DRAINED, waits_for_ns=400 * US).play()
    trace = late.open(tmp_path, DRAINED.play().events)
    frame = fsdp_units(trace, Scope(ranks=(0,)))
    layers = frame[(frame["part"] == "all_gather") & (frame["name"] != ROOT)]
    assert set(layers["cause"]) == {"other ranks"}


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # before collectives are matched, which takes long
    monkeypatch.setattr("hta_widgets.analysis.strategy.fsdp_units.collectives_of", None)
    with pytest.raises(MissingDataError, match="FSDP ranges"):
        fsdp_units(replace(FsdpJob(), ranges=False).open(tmp_path))
    with pytest.raises(MissingDataError, match="FSDP ranges"):
        fsdp_units(examples.load("gpt2_ddp"))


def test_units_within_units_need_names(tmp_path: Path):
    played = FsdpJob().play()
    for event in played.events:
        event["name"] = event["name"].partition(" (")[0] if "FSDP::" in event["name"] else event["name"]
    with pytest.raises(MissingDataError, match=r"does not name the units"):
        fsdp_units(played.open(tmp_path))


def test_a_wrapper_that_does_not_mark_what_is_sent_for_ahead(tmp_path: Path):
    played = FsdpJob(names_units=False).play()
    kept = [event for event in played.events if "pre_forward" not in event["name"]]
    played.events[:] = kept
    with pytest.raises(MissingDataError, match="own all-gather"):
        fsdp_units(played.open(tmp_path))


def test_units_of_the_wrapper_must_agree_in_size(tmp_path: Path):
    """Otherwise the order of backward is not that of forward in reverse, and no unit is certain."""
    played = FsdpJob(names_units=False, layers=2, steps=2).play()
    sizes = {}
    for event in played.events:
        if "AllGather" in event["name"]:
            number = len(sizes)
            sizes[number] = event
    # root, 0, 1 in forward and 1, 0 in backward: 0 and 1 have other sizes, and backward swaps them
    for number, event in sizes.items():
        place = number % 5
        event["args"]["Out msg nelems"] = {0: 100, 1: 200, 2: 300, 3: 200, 4: 300}[place]
    with pytest.raises(MissingDataError, match="FSDP ranges"):
        fsdp_units(played.open(tmp_path))


def test_a_recording_that_begins_within_a_step(tmp_path: Path):
    """Without the range of the root's forward, units of that pass are not known."""
    played = FsdpJob(names_units=False).play()
    whole = fsdp_units(played.open(tmp_path))
    first = min(
        (event for event in played.events if event["name"] == "FullyShardedDataParallel.forward"),
        key=lambda event: float(event["ts"]),
    )
    played.events.remove(first)
    (tmp_path / "cut").mkdir()
    cut = fsdp_units(played.open(tmp_path / "cut"))
    columns = ["iteration", "name", "phase", "part", "start_ns", "dur_ns"]
    expected = whole.loc[whole["iteration"] > 1, columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(cut[columns].reset_index(drop=True), expected)


def test_units_of_the_wrapper_are_named_by_the_modules_in_it(tmp_path: Path):
    """Not by the wrapper itself, nor by a function that calls the module."""
    played = FsdpJob(names_units=False, layers=2, steps=2).play()
    ranges = [each for each in played.events if each["name"] == "FullyShardedDataParallel.forward"]
    ranges.sort(key=lambda each: float(each["ts"]))
    modules = ["GPT_0", "Block_0", "Block_1"] * 2
    for turn, module in zip(ranges, modules, strict=True):
        begin = round(float(turn["ts"]) * US)
        called = ["nn.Module: FullyShardedDataParallel_0", "module.py(1): _call_impl", f"nn.Module: {module}"]
        for at, name in enumerate(called):
            played.events.append(an_event("python_function", name, begin + 100 * (at + 1), 50))
    names = fsdp_units(played.open(tmp_path))["name"]
    assert set(names) == {"unit 0 (GPT_0)", "unit 1 (Block_0)", "unit 2 (Block_1)"}


@pytest.mark.parametrize(
    ("strategy", "backward"), [("fsdp_full_shard", ["unit 2", "unit 1"]), ("fsdp_shard_grad_op", [])]
)
def test_simulated_wrappers(strategy: str, backward: list[str], tmp_path: Path):
    """Two ranks whose backward has a thread of its own; FULL_SHARD gathers all but the root again."""
    job = SimulatedJob("units", strategy, ranks=2, steps=2, layers=2)
    simulate(job).write(tmp_path)
    trace = Trace.open(tmp_path, cache=False)
    frame = fsdp_units(trace)
    for _, step in frame.groupby(["rank", "iteration"]):
        gathers = step[step["part"] == "all_gather"].groupby("phase")["name"].agg(list)
        assert gathers["forward"] == ["unit 0", "unit 1", "unit 2"]
        assert gathers.get("backward", []) == backward
        reduced = step[step["part"] == "reduce_scatter"]
        assert reduced["name"].tolist() == ["unit 2", "unit 1", "unit 0"]
    # counted again: compute of forward is what is launched inside the outermost range of it
    rank = trace.rank(0)
    forwards = [
        (int(rank.start[row]), int(rank.end[row]), int(rank.thread[row]))
        for row in range(rank.n)
        if rank.names[rank.name[row]] == "FullyShardedDataParallel.forward"
    ]
    inside = 0
    for row in range(rank.n):
        call = int(rank.launch[row])
        if rank.event_class[row] == EventClass.COMPUTE and rank.is_device[row] and call >= 0:
            at, thread = int(rank.start[call]), int(rank.thread[call])
            inside += int(rank.dur[row]) * any(
                start <= at < end and thread == own for start, end, own in forwards
            )
    own = frame[(frame["rank"] == 0) & (frame["part"] == "compute") & (frame["phase"] == "forward")]
    assert own["dur_ns"].sum() == inside


def test_sentences(tmp_path: Path):
    frame = fsdp_units(DRAINED.open(tmp_path))
    assert sentence(frame) == (
        "5 FSDP units issue 27 all-gathers. Nothing hides 8.10 ms of them, 100 % of their time. "
        "For 7.20 ms of that, the reason is that they are issued late."
    )
    assert sentence(frame.iloc[:0]) == "No all-gather of an FSDP unit lies in the selection."
    assert set(frame["cause"]) - {""} <= CAUSES.keys()
