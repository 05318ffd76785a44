"""HTA's `trace_parser`: a file as a document, as metadata, and as a frame without links."""

import gzip
import io
import json

import numpy as np
import pandas as pd
import pytest

from hta_widgets.errors import TraceNotFoundError
from hta_widgets.hta.common.trace import parse_trace_file
from hta_widgets.hta.common.trace_parser import (
    MetaDataKey,
    get_default_trace_parsing_backend,
    infer_gpu_type,
    parse_metadata_ijson,
    parse_trace_dataframe,
    parse_trace_dict,
    round_down_time_stamps,
    set_default_trace_parsing_backend,
)
from hta_widgets.hta.configs import env_options
from hta_widgets.hta.configs.parser_config import ParserBackend, ParserConfig
from tests.support import shared_trace
from tests.trace.helpers import kernel, slice_, write


def file_of(name):
    return str(next(shared_trace(name).iterdir()))


def test_the_frame_is_that_of_a_file_without_its_links():
    path = file_of("hta/triton_example")
    meta, frame, symbols = parse_trace_dataframe(path, ParserConfig.get_default_cfg())
    whole_meta, whole, whole_symbols = parse_trace_file(path)
    assert meta == whole_meta and symbols.sym_table == whole_symbols.sym_table
    pd.testing.assert_frame_equal(frame, whole.drop(columns=["index_correlation", "iteration"]))
    assert meta[str(MetaDataKey.DEVICE_TYPE)] == "UNKNOWN GPU"
    with pytest.raises(TraceNotFoundError):
        parse_trace_dataframe(f"{path}.none.json", ParserConfig())


def test_a_document():
    path = file_of("hta/triton_example")
    document = parse_trace_dict(path)
    with gzip.open(path) if path.endswith(".gz") else open(path) as file:  # noqa: PTH123
        assert document == json.load(file)


def test_the_default_backend_decides_whether_categories_are_skipped(tmp_path):
    events = [slice_("f", "python_function", 0, 9), slice_("op", "cpu_op", 1, 2)]
    path = str(write(tmp_path / "a.json", events))
    assert get_default_trace_parsing_backend() is ParserBackend.JSON
    assert len(parse_trace_dataframe(path, ParserConfig())[1]) == 2
    set_default_trace_parsing_backend(ParserBackend.IJSON_BATCHED)
    try:
        assert len(parse_trace_dataframe(path, ParserConfig())[1]) == 1
        own = ParserConfig()
        own.set_parser_backend(ParserBackend.JSON)
        assert len(parse_trace_dataframe(path, own)[1]) == 2
    finally:
        set_default_trace_parsing_backend(ParserBackend.JSON)
    with pytest.raises(ValueError, match="yaml"):
        set_default_trace_parsing_backend("yaml")


@pytest.mark.parametrize(
    ("metadata", "names", "device"),
    [
        ({"distributedInfo": {"backend": "cpu:gloo,mtia:hccl"}}, {"cudaLaunchKernel"}, "MTIA"),
        ({"distributedInfo": {"backend": "nccl"}}, {"cudaLaunchKernel": 1}, "NVIDIA GPU"),
        ({"distributedInfo": None}, {"hipLaunchKernel"}, "AMD GPU"),
        (None, {"runFunction - job_prep_and_submit_for_execution"}, "MTIA"),
        (None, None, "UNKNOWN GPU"),
    ],
)
def test_kinds_of_devices(metadata, names, device):
    assert infer_gpu_type(metadata, names) == device


def metadata_of(text):
    return parse_metadata_ijson(io.BytesIO(text.encode()))


def test_metadata_before_the_events():
    wanted = {"schemaVersion": 1, "devices": [{"id": 0, "nested": {"a": [1]}}], "note": '"traceEvents"'}
    head = json.dumps(wanted).removesuffix("}")
    # What follows the key is not read, be it JSON or not.
    assert metadata_of(head + ',\n "traceEvents": [{"ph": ') == wanted
    assert metadata_of(head + "}") == wanted
    assert metadata_of('{"traceEvents": [') == {}
    assert metadata_of('{"a": {"traceEvents": []}, "b": 2, "traceEvents": [') == {
        "a": {"traceEvents": []},
        "b": 2,
    }
    with pytest.raises(ValueError, match="Expecting"):
        metadata_of('{"a": ')


@pytest.mark.parametrize("length", range((1 << 16) - 20, (1 << 16) + 3))
def test_metadata_that_ends_anywhere_in_a_block(length):
    assert len(metadata_of(f'{{"a": "{"x" * length}", "traceEvents": [')["a"]) == length


def test_metadata_of_a_real_trace():
    path = file_of("hta/nccl_parser_config")
    with gzip.open(path) as file:
        read = parse_metadata_ijson(file)
    document = parse_trace_dict(path)
    keys = list(document)
    assert read == {key: document[key] for key in keys[: keys.index("traceEvents")]} and read


def test_rounding_as_hta_does(monkeypatch):
    frame = pd.DataFrame({"ts": [1.0, 1.25, 3.4], "dur": [2.0, 1.5, 0.2]})
    round_down_time_stamps(frame)
    assert frame.to_dict("list") == {"ts": [1, 2, 4], "dur": [2, 0, -1], "end": [3, 2, 3]}
    whole = pd.DataFrame({"ts": np.array([1], np.int64), "dur": [1.5]})
    round_down_time_stamps(whole)
    assert list(whole) == ["ts", "dur"]
    options = env_options.HTAEnvOptions.instance()
    monkeypatch.setattr(options, "_on", {**options._on, env_options.HTA_DISABLE_NS_ROUNDING_ENV: True})
    exact = pd.DataFrame({"ts": [1.25], "dur": [1.5]})
    round_down_time_stamps(exact)
    assert exact.to_dict("list") == {"ts": [1.25], "dur": [1.5]}


def test_devices_of_a_frame(tmp_path):
    events = [slice_("cudaLaunchKernel", "cuda_runtime", 1, 1, correlation=1), kernel("k", 3, 1)]
    meta, frame, symbols = parse_trace_dataframe(str(write(tmp_path / "a.json", events)), ParserConfig())
    assert meta["device_type"] == "NVIDIA GPU"
    assert [symbols.sym_table[code] for code in frame["name"]] == ["cudaLaunchKernel", "k"]
