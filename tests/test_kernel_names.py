"""Long names keep what tells the kernel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hta_widgets import Trace
from hta_widgets.kernel_names import short_kernel_name, short_kernel_names
from tests.support import GPU_TRACES, shared_trace

NAMES = {
    name: short
    for short, name in (
        line.split("\t") for line in Path(__file__).with_name("kernel_names.tsv").read_text().splitlines()[1:]
    )
}


@pytest.mark.parametrize("name", NAMES)
def test_what_tells_the_kernel_stays(name: str) -> None:
    assert short_kernel_name(name) == NAMES[name]


def test_what_still_is_too_long_loses_its_middle() -> None:
    short = short_kernel_name("igemm_" + "fwd_gtcx3_nhwc_bf16_bx0_ex1_" * 5 + "end")
    assert len(short) == 64 and short.startswith("igemm_fwd") and short.endswith("_end") and "…" in short


@given(st.text(alphabet="ab<>(){}:_, *&\n#é", max_size=200), st.integers(8, 80))
def test_any_text_is_cut_to_the_length(text: str, length: int) -> None:
    short = short_kernel_name(text, length)
    assert len(short) <= length
    assert len(text) > length or short == text


@pytest.mark.parametrize("name", GPU_TRACES)
def test_names_of_recordings_stay_names(name: str) -> None:
    trace = Trace.open(shared_trace(name))
    found = trace.rank(trace.ranks[0])
    names = [found.names[code] for code in np.unique(found.name[found.is_device])]
    assert all(short_kernel_name(text).strip() for text in names)
    assert all(len(short_kernel_name(text)) <= 64 for text in names)


def test_python_frames_keep_file_and_function() -> None:
    name = "/opt/conda/lib/python3.11/site-packages/torch/nn/modules/module.py(1553): _call_impl"
    assert short_kernel_name(name) == "module.py(1553): _call_impl"


def test_names_that_would_read_the_same_keep_what_differs() -> None:
    kernel = (
        "void at::native::vectorized_elementwise_kernel"
        "<{}, at::native::CUDAFunctor_add<float>, at::x<{}>>(int)"
    )
    names = [kernel.format(*both) for both in ((4, 1), (4, 2), (8, 1))]
    other = "ampere_sgemm_128x64_nn"
    labels = short_kernel_names([*names, other, names[0]])
    assert len({short_kernel_name(name) for name in names}) == 1
    assert list(labels) == [*names, other] and labels[other] == other
    assert len(set(labels.values())) == 4
    assert all(label.startswith("vectorized_elementwise_kernel<") for label in list(labels.values())[:3])
    assert "<8, at" in labels[names[2]] and "x<2>" in labels[names[1]]
    assert all(len(label) <= 64 for label in labels.values())


@given(
    st.lists(
        st.sampled_from(["void f<", "(int)", ", 4", ", 8", ">", "at::native::", "g", "a" * 30]), max_size=12
    )
    .map("".join)
    .flatmap(lambda start: st.lists(st.text("ab<", max_size=60).map(lambda end: start + end), max_size=8))
)
@example([f"void f<void f<{'a' * 30}{end}" for end in ("", "<", "a", "a<")])  # two short names begin alike
def test_different_names_have_different_labels(names: list[str]) -> None:
    labels = short_kernel_names(names, 40)
    assert labels.keys() == set(names)
    assert len(set(labels.values())) == len(labels)
    assert all(len(label) <= 40 for label in labels.values())
