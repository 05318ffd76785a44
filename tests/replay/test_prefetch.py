"""All-gathers issued earlier: the replay against the same job, played with that prefetch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hta_widgets import edits
from hta_widgets.analysis import replayed_events, replayed_path, what_if
from hta_widgets.analysis.replay.graph import graph_of
from hta_widgets.analysis.replay.passes import GONE, PINNED
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import job as job_of
from tests.job.fsdp_jobs import COMPUTE_STREAM, COPY_IN, GATHER, US, FsdpJob, Played
from tests.support import crossed, with_its_files

AHEAD = FsdpJob(backward_ahead=0, steps=4)
DRAINED = replace(AHEAD, waits=True)
ONE_STREAM = replace(AHEAD, one_stream=True)
RECORDED = replace(AHEAD, waits_for_compute=True)
# the host never waits for the device: it launches as it did, whatever the order on the device
FREE_HOST = {
    "host ahead": AHEAD,
    "one stream": ONE_STREAM,
    "one stream, wrapper": replace(ONE_STREAM, names_units=False),
    "one stream, slow link": replace(ONE_STREAM, gather_ns=900 * US, reduce_ns=600 * US),
    "one stream, prefetched in backward": replace(ONE_STREAM, backward_ahead=1),
    "one stream, copies in": replace(ONE_STREAM, copy_in_ns=50 * US),
    "slow link": replace(AHEAD, gather_ns=1_200 * US),
    "waits for compute": RECORDED,
    "waits for compute, prefetched in backward": replace(RECORDED, backward_ahead=1),
    "waits for compute, one stream": replace(RECORDED, one_stream=True),
    "waits for compute, slow link": replace(RECORDED, one_stream=True, gather_ns=600 * US),
}
WAITING_HOST = {
    "drained": DRAINED,
    "drained, wrapper": replace(DRAINED, names_units=False),
    "drained, slow link": replace(DRAINED, gather_ns=600 * US),
    "drained, many short units": replace(DRAINED, layers=8, compute_ns=100 * US),
    "drained, many units, one stream": replace(DRAINED, layers=12, gather_ns=700 * US, one_stream=True),
    "drained, copies in": replace(DRAINED, copy_in_ns=50 * US),
    "drained, beside another exchange": replace(DRAINED, all_reduce_ns=200 * US),
    "drained, waits for compute": replace(DRAINED, waits_for_compute=True),
    "drained, a rank late": replace(DRAINED, waits_for_ns=150 * US),
}


def with_prefetch(job: FsdpJob, units: int) -> FsdpJob:
    return replace(
        job,
        forward_ahead=max(units, job.forward_ahead),
        backward_ahead=max(units, job.backward_ahead),
        first_ahead=tuple(range(units)),
    )


def length(played: Played) -> int:
    """When the host has waited for the last work: it begins at the same time in all of them."""
    return played.program.now


@cache
def recorded(job: FsdpJob) -> Trace:
    return with_its_files(job.open)


def error(job: FsdpJob, units: int) -> float:
    """By which share of the time that the job takes with that prefetch the replay is off."""
    made = with_prefetch(job, units).play()
    whole = what_if(recorded(job), edits.prefetch(units)).iloc[0]
    saved = int(whole["before_ns"] - whole["after_ns"])
    return (length(job.play()) - saved) / length(made) - 1


@pytest.mark.parametrize("units", [1, 2, 3])
@pytest.mark.parametrize("name", FREE_HOST)
def test_every_kernel_starts_when_it_does_with_that_prefetch(name: str, units: int):
    """By name, each n-th kernel of the replay against the n-th that was played, to the host's call or two."""
    job = FREE_HOST[name]
    made = with_prefetch(job, units).play()
    frame = replayed_events(recorded(job), edits.prefetch(units))
    played: dict[str, list[int]] = {}
    for event in made.events:
        if event["cat"] == "kernel":
            played.setdefault(event["name"], []).append(starts_ns(event))
    first = min(min(starts) for starts in played.values())
    begin = int(frame.loc[frame["name"].isin(played), "replayed_start_ns"].min())
    for kernel, starts in played.items():
        found = sorted((frame.loc[frame["name"] == kernel, "replayed_start_ns"] - begin).tolist())
        assert len(found) == len(starts)
        worst = max(abs(a - b + first) for a, b in zip(found, sorted(starts), strict=True))
        assert worst <= 4 * units * US, kernel
    assert abs(error(job, units)) < 2e-4


