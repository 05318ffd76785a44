"""HTA's methods about user annotations: hand-made jobs, what HTA's own tests assert, and its numbers."""

import functools
import json

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from hta_widgets.errors import MissingDataWarning
from hta_widgets.hta.common.trace import Trace as HtaTrace
from hta_widgets.hta.methods.annotations import (
    gpu_kernels_with_user_annotations,
    gpu_user_annotation_breakdown,
)
from hta_widgets.hta.methods.drop_last_step import without_last_step
from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import event, job, kernel, write
from tests.support import SHARED_TRACES, shared_trace

COLUMNS = ["name", "sum (us)", "max (us)", "min (us)", "stddev", "mean (us)", "rank"]
NS_TRACE = "hta/ns_resolution_trace"


def region(name: str, start: int, dur: int, external: int, stream: int = 7):
    return kernel(name, start, dur, stream, "gpu_user_annotation", **{"External id": external})


def host_region(name: str, start: int, dur: int, external: int = 0):
    return event("user_annotation", name, start, dur, **{"External id": external})


def regions(count: int):
    """r00 runs 1000 ns, r01 twice 2000 ns, r02 three times 3000 ns ..."""
    return [
        host_region(f"r{i:02}", 100_000 * i + 10_000 * j, 1000 * (i + 1))
        for i in range(count)
        for j in range(i + 1)
    ]


@functools.cache
def loaded(name: str, include_last: bool = False) -> HtaTrace:
    folder = shared_trace(name)
    trace = HtaTrace({0: str(next(folder.glob("*.json*")))}, "")
    trace.load_traces(include_last)
    return trace


@functools.cache
def opened(name: str) -> Trace:
    return without_last_step(Trace.open(shared_trace(name)))


def test_statistics_of_single_regions_even_of_others(tmp_path):
    trace = job(tmp_path, regions(6))
    frame = gpu_user_annotation_breakdown(trace, False, False)
    assert list(frame.columns) == COLUMNS
    assert frame["name"].tolist() == [f"r{i:02}" for i in range(6)]
    assert frame["sum (us)"].tolist() == [1.0, 4.0, 9.0, 16.0, 25.0, 36.0]
    few = gpu_user_annotation_breakdown(trace, False, False, num_kernels=3)
    assert few["name"].tolist() == ["others", "r03", "r04", "r05"]
    others = few.iloc[0]
    runs = [1.0, 2.0, 2.0, 3.0, 3.0, 3.0]
    assert others[["sum (us)", "max (us)", "min (us)"]].tolist() == [14.0, 3.0, 1.0]
    assert others["mean (us)"] == pytest.approx(np.mean(runs))
    assert others["stddev"] == pytest.approx(np.std(runs, ddof=1))


@pytest.mark.parametrize(
    ("patterns", "kept"),
    [
        (["r00"], {"r00"}),
        (["r0[01]"], {"r00", "r01"}),
        (["^r"], {"r00", "r01", "r02"}),
        (["00$", "01"], {"r00", "r01"}),
        (["r0("], set()),
        ([], set()),
    ],
)
def test_names_on_the_allowlist_stay(tmp_path, patterns, kept):
    frame = gpu_user_annotation_breakdown(job(tmp_path, regions(6)), False, False, 0.8, 3, patterns)
    assert set(frame["name"]) - {"others"} == kept | {"r03", "r04", "r05"}


def test_allowlist_texts_with_brackets_are_meant_literally(tmp_path):
    names = ["## a (b) ##", "## c [d", *"xyz"]
    events = [host_region(name, 10_000 * i, 100 * (i + 1)) for i, name in enumerate(names)]
    frame = gpu_user_annotation_breakdown(job(tmp_path, events), False, False, 0.8, 1, ["a (b)", "[d"])
    assert {"## a (b) ##", "## c [d"} <= set(frame["name"])


