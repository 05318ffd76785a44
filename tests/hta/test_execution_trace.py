"""Execution traces: both layouts, and which events of a profiler trace their nodes are."""

import gzip
import json

import pytest

from hta_widgets.errors import MissingDataWarning, TraceFormatError, TraceNotFoundError
from hta_widgets.hta.common.execution_trace import (
    ExecutionTrace,
    add_et_column,
    correlate_execution_trace,
    load_execution_trace,
)
from hta_widgets.hta.common.trace import Trace
from tests.analysis.multirank import RankFile, job
from tests.support import shared_trace

FOLDER = "hta/execution_trace"


@pytest.fixture
def et() -> ExecutionTrace:
    return load_execution_trace(str(shared_trace(f"{FOLDER}/benchmark_simple_add_et.json.gz")))


@pytest.fixture
def t() -> Trace:
    t = Trace({0: str(shared_trace(f"{FOLDER}/benchmark_simple_add_trace.json.gz"))}, "")
    t.load_traces()
    return t


def test_the_file_of_hta_is_read(et):
    assert len(et.nodes) == 38
    assert et.schema == "1.0.1"
    node = et.nodes[13]
    assert (node.name, node.rf_id, node.parent_id) == ("aten::uniform_", 7, 9)
    assert node.input_types == ["Tensor(float)", "Double", "Double", "None"]
    assert node.output_shapes == [[256, 256]]
    assert node.op_schema.startswith("aten::uniform_(Tensor(a!) self")


def test_every_operator_finds_its_node(et, t):
    correlate_execution_trace(t, 0, et)
    add_et_column(t.get_trace(0), et, "et_node_name")
    frame = t.get_trace(0)
    symbols = t.symbol_table.get_sym_table()
    found = frame[frame["et_node"].notna()]
    assert len(found) == 36
    assert found["et_node"].dtype == "float64"
    assert [symbols[name] for name in found["name"]] == found["et_node_name"].tolist()
    assert {symbols[category] for category in found["cat"]} == {"cpu_op", "user_annotation"}
    assert [et.nodes[int(node)].rf_id for node in found["et_node"]] == found["external_id"].tolist()


@pytest.mark.parametrize(
    "column", ["op_schema", "input_shapes", "input_types", "output_shapes", "output_types"]
)
def test_columns_of_the_nodes(et, t, column):
    correlate_execution_trace(t, 0, et)
    frame = t.get_trace(0)
    add_et_column(frame, et, column)
    known = frame["et_node"].notna()
    assert frame.loc[known, column].tolist() == [
        getattr(et.nodes[int(node)], column) for node in frame.loc[known, "et_node"]
    ]
    assert frame.loc[~known, column].isna().all()


def chakra(rf_id: int, name: str) -> dict[str, object]:
    return {
        "id": rf_id + 100, "name": name, "ctrl_deps": 1,
        "inputs": {"values": [1], "shapes": [[2, 3]], "types": ["Int"]},
        "outputs": {"values": [], "shapes": [], "types": []},
        "attrs": [{"name": "rf_id", "type": "uint64", "value": rf_id}, {"name": "op_schema", "value": "s"}],
    }  # fmt: skip


def profiled(tmp_path) -> Trace:
    item = RankFile(0)
    for number, name in ((1, "aten::mm"), (2, "aten::add"), (3, "aten::relu")):
        args = {"External id": 50 + number, "Record function id": number}
        item.add("cpu_op", name, 1000 * number, 500, args=args)
    job(tmp_path / "job", item)
    t = Trace(None, str(tmp_path / "job"))
    t.load_traces()
    return t


def test_the_newer_layout_and_the_recorded_function_id(tmp_path):
    et = ExecutionTrace(
        {"schema": "1.1.0-chakra.0.0.4", "nodes": [chakra(1, "aten::mm"), chakra(3, "aten::relu")]}
    )
    assert et.nodes[101].input_shapes == [[2, 3]]
    t = profiled(tmp_path)
    correlate_execution_trace(t, 0, et)
    assert t.get_trace(0)["et_node"].fillna(-1).tolist() == [101, -1, 103]


def test_ids_of_another_recording_are_not_taken_for_its_own(tmp_path):
    t = profiled(tmp_path)
    et = ExecutionTrace({"nodes": [chakra(1, "aten::cat"), chakra(2, "aten::add"), chakra(3, "aten::sum")]})
    with pytest.warns(MissingDataWarning, match="3 ids occur in both, 1 of them under the same name"):
        correlate_execution_trace(t, 0, et)
    assert "et_node" not in t.get_trace(0)


def test_no_common_id_and_no_nodes_are_reported(tmp_path):
    t = profiled(tmp_path)
    for nodes in ([], [chakra(77, "aten::mm")]):
        with pytest.warns(MissingDataWarning, match="ExecutionTraceObserver"):
            correlate_execution_trace(t, 0, ExecutionTrace({"nodes": nodes}))


def test_a_column_before_correlation_warns_and_an_unknown_one_is_an_error(et, t):
    with pytest.warns(MissingDataWarning, match="correlate_execution_trace"):
        add_et_column(t.get_trace(0), et, "op_schema")
    with pytest.raises(ValueError, match="no column 'x'"):
        add_et_column(t.get_trace(0), et, "x")


def test_other_files_are_refused(tmp_path):
    with pytest.raises(TraceNotFoundError):
        load_execution_trace(tmp_path / "x.json")
    for number, content in enumerate(
        [b"{", b"[]", b"{}", b'{"nodes": [{}]}', b'{"nodes": [1]}', b"\x1f\x8bx"]
    ):
        path = tmp_path / f"{number}.json"
        path.write_bytes(content)
        with pytest.raises(TraceFormatError):
            load_execution_trace(path)
    path = tmp_path / "plain.json"
    path.write_text(json.dumps({"nodes": [chakra(1, "a")]}))
    zipped = tmp_path / "zipped.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    assert load_execution_trace(path).nodes == load_execution_trace(zipped).nodes
