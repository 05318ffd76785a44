"""Loops of which the profiler lost records: shares keep their value, or are withheld; nothing contradicts."""

import json
import os
import random
from pathlib import Path
from typing import Any, get_args

import pytest

from hta_widgets import Scope, Trace, analysis
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rules import RULES
from hta_widgets.analysis.findings.withheld import withheld
from tests.cli.test_one_whole import contradictions
from tests.loops.program import Ahead, Between, Loop, Where, simulated, truth, write
from tests.loops.test_loops import PARTS, POINTS

LOST = ("first kernels", "a middle step", "one kernel")
EVERY = [
    (Loop(where, between, ahead, ranks, 1, "once", 10), lost)
    for where in get_args(Where)
    for between in get_args(Between)
    for ahead in get_args(Ahead)
    for ranks in (1, 2)
    for lost in LOST
]
SAMPLE = EVERY if os.environ.get("HTA_WIDGETS_EVERY_LOOP") else random.Random(37).sample(EVERY, 12)
CLAIM_OF = {rule.topic: rule.claim for rule in RULES}


def lose(path: Path, lost: str) -> None:
    """Take device records, whose launches are recorded, out of the file of a rank."""
    document: dict[str, Any] = json.loads(path.read_text())
    events = document["traceEvents"]
    called = {each["args"].get("correlation") for each in events if each.get("cat") == "cuda_runtime"}
    kernels = [
        each for each in events if each.get("cat") == "kernel" and each["args"]["correlation"] in called
    ]
    kernels.sort(key=lambda each: each["ts"])
    middle = len(kernels) // 2
    few = kernels[:6] if lost == "first kernels" else kernels[middle : middle + (4 if "step" in lost else 1)]
    gone = {id(each) for each in few}
    document["traceEvents"] = [each for each in events if id(each) not in gone]
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(("loop", "lost"), SAMPLE)
def test_lost_records_move_nothing_that_is_said(loop: Loop, lost: str, tmp_path: Path) -> None:
    runs = simulated(loop)
    truths = [truth(run) for run in runs]
    if None in truths:
        pytest.skip("it never becomes steady")
    folder = write(loop, runs, tmp_path / "job")
    lose(folder / "rank0.json", lost)
    trace = Trace.open(folder, cache=False)
    inputs, found = Inputs(trace, Scope()), analysis.overview(trace)
    assert trace.trust.level != "full"
    assert not contradictions(trace, found.to_dict("records"))
    forbidden = {claim for claim in {*CLAIM_OF.values()} - {None} if withheld(trace, inputs.scope, claim)}
    of_class = {CLAIM_OF.get(topic) for topic in found.loc[found["section"] != "open", "topic"]}
    assert not forbidden & of_class
    if "savings" in forbidden:
        assert not found["saving_ns"].notna().any()
    if "efficiency" in forbidden or inputs.open_ended:
        return
    split = inputs.temporal.set_index("rank")
    for rank, true in enumerate(truths):
        for part in PARTS:
            assert abs(split.loc[rank, part] - getattr(true, part)) <= POINTS, (rank, part)


@pytest.mark.parametrize("ahead", get_args(Ahead))
def test_lost_work_is_missing_in_the_step_that_launches_it(ahead: Ahead, tmp_path: Path) -> None:
    """Where the host runs ahead, the work of a step runs while its host is in a later one: steps are then
    timed by the device, and the later one is whole."""
    loop = Loop("bottom", "nothing", ahead, steps=10)
    folder = write(loop, simulated(loop), tmp_path / "job")
    lose(folder / "rank0.json", "one kernel")
    trace = Trace.open(folder, cache=False)
    rank = trace.rank(0)
    assert rank.iteration_clock == ("host" if ahead == "none" else "device")
    [lost] = rank.losses.lost.tolist()
    step = int(rank.iteration[lost])
    assert [veto.iteration for veto in trace.vetoes("efficiency")] == [step]
    steps = rank.iterations.set_index("iteration")
    steps["dur_us"] = (steps["end_ns"] - steps["start_ns"]) / 1_000
    [veto] = trace.vetoes("efficiency")
    assert (veto.start_ns, veto.end_ns) == tuple(steps.loc[step, ["start_ns", "end_ns"]])
    assert steps["dur_us"].where(~steps["partial"]).max() <= truth(simulated(loop)[0]).period
    for other in set(steps.index) - {step}:
        window = Scope(window_ns=tuple(steps.loc[other, ["start_ns", "end_ns"]].tolist()))
        assert not trace.vetoes(scope=window) and not withheld(trace, window, "efficiency")


def test_lost_work_that_would_run_in_the_next_step_leaves_that_in_doubt_by_the_host(tmp_path: Path) -> None:
    loop = Loop("bottom", "nothing", "half", steps=10)
    folder = write(loop, simulated(loop), tmp_path / "job")
    lose(folder / "rank0.json", "one kernel")
    trace = Trace.open(folder, cache=False, clock="host")
    [lost] = trace.rank(0).losses.lost.tolist()
    step = int(trace.rank(0).iteration[lost])
    assert [each.iteration for each in trace.rank(0).doubtful_steps] == [step, step + 1]
