"""`get_frequent_cuda_kernel_sequences`: HTA's table and the overlaid file."""

import gzip
import json

import pandas as pd
import pytest

from hta_widgets.errors import MissingDataWarning
from hta_widgets.hta.methods import conventions, sequences
from hta_widgets.hta.methods.drop_last_step import without_last_step
from hta_widgets.hta.methods.sequences import frequent_cuda_kernel_sequences
from hta_widgets.trace.model import Trace
from tests.analysis.test_sequences import EVENTS, HTA_FIRST, call
from tests.support import shared_trace
from tests.trace.helpers import write

COLUMNS = ["pattern", "count", "GPU kernel duration (us)", "CPU op duration (us)"]
SPAN = {
    "ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler",
    "ts": 0, "dur": 200, "args": {"Op count": 1},
}  # fmt: skip
PRECISE = {"ph": "X", "cat": "cpu_op", "name": "late", "pid": 10, "tid": 1, "ts": 300, "dur": 1}


@pytest.fixture
def job(tmp_path):
    return Trace.open(write(tmp_path / "rank0.json", [*EVENTS, SPAN, PRECISE]))


def overlaid(tmp_path, name="overlaid_rank0.json"):
    return json.loads((tmp_path / name).read_text())["traceEvents"]


def test_the_table_has_htas_columns_and_units(job, tmp_path):
    table = frequent_cuda_kernel_sequences(job, "aten::linear", str(tmp_path), 1)
    assert list(table.columns) == COLUMNS
    assert table.to_numpy().tolist() == [["aten::linear|gemm|bias|add", 2, 16.0, 22.0]]


def test_the_overlay_marks_events_and_shortens_the_others(job, tmp_path):
    frequent_cuda_kernel_sequences(job, "aten::linear", str(tmp_path), 1)
    events = overlaid(tmp_path)
    marked = {i for i, event in enumerate(events) if "Patterns" in event.get("args", {})}
    # Two operators with two launches each, and the four kernels.
    assert marked == {0, 1, 2, 3, 4, 5, *range(14, 18)}
    assert events[0]["args"]["Patterns"] == {"aten::linear|gemm|bias|add": 2}
    assert events[14]["args"]["stream"] == 7
    assert events[14]["name"] == "gemm"
    legend = events[-2]["args"]
    assert events[-2]["name"] == "PyTorch Profiler (0)"
    assert all(event["args"] == {} for i, event in enumerate(events[:-2]) if i not in marked)
    assert legend[events[6]["name"]] == "model"
    assert len(events) == len(EVENTS) + 2


def test_without_the_profilers_own_event_the_names_are_appended(tmp_path):
    job = Trace.open(write(tmp_path / "rank0.json", EVENTS))
    frequent_cuda_kernel_sequences(job, "aten::linear", str(tmp_path), 1)
    events = overlaid(tmp_path)
    assert len(events) == len(EVENTS) + 1
    assert events[-1]["args"][events[6]["name"]] == "model"


def test_uncompressed_leaves_the_others_as_they_are(job, tmp_path):
    frequent_cuda_kernel_sequences(
        job, "aten::linear", str(tmp_path), 1, top_k=1, compress_other_kernels=False
    )
    events = overlaid(tmp_path)
    assert events[6] == EVENTS[6]
    assert events[-2] == SPAN
    assert "Patterns" in events[0]["args"]


def test_top_k_limits_the_overlay_not_the_table(job, tmp_path):
    table = frequent_cuda_kernel_sequences(
        job, "aten::", str(tmp_path), 1, top_k=1, compress_other_kernels=False
    )
    assert table["count"].tolist() == [2, 1]
    patterns = [
        event["args"]["Patterns"] for event in overlaid(tmp_path) if "Patterns" in event.get("args", {})
    ]
    assert {text for pattern in patterns for text in pattern} == {"aten::linear|gemm|bias|add"}


