"""`get_gpu_kernel_breakdown` and HTA's names: hand-made jobs, and HTA's own numbers on recorded traces."""

import functools
import statistics
import warnings

import pandas as pd
import plotly.graph_objects as go
import pytest

from hta_widgets.analysis.kernels.breakdown import kernel_breakdown
from hta_widgets.errors import MissingDataWarning
from hta_widgets.hta.methods.drop_last_step import without_last_step
from hta_widgets.hta.methods.kernels import gpu_kernel_breakdown
from hta_widgets.hta.methods.names import kernel_type, shorten_name, shorten_names
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.analysis.kineto_file import event, job, kernel
from tests.hta.recorded import golden
from tests.support import shared_trace

KERNEL_COLUMNS = ["name", "sum (us)", "max (us)", "min (us)", "stddev", "mean (us)", "kernel_type", "rank"]
NCCL = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"


@pytest.fixture
def shown(monkeypatch) -> list[go.Figure]:
    figures: list[go.Figure] = []
    monkeypatch.setattr(go.Figure, "show", lambda self, renderer=None: figures.append(self))
    return figures


# The table of HTA's own results.
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void at::native::kernel<4, F<int>>(int, float*)", "at::native::kernel"),
        ("void at::native::(anonymous namespace)::foo<float>(float)", "at::native::::foo"),
        ("foo(int) const", "const"),
        ("a -> b<c>", "b"),
        ("x(", "x("),
        ("a)b(c", "b(c"),
        ("a > b", "a > b"),
        ("<>", ""),
        ("f<a, g<b>>::h(int (*)(int))", "f::h"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
        ("Memset (Device)", "Memset (Device)"),
        ("dma_copy(x)", "dma_copy(x)"),
        ("aten::add", "aten::add"),
        ("", ""),
    ],
)
def test_short_names(name, expected):
    assert shorten_name(name) == expected
    assert shorten_names([name, name]) == [expected, expected]


def test_kernel_types_of_classes():
    words = {event_class: kernel_type(event_class) for event_class in EventClass}
    assert words[EventClass.COMPUTE] == "COMPUTATION"
    assert words[EventClass.COMMUNICATION] == "COMMUNICATION"
    assert words[EventClass.MEMORY_COPY] == words[EventClass.MEMORY_SET] == "MEMORY"
    assert {word for item, word in words.items() if item > EventClass.MEMORY_SET} == {"OTHER"}


@pytest.fixture
def small(tmp_path) -> Trace:
    """On rank 0 twelve kernels k00 ... k11 with i + 1 launches of 1000 ns and one of 500 ns."""
    events, now = [], 0
    for i in range(12):
        for dur in (*[1000] * (i + 1), 500):
            events.append(kernel(f"k{i:02}", now, dur))
            now += 1000
    return job(
        tmp_path, [*events, kernel(NCCL, now - 750, 1000, 8), kernel("Memcpy", 0, 250, 9, "gpu_memcpy")]
    )


def test_statistics_are_of_single_launches_even_of_others(small):
    types, frame = gpu_kernel_breakdown(small, visualize=False)
    assert list(frame.columns) == KERNEL_COLUMNS
    assert list(types.columns) == ["kernel_type", "sum", "percentage"]
    # Of 12 names the quantile hides 3 (positions 9, 10, 11), the limit of ten names 2 of them.
    names = frame[frame["kernel_type"] == "COMPUTATION"]["name"].tolist()
    assert names == [*(f"k{i:02}" for i in range(3, 12)), "others"]
    last = frame[frame["name"] == "k11"].iloc[0]
    launches = [1.0] * 12 + [0.5]
    assert last[["sum (us)", "max (us)", "min (us)", "mean (us)"]].tolist() == [12.5, 1.0, 0.5, 12.5 / 13]
    assert last["stddev"] == pytest.approx(statistics.stdev(launches))
    others = frame[frame["name"] == "others"].iloc[0]
    launches = [1.0] * 6 + [0.5] * 3
    assert others[["sum (us)", "max (us)", "min (us)", "mean (us)"]].tolist() == [7.5, 1.0, 0.5, 7.5 / 9]
    assert others["stddev"] == pytest.approx(statistics.stdev(launches))
    assert frame[frame["name"] == "Memcpy"]["stddev"].tolist() == [0.0]


