"""Long names keep what tells the kernel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hta_widgets import Trace
from hta_widgets.kernel_names import short_kernel_name
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