@pytest.mark.parametrize("top_k", [0, -1])
def test_none_is_marked_if_none_is_asked_for(job, tmp_path, top_k):
    assert len(frequent_cuda_kernel_sequences(job, "aten::", str(tmp_path), 1, top_k=top_k)) == 2
    assert not any("Patterns" in event.get("args", {}) for event in overlaid(tmp_path))


@pytest.mark.parametrize(
    ("operator", "folder", "length", "why"),
    [
        ("", "", 1, "operator_name is empty"),
        ("aten::linear", "missing", 1, "does not exist"),
        ("aten::linear", "", 3, "launches 3 kernels"),
        ("no such", "", 1, "no operator named"),
    ],
)
def test_nothing_found_is_an_empty_frame_and_a_reason(job, tmp_path, operator, folder, length, why):
    with pytest.warns(UserWarning, match=why):
        table = frequent_cuda_kernel_sequences(job, operator, str(tmp_path / folder), length)
    assert table.shape == (0, 0)
    assert not list(tmp_path.glob("overlaid*"))


def test_a_trace_without_kernels_is_an_empty_frame_and_the_remedy(tmp_path):
    job = Trace.open(write(tmp_path / "rank0.json", call("aten::linear", 0, 10, 1)))
    with pytest.warns(MissingDataWarning, match="ProfilerActivity"):
        assert frequent_cuda_kernel_sequences(job, "aten::linear", str(tmp_path)).empty


def test_an_unknown_rank_is_an_error(job, tmp_path):
    with pytest.raises(ValueError, match="no rank 7"):
        frequent_cuda_kernel_sequences(job, "aten::linear", str(tmp_path), rank=7)


def test_the_picture_is_htas(job, tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(sequences, "show", lambda figures: shown.extend(figures))
    assert conventions.show is not sequences.show
    frequent_cuda_kernel_sequences(job, "aten::", str(tmp_path), 1, visualize=True)
    (figure,) = shown
    assert figure.layout.title.text == "Top 2 frequent patterns for rank 0"
    assert figure.layout.yaxis.title.text == "Pattern Count"
    assert figure.layout.xaxis.type == "category"
    assert figure.data[0].customdata[0] == "aten::linear<br>gemm<br>bias<br>add"


def test_htas_numbers_on_a_recorded_trace(tmp_path):
    path = next(shared_trace("hta/trace_diff/control").parent.glob("control*"))
    job = without_last_step(Trace.open(path))
    table = frequent_cuda_kernel_sequences(job, "aten::linear", str(tmp_path), 1, rank=3)
    assert len(table) == 17
    assert table[COLUMNS[1:]].head(3).to_numpy().tolist() == [list(map(float, row)) for row in HTA_FIRST]
    (file,) = tmp_path.glob("overlaid_*")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    # HTA 0.6.1 marks as many, and turns as many names into numbers.
    assert len(events) == 109_123
    assert sum("Patterns" in (event.get("args") or {}) for event in events) == 3_694
    assert sum(event["name"].isdigit() for event in events) == 71_242


@pytest.mark.parametrize("name", ["hta/ns_resolution_trace", "hta/nccl_parser_config"])
def test_traces_of_ns_resolution_work(name, tmp_path):
    """HTA raises on these: rounding makes calls of negative length (Q-4)."""
    job = without_last_step(Trace.open(shared_trace(name)))
    table = frequent_cuda_kernel_sequences(job, "aten::", str(tmp_path), 1, compress_other_kernels=False)
    assert table["count"].is_monotonic_decreasing
    assert (table["GPU kernel duration (us)"] > 0).all()


def test_kernels_of_stream_0_are_linked(tmp_path):
    """HTA links no kernel of AMD's default stream to its launch (Q-6)."""
    job = without_last_step(Trace.open(shared_trace("hta/amd_trace")))
    table = frequent_cuda_kernel_sequences(job, "Optimizer.step", str(tmp_path), 1)
    assert isinstance(table, pd.DataFrame)
    assert len(table)