def test_figures_for_any_ranks(tmp_path, monkeypatch):
    shown: list[go.Figure] = []
    monkeypatch.setattr(go.Figure, "show", lambda self, renderer=None: shown.append(self))
    job(tmp_path, [host_region("r", 0, 100)])
    trace = Trace.open(dict.fromkeys((7, 9, 200), tmp_path / "0.json"), cache=False)
    gpu_user_annotation_breakdown(trace, False)
    titles = [figure.layout.title.text for figure in shown]
    assert titles == ["User annotation distribution on each rank", "User annotation = r"]
    assert list(shown[1].data[0].x) == [7, 9, 200]


def test_missing_annotations_are_none_and_a_warning_says_why(tmp_path):
    trace = HtaTrace({0: str(write(tmp_path / "0.json", [kernel("k", 0, 10), host_region("r", 0, 10)]))}, "")
    trace.load_traces()
    with pytest.warns(MissingDataWarning, match="user annotations of the device"):
        assert gpu_user_annotation_breakdown(trace.job, True, False) is None
    with pytest.warns(MissingDataWarning, match="user annotations of the device"):
        assert gpu_kernels_with_user_annotations(trace, 0) is None
    (tmp_path / "b").mkdir()
    with pytest.warns(MissingDataWarning, match="record_function"):
        assert gpu_user_annotation_breakdown(job(tmp_path / "b", [kernel("k", 0, 10)]), False, False) is None


def test_kernels_with_annotations_as_frame(tmp_path):
    events = [
        region("outer", 1000, 1000, 1),
        region("void inner<int>(x)", 1200, 300, 2),
        kernel("void k<1>(int)", 1250, 10, correlation=1),
        # The same times on another stream: HTA labels it too.
        kernel("j", 1250, 10, stream=9, correlation=2),
        kernel("Stream Sync", 1250, 10, cat="cuda_sync", correlation=3),
        kernel("k2", 1900, 300, correlation=4),
    ]
    trace = HtaTrace({0: str(write(tmp_path / "0.json", events))}, "")
    trace.load_traces()
    before = trace.get_trace(0).copy()
    frame = gpu_kernels_with_user_annotations(trace, 0)
    pd.testing.assert_frame_equal(trace.get_trace(0), before)
    assert frame["index"].tolist() == [2, 3, 5]
    assert frame["s_name"].tolist() == ["k", "j", "k2"]
    assert frame["s_user_annotation"].tolist() == ["inner", "", "outer"]
    texts = trace.symbol_table.get_sym_table()
    assert [texts[symbol] if symbol >= 0 else None for symbol in frame["user_annotation"]] == [
        "void inner<int>(x)",
        None,
        "outer",
    ]
    assert list(frame.columns) == [*before.columns, "user_annotation", "s_name", "s_cat", "s_user_annotation"]
    full = gpu_kernels_with_user_annotations(trace, 0, shorten_names=False)
    assert full["s_user_annotation"].tolist() == ["void inner<int>(x)", "", "outer"]
    plain = gpu_kernels_with_user_annotations(trace, 0, expand_names=False)
    assert list(plain.columns) == [*before.columns, "user_annotation"]
    with pytest.raises(ValueError, match="no rank 4"):
        gpu_kernels_with_user_annotations(trace, 4)


def test_annotations_of_the_host_are_none_of_a_device(tmp_path):
    """Rank 1 has none on its device: what the host announced when it launched the kernel does not count."""
    work = [
        host_region("step", 0, 1000),
        event("cuda_runtime", "cudaLaunchKernel", 10, 5, correlation=1),
        kernel("k", 1250, 10, correlation=1),
    ]
    files = [
        str(write(tmp_path / f"{rank}.json", [*work, *regions], rank))
        for rank, regions in enumerate(([region("step", 1200, 100, 1)], []))
    ]
    trace = HtaTrace(dict(enumerate(files)), "")
    trace.load_traces()
    texts = [gpu_kernels_with_user_annotations(trace, rank)["s_user_annotation"].tolist() for rank in (0, 1)]
    assert texts == [["step"], [""]]


