"""C++ names that the recorder left as the compiler wrote them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hta_widgets.analysis.kernels.classes import kernel_class
from hta_widgets.demangling import demangled
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.trace.classify import EventClass, classify

# Mangled names, and what `c++filt` of binutils makes of them.
NAMES = dict(
    line.split("\t") for line in Path(__file__).with_name("demangled_names.tsv").read_text().splitlines()
)
ADD = next(iter(NAMES))


@pytest.mark.parametrize("name", NAMES)
def test_names_of_functions_are_read_back(name: str) -> None:
    assert demangled(name).replace(" ", "") == NAMES[name].replace(" ", "")


def test_a_parameter_whose_type_repeats_one_before_it_is_read() -> None:
    """`Tn` is younger than binutils; by the grammar, `T_` in it is the first argument."""
    name = "_ZN1f3actI4typeTnPFT_RKS2_EXadL_Z4siluIS1_ES2_S4_EEEEvPS2_"
    assert demangled(name) == "void f::act<type, &type silu<type>(type const&)>(type*)"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "_Z",
        "_ZN",
        "ampere_sgemm_128x64_tn",
        "_ZN2at6nativeE1",
        "_ZN9tooEv",
        ADD[:-4] + "Q",
        ADD[:60],
    ],
)
def test_what_is_no_such_name_stays(name: str) -> None:
    assert demangled(name) == name


def test_a_name_that_ends_with_what_compilers_add_is_read() -> None:
    assert demangled(ADD + ".kd") == demangled(ADD)


@given(st.text(alphabet="ZNSIEKPRTLXJF_0123456789abijfvclUn", max_size=200))
def test_any_text_is_answered(text: str) -> None:
    assert isinstance(demangled("_Z" + text), str)


@pytest.mark.parametrize(
    "name",
    [
        "_Z1fI" + "1aI" * 2_000,
        "_Z1f" + "P" * 8_000 + "i",
        "_Z1fIJ" + "J" * 5_000,
        "_Z" + "Z" * 5_000,
        "_Z1fI1aE1bI" + "".join(f"1cIS{at}_S{at}_S{at}_S{at}_E" for at in range(36)) + "EE",  # grows fourfold
        "_ZN" + "1a" * 4_000 + "E",
    ],
)
def test_names_made_to_nest_or_grow_are_answered_at_once(name: str) -> None:
    begin = time.perf_counter()
    assert len(demangled(name)) < 100_000
    assert time.perf_counter() - begin < 5


@pytest.mark.parametrize(
    "nested",
    [
        "P",
        "K",
        "A_",
        "A1_",
        "Dp",
        "Dv1_",
        "M",
        "F",
        "N1aI",
        "1aI",
        "N1acv",
        "1aIL_Z1f",
        "Z1f",
        "UlUl",
        "1aIJ",
        "1aIX",
    ],
)
def test_a_name_that_nests_deeper_than_any_compiler_s_is_left(nested: str) -> None:
    name = f"_Z1f{nested * 1_000}i"
    assert demangled(name) == name


def test_rules_by_name_hold() -> None:
    name = "_ZN2at6native12_GLOBAL__N_143distribution_elementwise_grid_stride_kernelIfLi4EEEvif"
    assert classify("kernel", "_ZN5flash7computeEPf")[0] == EventClass.COMPUTE
    assert classify("kernel", "_Z36ncclDevKernel_AllReduce_Sum_f32_RINGPf")[0] == EventClass.COMMUNICATION
    assert kernel_class(ADD).operation == kernel_class(name).operation == "elementwise"


def test_a_template_is_one_kernel() -> None:
    assert short_kernel_name(ADD) == short_kernel_name(NAMES[ADD])
    assert short_kernel_name("_Z3addPf") == "add(float*)"