def test_up_to_num_kernels_names_all_are_shown(small):
    for number, rows in ((12, 12), (11, 10), (3, 4)):
        _, frame = gpu_kernel_breakdown(small, False, 0.8, number)
        assert (frame["kernel_type"] == "COMPUTATION").sum() == rows


def test_memory_kernels_can_be_left_out(small):
    types, frame = gpu_kernel_breakdown(small, False, include_memory_kernels=False)
    assert types["kernel_type"].tolist() == [
        "COMPUTATION",
        "COMMUNICATION",
        "COMPUTATION overlapping COMMUNICATION",
    ]
    # 78 launches of 1 us and 12 of 500 ns; the collective of 1 us begins 250 ns before the last of them ends.
    assert types["sum"].tolist() == [78 + 6 - 0.25, 0.75, 0.25]
    assert "MEMORY" not in set(frame["kernel_type"])
    with_memory, _ = gpu_kernel_breakdown(small, False)
    assert with_memory.set_index("kernel_type")["sum"].to_dict()["COMPUTATION overlapping MEMORY"] == 0.25


def test_a_copy_and_a_fill_of_one_name_are_one_row(tmp_path):
    events = [kernel("M", 0, 1000, cat="gpu_memcpy"), kernel("M", 5000, 3000, cat="gpu_memset")]
    _, frame = gpu_kernel_breakdown(job(tmp_path, events), False)
    row = ["M", 4.0, 3.0, 1.0, pytest.approx(2**0.5), 2.0, "MEMORY", 0]
    assert frame.to_numpy().tolist() == [row]


def test_figures_for_ranks_that_are_not_0_and_1(tmp_path, shown):
    job(tmp_path, [kernel("<b>evil</b>", 0, 1000), kernel("Memcpy", 0, 250, 9, "gpu_memcpy")])
    trace = Trace.open(dict.fromkeys((3, 17, 64), tmp_path / "0.json"), cache=False)
    gpu_kernel_breakdown(trace)
    titles = [figure.layout.title.text for figure in shown]
    assert titles == [
        "Kernel Type Percentage Across All Ranks",
        'Kernel type "COMPUTATION" - kernel distribution on each rank',
        'Kernel type "COMPUTATION" - &lt;b&gt;evil&lt;/b&gt;',
        'Kernel type "COMMUNICATION" - kernel distribution on each rank',
        'Kernel type "MEMORY" - kernel distribution on each rank',
        'Kernel type "MEMORY" - Memcpy',
    ]
    assert [pie.title.text for pie in shown[1].data] == ["Rank 3", "Rank 17", "Rank 64"]
    bar = shown[2].data[0]
    assert list(bar.x) == [3, 17, 64]
    assert list(bar.y) == [1.0, 1.0, 1.0]
    assert shown[2].layout.xaxis.dtick == 1


def test_without_device_events_frames_are_empty_and_a_warning_says_why(tmp_path):
    trace = job(tmp_path, [event("cpu_op", "aten::add", 0, 10)])
    with pytest.warns(MissingDataWarning, match="ProfilerActivity"):
        types, frame = gpu_kernel_breakdown(trace)
    assert types.empty
    assert frame.empty
    assert list(frame.columns) == KERNEL_COLUMNS
    assert list(types.columns) == ["kernel_type", "sum", "percentage"]


# HTA's numbers. Left out are traces of which HTA keeps other events (see docs/differences.md).
WHOLE_US = [
    "hta/trace_filter",
    "hta/trace_diff/control",
    "hta/critical_path/alexnet",
    "hta/critical_path/simple_add",
    "hta/critical_path/cuda_event_sync",
]
ROUNDED = [
    "hta/amd_trace",
    "hta/nccl_parser_config",
    "hta/ns_resolution_trace",
    "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz",
    "tracelens/mi210/gpu_only_trace",
]


@functools.cache
def opened(name: str) -> Trace:
    return without_last_step(Trace.open(shared_trace(name)))


def launches(trace: Trace) -> pd.Series:
    """Launches of each (name, rank)."""
    counts = {}
    for rank in trace.ranks:
        rank_trace = trace.rank(rank)
        work = rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC)
        for code in rank_trace.name[work].tolist():
            counts[rank_trace.names[code], rank] = counts.get((rank_trace.names[code], rank), 0) + 1
    return pd.Series(counts)