def starts_ns(event: dict[str, object]) -> int:
    return round(float(str(event["ts"])) * 1_000)


@pytest.mark.parametrize("units", [1, 2, 3])
@pytest.mark.parametrize("name", WAITING_HOST)
def test_where_the_host_waits_it_takes_as_long(name: str, units: int):
    """What the host spends on calls is not moved with them: a few us in each turn."""
    assert abs(error(WAITING_HOST[name], units)) < 0.005


@pytest.mark.parametrize("name", [*FREE_HOST, *WAITING_HOST])
def test_each_step_takes_as_long(name: str, tmp_path: Path):
    job = (FREE_HOST | WAITING_HOST)[name]
    foreseen = what_if(recorded(job), edits.prefetch(2)).set_index("iteration")
    made = with_prefetch(job, 2).open(tmp_path)
    played = what_if(made, []).set_index("iteration")
    on_device = made.rank(0).iterations.set_index("iteration")
    steps = [step for step in foreseen.index if pd.notna(step)]
    assert len(steps) == 4
    for step in steps:
        took = played.loc[step, "before_ns"]
        if foreseen.loc[step, "clock"] != played.loc[step, "clock"]:  # each job picks its own; compare on one
            assert foreseen.loc[step, "clock"] == "device"
            took = on_device.loc[step, "device_end_ns"] - on_device.loc[step, "device_start_ns"]
        assert foreseen.loc[step, "after_ns"] == pytest.approx(took, rel=0.005)


JOBS = FREE_HOST | WAITING_HOST


@pytest.mark.parametrize(
    ("name", "share"), [*product(JOBS, [(0.0, 1.0)]), *crossed(JOBS, [(0.37, 1.0), (0.0, 0.6)])]
)
def test_causes_come_first_in_the_order_of_the_replay(name: str, share: tuple[float, float], tmp_path: Path):
    """Also in recordings that begin or end within a step; and without the new order it is the recording."""
    trace = recorded(JOBS[name])
    if share != (0.0, 1.0):
        events = JOBS[name].play().events
        times = sorted(starts_ns(event) for event in events)
        low, high = (times[int(part * (len(times) - 1))] for part in share)
        trace = job_of(tmp_path, [event for event in events if low <= starts_ns(event) <= high])
    graph = graph_of(trace.rank(0))
    assert graph is not None
    plan = Plan(graph, trace.rank(0))
    edits.prefetch(2).apply(plan)
    assert plan.order is not None and sorted(plan.order.tolist()) == list(range(len(graph.time)))
    place = np.argsort(plan.order)
    kept = plan.weight != GONE
    assert (place[plan.source] < place[plan.graph.target])[kept].all()
    as_recorded = Plan(plan.graph, trace.rank(0)).replay(PINNED)
    assert as_recorded.tolist() == graph.time.tolist()


def test_what_fills_a_buffer_comes_before_its_all_gather():
    job = replace(DRAINED, copy_in_ns=50 * US)
    frame = replayed_events(recorded(job), edits.prefetch(2))
    copies, gathers = (
        frame[frame["name"] == name].sort_values("start_ns").reset_index(drop=True)
        for name in (COPY_IN, GATHER)
    )
    assert len(copies) == len(gathers) == 4 * 9
    assert (copies["replayed_end_ns"] <= gathers["replayed_start_ns"]).all()
    assert (copies["replayed_start_ns"] < copies["start_ns"]).sum() > 4 * 4


