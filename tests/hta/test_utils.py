"""HTA's helpers: kernel types, intervals, trace files, and the check of a trace file."""

import gzip
import json
import os

import pandas as pd
import pytest

from hta_widgets.errors import TraceFormatError
from hta_widgets.hta.common.trace_file import (
    create_rank_to_trace_dict,
    get_trace_files,
    read_trace,
    update_trace_rank,
    write_trace,
)
from hta_widgets.hta.configs.default_event_args import event_args
from hta_widgets.hta.configs.default_values import ValueType
from hta_widgets.hta.utils import utils
from hta_widgets.hta.utils.checker import OperationOutcome, is_valid_directory
from hta_widgets.hta.utils.utils import (
    get_kernel_type,
    get_memory_kernel_type,
    get_mp_pool_size,
    get_value_from_dict,
    merge_kernel_intervals,
    normalize_gpu_stream_numbers,
    normalize_path,
)
from hta_widgets.hta.utils.validate_trace import get_expected_arguments, main, validate_trace_format
from tests.support import shared_trace
from tests.trace.helpers import slice_, write


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclKernel_AllReduce", "COMMUNICATION"),
        ("Memcpy HtoD (Pinned -> Device)", "MEMORY"),
        ("void gemm<int>()", "COMPUTATION"),
        ("Stream Sync", "OTHER"),
    ],
)
def test_kernel_types(name, kind):
    assert get_kernel_type(name) == kind


def test_memory_types():
    names = ["Memset (Device)", "Memcpy DtoH (Device -> Pageable)", "dma"]
    assert [get_memory_kernel_type(name) for name in names] == ["Memset", "Memcpy DtoH", "Memcpy Unknown"]


def test_merging_intervals():
    frame = pd.DataFrame({"ts": [10, 0, 3, 5, 20], "dur": [2, 5, 1, 5, 0]})
    merged = merge_kernel_intervals(frame)
    assert merged.to_numpy().tolist() == [[0, 12], [20, 20]]
    assert list(frame.columns) == ["ts", "dur"]
    assert merge_kernel_intervals(frame.head(0)).empty


def test_small_helpers(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert normalize_path("./a") == str(tmp_path / "a")
    assert normalize_path("~/a") == "/home/me/a"
    assert normalize_path("/a") == "/a"
    frame = pd.DataFrame({"stream": ["7", "0x0", None, 3]})
    normalize_gpu_stream_numbers(frame)
    assert frame["stream"].tolist() == [7, -1, -1, 3]
    assert get_value_from_dict({"a": {"b": 1}}, "a.b") == 1
    assert get_value_from_dict({"a": 2}, "a.b", 5) == 5


def test_folders(tmp_path):
    file = tmp_path / "file"
    file.touch()
    assert is_valid_directory(str(tmp_path), must_be_writable=True) == OperationOutcome(True, "")
    assert "non-empty" in is_valid_directory("").reason
    assert "does not exist" in is_valid_directory(str(tmp_path / "none")).reason
    assert "not a directory" in is_valid_directory(str(file)).reason


@pytest.mark.parametrize(
    ("allowed", "written", "reason"),
    [(os.R_OK, False, ""), (os.R_OK, True, "not writable"), (0, False, "not readable")],
)
def test_folders_that_others_own(tmp_path, monkeypatch, allowed, written, reason):
    monkeypatch.setattr(os, "access", lambda _, mode: mode == allowed)
    outcome = is_valid_directory(str(tmp_path), written)
    assert outcome.success == (reason == "") and outcome.reason.endswith(reason)


def test_sizes_of_pools(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(utils, "_free_memory", lambda: 1000)
    assert get_mp_pool_size(obj_size=200, num_objs=100) == 4
    assert get_mp_pool_size(1, 100) == 8
    assert get_mp_pool_size(1, 3) == 3
    assert get_mp_pool_size(5000, 3) == 1
    monkeypatch.setattr(utils, "_free_memory", lambda: None)
    assert get_mp_pool_size(5000, 100) == 8
    monkeypatch.undo()
    assert 1 <= get_mp_pool_size(1 << 20, 2) <= 2


def test_expected_arguments():
    frame = get_expected_arguments(event_args().ARGS_MINIMUM)
    assert frame.to_dict("list") == {
        "arg_keys": ["stream", "correlation"],
        "arg_value_types": [ValueType.Int, ValueType.Int],
        "arg_default_values": [-1, -1],
        "trace_df_column_name": ["stream", "correlation"],
    }


def test_files_and_ranks(tmp_path):
    path = write(tmp_path / "a.json", [slice_("x", "cpu_op", 1.25, 1)])
    update_trace_rank(file_path=path, rank=3)
    assert read_trace(file_path=path)["distributedInfo"] == {"rank": 3}
    assert read_trace(path)["traceEvents"][0]["ts"] == 1.25
    write_trace({"traceEvents": [], "distributedInfo": {"rank": 3}}, tmp_path / "new" / "b.json.gz")
    assert json.loads(gzip.decompress((tmp_path / "new" / "b.json.gz").read_bytes()))["traceEvents"] == []
    assert create_rank_to_trace_dict(file_list=[str(path)]) == (True, {3: str(path)})
    assert get_trace_files(trace_path=str(tmp_path)) == {3: str(path)}
    assert get_trace_files(str(tmp_path / "none")) == {}


def test_files_that_are_no_documents(tmp_path):
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text("[]")
    for name in ("a.json", "b.json"):
        with pytest.raises(TraceFormatError, match=name):
            read_trace(tmp_path / name)
    with pytest.raises(ValueError, match=r"\.gz"):
        read_trace(tmp_path / "a.txt")


def test_a_valid_trace(capsys):
    path = str(next(shared_trace("hta/nccl_parser_config").iterdir()))
    assert validate_trace_format(trace_file_path=path) == (True, {})
    assert main([path, "--level", "minimal"]) == 0
    assert capsys.readouterr().out == "valid\n"


def test_what_is_wrong_with_a_trace(tmp_path, capsys):
    events = [slice_("x", "cpu_op", 1, 1, stream="7", bytes=1.5), {**slice_("y", "cpu_op", 1, 1), "args": []}]
    path = write(tmp_path / "a.json", events)
    valid, errors = validate_trace_format(str(path), ignore_missing_arguments=False)
    assert not valid
    assert errors["type_violations"] == ["stream holds str, not Int", "bytes holds float, not Int"]
    assert errors["args_data_type"] == ["args of 1 events is no object"]
    assert "correlation" in errors["skipped_arguments"]
    assert main([str(path)]) == 1 and "type_violations: stream" in capsys.readouterr().out
    assert list(validate_trace_format(str(tmp_path / "none.json"))[1]) == ["trace_read_error"]
    for events in ([], [{"ph": "M"}]):
        write(tmp_path / "b.json", events)
        assert list(validate_trace_format(str(tmp_path / "b.json"))[1]) == ["trace_data_error"]
    with pytest.raises(ValueError, match="level"):
        validate_trace_format(str(path), "best")