@pytest.mark.parametrize("name", WHOLE_US)
def test_types_are_htas(name):
    """All times of these traces are whole us: HTA rounds nothing, and must agree."""
    types, _ = gpu_kernel_breakdown(opened(name), visualize=False)
    theirs = pd.DataFrame(golden()[name]["kernel_type"])[["kernel_type", "sum", "percentage"]]
    theirs = theirs[theirs["sum"] > 0].reset_index(drop=True)
    pd.testing.assert_frame_equal(types, theirs, check_dtype=False)


@pytest.mark.parametrize("name", ROUNDED)
def test_types_are_htas_within_its_rounding(name):
    """A union of n intervals loses up to 2 us for each to HTA's rounding, one more if it becomes negative."""
    types, _ = gpu_kernel_breakdown(opened(name), visualize=False)
    theirs = {row["kernel_type"]: row["sum"] for row in golden()[name]["kernel_type"]}
    bound = 3 * launches(opened(name)).sum()
    for kind, ours in types.set_index("kernel_type")["sum"].items():
        assert abs(ours - theirs.get(kind, 0)) <= bound


@pytest.mark.parametrize("name", WHOLE_US + ROUNDED)
def test_kernels_are_htas(name):
    trace, counts = opened(name), launches(opened(name))
    theirs = golden()[name]
    _, frame = gpu_kernel_breakdown(trace, visualize=False, num_kernels=10000)
    assert len(frame) == theirs["kernel_breakdown_num_kernels_10000"]["rows"]
    rounded = 0 if name in WHOLE_US else 3
    for row in theirs["kernel_breakdown_num_kernels_10000"]["top3_by_sum"]:
        same = (frame["name"] == row["name"]) & (frame["rank"] == row["rank"])
        ours = frame[same & (frame["kernel_type"] == row["kernel_type"])].iloc[0]
        for column in ("max (us)", "min (us)", "mean (us)", "stddev"):
            assert ours[column] == pytest.approx(row[column], abs=rounded or 1e-6)
        assert abs(ours["sum (us)"] - row["sum (us)"]) <= rounded * counts[row["name"], row["rank"]]


@pytest.mark.parametrize("name", WHOLE_US + ROUNDED)
def test_the_default_shows_as_many_names_as_hta_and_the_same_total_of_others(name):
    _, frame = gpu_kernel_breakdown(opened(name), visualize=False)
    theirs = golden()[name]["kernel_breakdown_default10"]
    assert len(frame) == theirs["rows"]
    if name in WHOLE_US:
        ours = frame[frame["name"] == "others"].set_index(["kernel_type", "rank"])["sum (us)"].to_dict()
        assert ours == {(row["kernel_type"], row["rank"]): row["sum (us)"] for row in theirs["others"]}


def test_others_of_a_recorded_trace_are_launches():
    """HTA prints statistics of totals: for this kernel sum = max = min = mean = 16738, stddev 0."""
    _, frame = gpu_kernel_breakdown(opened("hta/ns_resolution_trace"), visualize=False)
    row = frame[frame["name"] == "cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1"].iloc[0]
    assert row["mean (us)"] == pytest.approx(348.7, abs=2)
    assert row["min (us)"] == pytest.approx(247, abs=3)
    assert row["max (us)"] == pytest.approx(650, abs=3)
    assert row["stddev"] > 0


def test_methods_warn_of_nothing_where_nothing_is_missing(small):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gpu_kernel_breakdown(small, visualize=False)


def test_analysis_and_hta_method_agree(small):
    _, frame = gpu_kernel_breakdown(small, visualize=False, num_kernels=100)
    ours = kernel_breakdown(small, Scope()).set_index("name")
    for _, row in frame.iterrows():
        assert row["sum (us)"] * 1000 == ours.loc[row["name"], "sum_ns"]


def test_waits_of_mtia_are_no_kernels_and_its_engines_are():
    """HTA counts `event_wait` as computation, and leaves out what the processing elements execute."""
    _, frame = gpu_kernel_breakdown(opened("hta/mtia_inference_trace"), False)
    kinds = frame.set_index("name")["kernel_type"]
    assert "event_wait" not in kinds
    assert kinds["pe_exe"] == "COMPUTATION"


def test_triton_launches_are_no_kernels():
    """HTA counts host calls that carry a stream: 16 events where 12 kernels ran."""
    trace = opened("tracelens/torch_compile_triton/trace.json.gz")
    types, _ = gpu_kernel_breakdown(trace, False)
    rank = trace.rank(0)
    assert launches(trace).sum() == 12
    assert types["sum"].sum() * 1000 == pytest.approx(int(rank.dur[rank.is_device].sum()))
