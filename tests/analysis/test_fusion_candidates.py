"""Sequences of pointwise kernels that could be one: known programs, and what is missing elsewhere.

`tests/verdicts/test_pointwise_chains.py` counts those of a real recording again from the plain events.
"""

from pathlib import Path

import pytest

from hta_widgets.analysis import fusion_candidates, what_if
from hta_widgets.analysis.replay.expressions import parse_all
from hta_widgets.analysis.replay.fusion_candidates import sentence
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.support import shared_trace
from tests.verdicts.planted.devices import H100, opened, operator
from tests.verdicts.planted.host_program import US, Program

GEMM = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_64x3_tn_align8>(T1::Params)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>(int)"
SHAPE = (1024, 1024)
TENSOR = 2 * 1024 * 1024


def recorded(folder: Path, dtype: str | None = "bf16") -> Trace:
    """Two steps: add and gelu, twice, each pair behind a product; and an add that nothing reads."""
    program = Program()
    for number in (1, 2):
        with program.step(number):
            for _ in range(2):
                with operator(program, "aten::mm", SHAPE, SHAPE, dtype=dtype):
                    program.launch(2000 * US, GEMM)
                with operator(program, "aten::add", SHAPE, SHAPE, dtype=dtype):
                    program.launch(300 * US, ADD)
                with operator(program, "aten::gelu", SHAPE, dtype=dtype):
                    program.launch(200 * US, GELU)
            with operator(program, "aten::mm", SHAPE, SHAPE, dtype=dtype):
                program.launch(2000 * US, GEMM)
            with operator(program, "aten::add", SHAPE, SHAPE, dtype=dtype):
                program.launch(300 * US, ADD)
            program.synchronise()
    return opened(folder, program, H100)


def test_what_is_written_and_read_again_is_saved(tmp_path):
    trace = recorded(tmp_path)
    (row,) = fusion_candidates(trace).to_dict("records")
    assert (row["pattern"], row["operators"]) == (f"{ADD}|{GELU}", "aten::add|aten::gelu")
    assert (row["length"], row["count"], row["device_ns"]) == (2, 4, 4 * 500 * US)
    # 3 + 2 tensors each, of which the sum is written and read
    assert (row["bytes"], row["saved_bytes"]) == (4 * 5 * TENSOR, 4 * 2 * TENSOR)
    assert row["saved_device_ns"] == 4 * 500 * US * 2 // 5
    # the device is never idle
    assert row["saved_ns"] == pytest.approx(row["saved_device_ns"], rel=0.01)
    assert trace.events().set_index("event_id").loc[row["first_event_id"], "name"] == ADD
    assert sentence(fusion_candidates(trace)) == (
        "4 chains of pointwise kernels take 2.00 ms. As one kernel each, they would save at most 800 µs of "
        "device time and 16.0 MiB of memory traffic."
    )


def test_the_edit_of_a_row_is_what_was_replayed(tmp_path):
    trace = recorded(tmp_path)
    row = fusion_candidates(trace).iloc[0]
    frame = what_if(trace, parse_all(row["edits"])).dropna(subset="iteration")
    assert (frame["before_ns"] - frame["after_ns"]).sum() == row["saved_ns"]
    other = what_if(trace, parse_all(row["edits"].replace("gelu", "x").replace("Gelu", "x")))
    assert (other["before_ns"] == other["after_ns"]).all()


def test_a_scope_has_the_sequences_that_begin_in_it(tmp_path):
    trace = recorded(tmp_path)
    row = fusion_candidates(trace, Scope(iterations=(2,))).iloc[0]
    assert (row["count"], row["saved_bytes"]) == (2, 2 * 2 * TENSOR)
    assert row["saved_ns"] == pytest.approx(row["saved_device_ns"], rel=0.01)
    assert fusion_candidates(trace, Scope(names=(GELU,))).empty


def test_without_shapes_or_launches_the_remedy_is_named(tmp_path):
    with pytest.raises(MissingDataError, match="record_shapes=True"):
        fusion_candidates(recorded(tmp_path, dtype=None))
    with pytest.raises(MissingDataError, match="launches"):
        fusion_candidates(Trace.open(shared_trace("hta/cpu_only")))