def test_what_nothing_can_hide_saves_nothing():
    frame = what_if(recorded(FREE_HOST["slow link"]), edits.prefetch(2))
    assert (frame["after_ns"] == frame["before_ns"]).all()


def test_only_one_of_the_passes():
    trace = recorded(DRAINED)
    parts = []
    for phase in ("forward", "backward"):
        ahead = {f"{phase}_ahead": 1} | ({"first_ahead": (0,)} if phase == "forward" else {})
        made = replace(DRAINED, **ahead).play()
        whole = what_if(trace, edits.prefetch(1, phase=phase)).iloc[0]
        parts.append(int(whole["before_ns"] - whole["after_ns"]))
        assert length(DRAINED.play()) - parts[-1] == pytest.approx(length(made), rel=0.005)
    both = what_if(trace, edits.prefetch(1)).iloc[0]
    assert sum(parts) == pytest.approx(both["before_ns"] - both["after_ns"], rel=0.005)


def test_with_other_changes_in_any_order():
    trace = recorded(DRAINED)
    changes = [edits.prefetch(2), edits.kernels(2.0), edits.syncs(call="*"), edits.communication(0.5)]
    there, back = what_if(trace, changes), what_if(trace, changes[::-1])
    assert there.equals(back)
    assert (there["after_ns"] < what_if(trace, changes[1:])["after_ns"]).all()


def test_the_path_is_that_of_the_replay():
    """It leads from the first point to the last without a hole, also through waits for what moved."""
    trace = recorded(replace(DRAINED, gather_ns=600 * US))
    path, whole = replayed_path(trace, edits.prefetch(2)), what_if(trace, edits.prefetch(2)).iloc[0]
    assert path["dur_ns"].sum() == whole["after_ns"]
    assert (path["start_ns"].to_numpy()[1:] == path["end_ns"].to_numpy()[:-1]).all()


def test_it_may_not_be_had():
    """The memory may not be there: the range reaches to what was recorded."""
    frame = what_if(recorded(DRAINED), edits.prefetch(1))
    assert (frame["high_ns"] == frame["before_ns"]).all() and (frame["low_ns"] < frame["high_ns"]).all()


def refused(trace: Trace, units: int = 1) -> str:
    with pytest.raises(MissingDataError) as refusal:
        what_if(trace, edits.prefetch(units))
    return str(refusal.value)


def nameless(played: Played) -> Played:
    for event in played.events:
        event["name"] = event["name"].partition(" (")[0] if "FSDP::" in event["name"] else event["name"]
    return played


@pytest.mark.parametrize(
    ("play", "why"),
    [
        (lambda: replace(DRAINED, ranges=False).play(), "no FSDP ranges"),
        (lambda: nameless(DRAINED.play()), "does not name the units"),
        (lambda: with_prefetch(DRAINED, 1).play(), "issued 1 unit ahead already"),
        (
            lambda: replace(RECORDED, copy_in_ns=50 * US, copy_stream=COMPUTE_STREAM).play(),
            "buffer is filled on a stream that does not compute",
        ),
    ],
)
def test_refused(play: Callable[[], Played], why: str, tmp_path: Path):
    assert why in refused(play().open(tmp_path))


def test_further_ahead_than_it_was():
    """Near miss of the refusal: one unit ahead already, and two are asked for."""
    job = with_prefetch(DRAINED, 1)
    assert abs(error(job, 2)) < 0.005


def test_moved_once():
    trace = recorded(DRAINED)
    for other in (edits.own_stream("nccl*"), edits.prefetch(2)):
        for both in ([edits.prefetch(), other], [other, edits.prefetch()]):
            with pytest.raises(ValueError, match="leave one of these edits out"):
                what_if(trace, both)


def test_arguments():
    with pytest.raises(ValueError, match="units must be 1 or more"):
        edits.prefetch(0)
    with pytest.raises(ValueError, match="phase must be"):
        edits.prefetch(1, phase="both")
