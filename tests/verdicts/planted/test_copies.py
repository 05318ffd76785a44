"""Programs whose large copies are slow for a known reason: that is told with what it costs, and no more."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from hta_widgets import edits
from hta_widgets.analysis import what_if
from hta_widgets.analysis.findings import OPEN, overview
from hta_widgets.analysis.findings.story import story
from tests.verdicts.planted.host_program import US, Program
from tests.verdicts.planted.test_precision import A100, V100, opened

PAGEABLE, PINNED = "Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pinned -> Device)"
TOPICS = ("pageable_copies", "slow_copies")


def copying(*copies: tuple[str, int, float], sizes: bool = True) -> Callable[[], Program]:
    """Each step copies so many bytes at so many GB/s, by names, and computes 6 ms far ahead."""

    def build() -> Program:
        program = Program()
        for number in range(1, 7):
            with program.step(number):
                for name, size, gbps in copies:
                    program.copy(round(size / gbps), name)
                    if sizes:
                        program.events[-1]["args"]["bytes"] = size
                for _ in range(6):
                    program.launch(1_000 * US)
                program.synchronise()
        return program

    return build


@pytest.mark.parametrize(
    ("program", "device", "topic", "gbps", "words"),
    [
        (copying((PAGEABLE, 24_000_000, 6.0)), V100, "pageable_copies", 12.0, "(by PCIe 3)"),
        (copying((PAGEABLE, 24_000_000, 6.0)), A100, "pageable_copies", 24.0, "(by PCIe 4)"),
        (
            copying((PAGEABLE, 24_000_000, 6.0), (PINNED, 2_000_000, 20.0)),
            None,
            "pageable_copies",
            20.0,
            "(as others here reach)",
        ),
        (copying((PINNED, 24_000_000, 3.0)), V100, "slow_copies", 12.0, "PCIe 3 carries some 12.0 GB/s"),
        (copying((PINNED, 24_000_000, 3.7)), V100, "", 0, ""),  # no less than 30 % of 12
        (copying((PAGEABLE, 24_000_000, 11.9)), V100, "", 0, ""),  # as fast as if it were pinned
        (copying((PAGEABLE, 900_000, 3.0), (PAGEABLE, 900_000, 3.0)), V100, "", 0, ""),  # small ones
        (copying((PAGEABLE, 24_000_000, 6.0), sizes=False), V100, "", 0, ""),
        (copying(("Memcpy HtoD (Host -> Device)", 24_000_000, 3.0)), V100, "", 0, ""),  # of unknown memory
        (copying((PINNED, 24_000_000, 3.0)), None, "", 0, ""),
        (copying((PINNED, 24_000_000, 3.0)), "NVIDIA GH200 480GB", "", 0, ""),  # another link
    ],
)
def test_copies_below_their_link(program, device, topic, gbps, words, tmp_path: Path):
    built = program()
    frame = overview(opened(tmp_path, built, device))
    told = {row["topic"]: row for row in frame.to_dict("records") if row["topic"] in TOPICS}
    assert set(told) == {topic} - {""}
    if not topic:
        return
    row = told[topic]
    assert words in row["text"]
    # counted again from the plain events
    copies = [event for event in built.events if event["args"].get("bytes", 0) > 2_000_000]
    beyond = sum(event["dur"] - event["args"]["bytes"] / gbps for event in copies)
    steps = sum(event["dur"] for event in built.events if event["name"].startswith("ProfilerStep"))
    assert row["cost_ns"] == pytest.approx(beyond, abs=len(copies))
    assert row["share_pct"] == pytest.approx(100 * beyond / steps, abs=0.1)
    # the device is never idle, so that all of it is saved
    assert row["saving_ns"] == pytest.approx(beyond, rel=0.01)
    assert (row["section"], row["method"]) == ("saves", "replay")
    assert row["edits"].startswith(f"[edits.copy_bandwidth({gbps}, name=")


def test_what_pinned_memory_would_be_worth_is_unknown_of_an_unknown_device(tmp_path: Path):
    frame = overview(opened(tmp_path, copying((PAGEABLE, 24_000_000, 6.0))(), None))
    assert not frame["topic"].isin(TOPICS).any()
    asked = frame.loc[frame["severity"] == OPEN, "text"]
    assert asked.str.match("The trace has no name of the device.*: it is unknown .*what copies cost").any()


@pytest.mark.parametrize("way", ["HtoD", "DtoH"])
def test_what_is_read_back_is_not_pinned_by_the_loader(way: str, tmp_path: Path) -> None:
    name = {"HtoD": PAGEABLE, "DtoH": "Memcpy DtoH (Device -> Pageable)"}[way]
    rows = overview(opened(tmp_path, copying((name, 24_000_000, 6.0))(), None)).set_index("topic")
    advice = rows.loc["memory_copies", "suggestion"]
    assert ("pin_memory=True" in advice) is (way == "HtoD")
    assert advice.startswith("Read back less") is (way == "DtoH")


def before_late_kernels(pageable: bool) -> Program:
    """Each step copies 24 MB at 6 GB/s, and then computes little, for which the host takes 1.02 ms."""
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            if pageable:
                program.copy_pageable(4_000 * US, 24_000_000)
            else:
                program.copy(4_000 * US, PINNED)
                program.events[-1]["args"]["bytes"] = 24_000_000
            for _ in range(10):
                program.operator("aten::slow_op", 100 * US)
                program.launch(50 * US)
            program.synchronise()
    return program


def test_a_call_blocks_for_pageable_memory(tmp_path: Path) -> None:
    """Without the copy the host goes on at once: all of its time is saved, or what pinned memory would."""
    trace = opened(tmp_path, before_late_kernels(pageable=True), A100)
    frame = what_if(trace, [edits.copies(math.inf)])
    whole = frame[frame["iteration"].isna()].iloc[0]
    assert whole["before_ns"] - whole["after_ns"] == pytest.approx(6 * 4_000 * US, rel=0.03)
    row = overview(trace).set_index("topic").loc["pageable_copies"]
    assert row["saving_ns"] == pytest.approx(6 * 3_000 * US, rel=0.03)


def test_a_copy_that_the_host_did_not_wait_for_does_not_free_it(tmp_path: Path) -> None:
    """The device computes 0.5 ms after it, while which the host is ahead: 1.08 ms of it are not saved."""
    trace = opened(tmp_path, before_late_kernels(pageable=False), A100)
    frame = what_if(trace, [edits.copies(math.inf)])
    whole = frame[frame["iteration"].isna()].iloc[0]
    assert whole["before_ns"] - whole["after_ns"] == pytest.approx(6 * (4_500 - 1_070) * US, rel=0.03)


def test_copies_that_compute_hides_save_nothing_now(tmp_path: Path):
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            for _ in range(10):
                program.launch(1_000 * US)
            program.copy(4_000 * US, PAGEABLE, stream=20)
            program.events[-1]["args"]["bytes"] = 24_000_000
            program.synchronise()
    frame = overview(opened(tmp_path, program, V100)).set_index("topic")
    assert frame.loc["pageable_copies", "section"] == "not now"


@pytest.mark.parametrize(
    ("names", "copies"),
    [((PAGEABLE,), True), ((PAGEABLE, "Memcpy DtoH (Device -> Pinned)"), False), ((), False)],
)
def test_a_late_host_between_copies_is_helped_by_fewer_of_them(tmp_path: Path, names, copies: bool) -> None:
    """Also of one kind only: what lies between reading back and copying anew is another part of a step."""
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            for nth in range(40):
                with program.inside("cpu_op", "aten::copy_"):
                    program.silence(20 * US)
                    if names:
                        program.copy(10 * US, names[nth % len(names)])
                    else:
                        program.launch(10 * US)
            program.launch(1_000 * US)
            program.synchronise()
    row = overview(opened(tmp_path, program, A100)).set_index("topic").loc["idle_host"]
    assert ("one pinned buffer" in row["suggestion"]) is copies
    assert ("CUDA graphs" in row["suggestion"]) is not copies


@pytest.mark.parametrize(("ns", "named"), [(3_000 * US, True), (100 * US, False)])
def test_a_headline_names_what_holds_the_host_for_long(tmp_path: Path, ns: int, named: bool) -> None:
    """And advice begins with it; what the host waited for before comes second."""
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            for _ in range(4):
                program.launch(500 * US)
                with program.inside("cpu_op", "aten::item"):
                    program.synchronise()
                program.operator("aten::sort", ns)
    trace = opened(tmp_path, program, A100)
    row = overview(trace).set_index("topic").loc["idle_host"]
    assert story(trace).headline.endswith("kernels launched too late (aten::sort)") is named
    assert row["suggestion"].startswith(f"Look at {'aten::sort' if named else 'cudaDeviceSynchronize'}")


@pytest.mark.parametrize("name", [PAGEABLE, "Memcpy DtoH (Device -> Pageable)"])
def test_what_to_do_about_the_copy_for_which_the_host_waits(name: str, tmp_path: Path) -> None:
    """With nothing left to do, the device waits 0.4 ms for the host after it."""
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            program.copy(500 * US, name)
            program.synchronise(name="cudaStreamSynchronize")
            program.operator("aten::slow_op", 400 * US)
            for _ in range(4):
                program.launch(500 * US)
    row = overview(opened(tmp_path, program, A100)).set_index("topic").loc["idle_host"]
    assert "of it lies after the host had waited in cudaStreamSynchronize" in row["text"]
    assert ("It waits there for copies to the device" in row["suggestion"]) is (name == PAGEABLE)
    assert ("Read back later" in row["suggestion"]) is (name != PAGEABLE)


@pytest.mark.parametrize("grows", [True, False])
def test_a_tensor_that_grows_by_being_copied(grows: bool, tmp_path: Path) -> None:
    """In each step four tensors get one more row each, or four pairs of equal halves are joined."""
    program = Program()
    name = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<c10::BFloat16>(int)"
    for number in range(1, 7):
        with program.step(number):
            for _ in range(4):
                rest = 1 if grows else 500 + number
                joined = [[8, 8, 500 + number, 128], [8, 8, rest, 128]]
                types = {"Input type": ["TensorList", "Scalar"]}
                with program.inside("cpu_op", "aten::cat", **{"Input Dims": [joined, []], **types}):
                    program.launch(500 * US, name)
                program.launch(500 * US)
            program.synchronise()
    row = overview(opened(tmp_path, program, A100)).set_index("topic").loc["tensor_copies"]
    assert ('cache_implementation="static"' in row["suggestion"]) is grows
    assert ("torch.cat" in row["suggestion"]) is not grows


@pytest.mark.parametrize(("lost", "leads"), [(3_000 * US, True), (600 * US, False)])
def test_a_loss_far_larger_than_what_can_be_saved_comes_first(lost: int, leads: bool, tmp_path: Path) -> None:
    """Layouts are converted for 0.2 ms; what other kernels for convolutions would save is unknown."""
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            with program.inside("cpu_op", "aten::miopen_convolution"):
                program.launch(200 * US, "batched_transpose_64x64_half")
                program.launch(lost, "naive_conv_ab_nonpacked_fwd_nchw_half_double_half")
            program.launch(1_000 * US)
            program.synchronise()
    trace = opened(tmp_path, program, "AMD Instinct MI250X / MI250")
    headline = story(trace).headline
    assert ("is due to fallback kernels of convolutions, saving not estimated" in headline) is leads
    assert ("at best without tensor layout conversions" in headline) is not leads
