"""Annotated regions and the device work that belongs to them."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hta_widgets import examples
from hta_widgets.analysis.annotations import regions as annotations
from hta_widgets.analysis.annotations.kernels import annotated_kernels, annotation_totals
from hta_widgets.analysis.annotations.kernels import sentence as totals_in_words
from hta_widgets.analysis.annotations.owners import _first_overlapping
from hta_widgets.analysis.annotations.regions import annotations_of, user_annotations
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.analysis.kineto_file import event, job, kernel, launch
from tests.support import shared_trace, tried


def region(name: str, start: int, dur: int, external: int, stream: int = 7):
    return kernel(name, start, dur, stream, "gpu_user_annotation", **{"External id": external})


def host_region(name: str, start: int, dur: int, external: int = 0, tid: int = 1):
    return event("user_annotation", name, start, dur, tid, **{"External id": external})


def labels(frame: pd.DataFrame) -> list[str | None]:
    return [None if pd.isna(name) else str(name) for name in frame["annotation"]]


def test_the_innermost_region_on_the_same_stream_owns_a_kernel(tmp_path):
    events = [
        region("outer", 1000, 1000, 1),
        region("inner", 1200, 300, 2),
        region("elsewhere", 1000, 1000, 3, stream=8),
        kernel("k0", 990, 5),  # before
        kernel("k1", 995, 10),  # reaches into outer
        kernel("k2", 1150, 60),  # reaches into inner
        kernel("k3", 1300, 10),
        kernel("k4", 1300, 10, stream=9),  # same time, no region on its stream
        kernel("k5", 1499, 100),  # begins inside inner
        kernel("k6", 1500, 100),  # begins when inner ends
        kernel("k7", 2000, 10),  # begins when outer ends
    ]
    frame = annotated_kernels(job(tmp_path, events)).sort_values("name")
    owners = [None, "outer", "inner", "inner", None, "inner", "outer", None]
    assert labels(frame) == owners
    assert set(frame["source"]) == {"gpu_user_annotation"}
    assert frame["annotation_id"].fillna(-1).tolist() == [
        {None: -1, "outer": 0, "inner": 1}[o] for o in owners
    ]


def test_a_kernel_without_length_belongs_where_it_starts(tmp_path):
    at = [999, 1000, 1050, 1099, 1100]
    events = [region("r", 1000, 100, 1), *(kernel(f"k{start}", start, 0) for start in at)]
    events.append(kernel("long", 5000, 1000))  # or nothing would have a length
    frame = annotated_kernels(job(tmp_path, events))
    assert labels(frame) == [None, "r", "r", "r", None, None]


def test_of_equal_regions_the_one_shorter_on_the_host_is_inner(tmp_path):
    on_host = [host_region("b", 100, 50, 1), host_region("a", 90, 100, 2)]
    on_device = [region("a", 1000, 100, 2), region("b", 1000, 100, 1)]
    for device in (on_device, on_device[::-1]):
        frame = annotated_kernels(job(tmp_path, [*on_host, *device, kernel("k", 1000, 100)]))
        assert labels(frame) == ["b"]


def test_without_device_regions_the_host_region_of_the_launch_counts(tmp_path):
    events = [
        host_region("outer", 100, 1000),
        host_region("inner", 200, 100),
        host_region("other thread", 100, 1000, tid=2),
        launch(150, 1),
        launch(200, 2),
        launch(300, 3),
        launch(1100, 4),
        launch(210, 5, tid=3),
        kernel("k1", 5000, 10, correlation=1),
        kernel("k2", 5010, 20, correlation=2),
        kernel("graph", 5020, 5, correlation=2),
        kernel("k3", 5030, 30, correlation=3),
        kernel("k4", 5040, 40, correlation=4),
        kernel("k5", 5050, 50, correlation=5),
        kernel("no launch", 250, 60),
    ]
    trace = job(tmp_path, events)
    frame = annotated_kernels(trace)
    assert frame["name"].tolist() == ["no launch", "k1", "k2", "graph", "k3", "k4", "k5"]
    assert labels(frame) == [None, "outer", "inner", "inner", "outer", None, None]
    assert set(frame["source"]) == {"user_annotation"}
    totals = annotation_totals(trace).set_index("annotation")
    assert totals.loc["", ["kernel_count", "launches", "sum_ns"]].tolist() == [3, 2, 150]
    assert totals.loc["inner", ["kernel_count", "launches", "sum_ns"]].tolist() == [2, 1, 25]
    assert totals.loc["outer", ["kernel_count", "launches", "sum_ns"]].tolist() == [2, 2, 40]
    assert totals["pct"].sum() == pytest.approx(100)
    assert totals_in_words(annotation_totals(trace)) == (
        "30.2 % of 215 ns of device work was launched in annotated regions, on their threads. "
        "The largest part, 40 ns, belongs to outer."
    )


def test_regions_of_both_sides(tmp_path):
    events = [
        host_region("r", 100, 10, 1),
        host_region("r", 200, 30, 2),
        host_region("s", 300, 5, 3),
        region("r", 1000, 400, 1),
        region("r", 1000, 200, 1, stream=8),
    ]
    trace = job(tmp_path, events)
    host = user_annotations(trace, side="cpu").set_index("name")
    assert host.loc["r", ["count", "sum_ns", "min_ns", "max_ns", "mean_ns"]].tolist() == [2, 40, 10, 30, 20]
    assert host.loc["r", "std_ns"] == pytest.approx(200**0.5)
    device = user_annotations(trace)
    assert device[["rank", "name", "count", "sum_ns"]].to_numpy().tolist() == [[0, "r", 2, 600]]
    assert annotations.sentence(device) == (
        "The longest region on the device is r: 2 runs, 600 ns in all, idle time included. "
        "A run takes 300 ns on average."
    )
    assert user_annotations(trace, Scope(streams=(8,)))["sum_ns"].tolist() == [200]
    with pytest.raises(ValueError, match="side"):
        user_annotations(trace, side="tpu")


def test_a_device_region_belongs_to_the_iteration_that_began_it(tmp_path):
    steps = [host_region(f"ProfilerStep#{n}", 1000 * n, 1000, 90 + n) for n in (1, 2)]
    events = [*steps, host_region("r", 1100, 10, 1), region("r", 2100, 50, 1), kernel("k", 2100, 50)]
    trace = job(tmp_path, events)
    assert user_annotations(trace, Scope(iterations=(1,)))["name"].tolist() == ["r"]
    assert user_annotations(trace, Scope(iterations=(2,))).empty


def test_missing_annotations_name_the_remedy(tmp_path):
    bare = job(tmp_path, [kernel("k", 100, 10)])
    for function in (annotated_kernels, annotation_totals, user_annotations):
        with pytest.raises(MissingDataError, match="record_function"):
            function(bare)
    (tmp_path / "host").mkdir()
    host_only = job(tmp_path / "host", [host_region("r", 100, 10)])
    assert len(user_annotations(host_only, side="cpu")) == 1
    with pytest.raises(MissingDataError, match="user annotations of the device"):
        user_annotations(host_only)
    with pytest.raises(MissingDataError, match="device events"):
        annotated_kernels(host_only)


def test_empty_selections_keep_columns_and_types(tmp_path):
    trace = job(tmp_path, [host_region("r", 50, 100, 1), region("r", 100, 10, 1), kernel("k", 100, 10)])
    empty = Scope(window_ns=(10**6, 10**7))
    for function in (annotated_kernels, annotation_totals, user_annotations):
        assert function(trace, empty).empty
        assert function(trace, empty).dtypes.astype(str).equals(function(trace).dtypes.astype(str))
    assert annotated_kernels(trace, Scope(ranks=(7,))).columns.equals(annotated_kernels(trace).columns)
    assert "No device work" in totals_in_words(annotation_totals(trace, empty))
    assert "No annotated region" in annotations.sentence(user_annotations(trace, empty))


def test_ranks_may_differ_in_what_they_recorded(tmp_path):
    with_device = [host_region("r", 50, 100, 1), region("r", 100, 10, 1), kernel("k", 100, 10)]
    without = [host_region("s", 50, 100, 1), launch(60, 5), kernel("j", 100, 10, correlation=5)]
    frame = annotated_kernels(job(tmp_path, with_device, without))
    assert frame["rank"].tolist() == [0, 1]
    assert labels(frame) == ["r", "s"]
    assert frame["source"].tolist() == ["gpu_user_annotation", "user_annotation"]


def test_figures(tmp_path):
    evil = '<a href="javascript:x">k</a>'
    trace = job(tmp_path, [host_region(evil, 50, 100, 1), region(evil, 100, 10, 1), kernel("k", 100, 10)])
    for figure in (
        ANALYSES["user_annotations"].figure(user_annotations(trace)),
        ANALYSES["annotation_totals"].figure(annotation_totals(trace)),
    ):
        assert len(figure.data) == 1
        assert "<a href" not in str(figure.to_dict())


@pytest.mark.parametrize("name", ["hta/ns_resolution_trace", "hta/nccl_parser_config", "simulated"])
def test_device_regions_agree_with_the_launches(name):
    """The profiler makes a device region of what was launched inside the host's: both must tell the same.

    Only launches on the region's own thread are compared.
    """
    trace = examples.load("ddp_4ranks") if name == "simulated" else Trace.open(shared_trace(name))
    rank_trace = trace.rank(trace.ranks[0])
    if not len(annotations_of(rank_trace).device):
        pytest.skip("no annotations of the device")
    frame = annotated_kernels(trace, Scope(ranks=(trace.ranks[0],)))
    row = np.zeros(rank_trace.event_id.max() + 1, np.int64)
    row[rank_trace.event_id] = np.arange(rank_trace.n)
    call = rank_trace.launch[row[frame["event_id"]]]
    found = annotations_of(rank_trace)
    checked = 0
    for kernel_owner, launched in zip(frame["annotation_id"].fillna(-1), call.tolist(), strict=True):
        if kernel_owner < 0 or launched < 0:
            continue
        host = found.cause[row[int(kernel_owner)]]
        if host < 0 or rank_trace.tid[host] != rank_trace.tid[launched]:
            continue
        checked += 1
        assert rank_trace.start[host] <= rank_trace.start[launched] < rank_trace.end[host]
    assert checked


SPANS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12)), max_size=12)


@settings(deadline=None, max_examples=tried(200))
@given(SPANS, SPANS)
def test_claims_are_those_of_trying_every_pair(events, regions):
    place, start, dur = np.array(events, np.int64).reshape(-1, 3).T
    at, begin, length = np.array(regions, np.int64).reshape(-1, 3).T
    end, stop = np.maximum(start + dur, start + 1), begin + length
    expected = [
        next(
            (j for j in range(len(at)) if at[j] == place[i] and begin[j] < end[i] and start[i] < stop[j]), -1
        )
        for i in range(len(place))
    ]
    assert _first_overlapping(place, start, end, at, begin, stop).tolist() == expected


@pytest.mark.parametrize(
    ("sides", "field"),
    [
        (("gpu",), "user annotations of the device"),
        (("cpu",), "user annotations"),
        (("gpu", "cpu"), "user annotations"),
    ],
)
def test_what_is_missing_is_named(
    sides: tuple[annotations.Side, ...], field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = SimpleNamespace(side=lambda _: [])
    monkeypatch.setattr(annotations, "annotations_of", lambda _: none)
    trace = cast("Trace", SimpleNamespace(ranks_of=lambda _: [0], rank=lambda _: None))
    with pytest.raises(MissingDataError) as caught:
        annotations.require_annotations(trace, Scope(), sides)
    assert caught.value.field == field