def test_what_htas_own_test_asserts_of_kernels_with_annotations():
    frame = gpu_kernels_with_user_annotations(loaded(NS_TRACE), 0)
    assert len(frame) == 4876
    assert frame["user_annotation"].nunique() == 4
    for correlation, annotation, name in (
        (135139, "DistributedDataParallel.forward", "Memcpy DtoD (Device -> Device)"),
        (164926, "Optimizer.step#SGD.step", "at::native::::multi_tensor_apply_kernel"),
    ):
        row = frame[frame["correlation"] == correlation].iloc[0]
        assert (row["s_user_annotation"], row["s_name"]) == (annotation, name)


def test_a_device_region_that_runs_after_the_last_step_began_still_owns_its_kernels():
    """HTA keeps kernels that were launched before the last step, but drops their region if it starts later.

    So its own test finds 27 kernels of Optimizer.step, of three steps; there are four steps, of nine each.
    """
    counts = gpu_kernels_with_user_annotations(loaded(NS_TRACE), 0)["s_user_annotation"].value_counts()
    assert counts.to_dict() == {
        "": 2976,
        "DistributedDataParallel.forward": 1840,
        "Optimizer.step#SGD.step": 36,
        "## backward ##": 24,
    }


def test_what_htas_own_test_asserts_of_the_breakdown():
    trace = opened(NS_TRACE)
    assert len(gpu_user_annotation_breakdown(trace, True, False)) == 3
    assert len(gpu_user_annotation_breakdown(trace, False, False)) == 12
    few = gpu_user_annotation_breakdown(trace, False, False, num_kernels=5, allowlist_patterns=["Optimizer"])
    assert len(few) == 8
    assert few["name"].str.contains("Optimizer").sum() == 2


@pytest.mark.parametrize(
    "name", ["hta/nccl_parser_config", "hta/amd_trace", "tracelens/torch_compile_triton/trace.json.gz"]
)
def test_device_regions_are_htas(name):
    """HTA rounds starts up and ends down, so that a region is less than 2 us too short."""
    path = SHARED_TRACES.parent / "golden" / "hta.json"
    if not path.exists():
        pytest.skip("HTA's recorded results not found")
    theirs = pd.DataFrame(json.loads(path.read_text())[name]["gpu_user_annotation"]).sort_values("name")
    ours = gpu_user_annotation_breakdown(opened(name), True, False).sort_values("name")
    assert ours["name"].tolist() == theirs["name"].tolist()
    for column in ("max (us)", "min (us)", "mean (us)"):
        difference = ours[column].to_numpy() - theirs[column].to_numpy()
        assert (difference >= 0).all()
        assert (difference < 2).all()


def test_host_regions_are_as_many_as_htas():
    for name, rows in (
        ("hta/trace_filter", 61),
        ("hta/trace_diff/control", 40),
        ("hta/mtia_inference_trace", 22),
    ):
        assert len(gpu_user_annotation_breakdown(opened(name), False, False)) == rows


def test_annotations_of_the_2021_schema_are_found():
    """There annotations are operators; HTA answers None."""
    trace = without_last_step(
        Trace.open(shared_trace("kineto/resnet50_num_workers_0/worker0.pt.trace.json.gz"))
    )
    names = set(gpu_user_annotation_breakdown(trace, False, False)["name"])
    assert any(name.startswith("ProfilerStep#") for name in names)
    assert any(name.startswith("Optimizer.") for name in names)


def test_kernels_that_only_touch_a_region_are_not_in_it():
    """In HTA's float times they overlap by a rounding error: it labels seven kernels wrongly."""
    trace = loaded_file("tracelens/mi300/resnet_act_checkpoint.json.gz")
    frame = gpu_kernels_with_user_annotations(trace, 0).set_index("index")
    labels = frame.loc[[50537, 50545, 52779], "s_user_annotation"].tolist()
    assert labels == ["DistributedDataParallel.forward", "", ""]


def loaded_file(name: str) -> HtaTrace:
    trace = HtaTrace({0: str(shared_trace(name))}, "")
    trace.load_traces(True)
    return trace
