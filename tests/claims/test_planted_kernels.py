"""Planted programs whose kernels, copies and memory are known: all that is stated of them is true.

And what is stated is found false once it is changed: a reader that nothing can contradict is none.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_widgets.analysis import overview
from hta_widgets.analysis.core.claim import Text
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rules import RULES
from hta_widgets.trace import Scope
from hta_widgets.trace.model import Trace
from tests.claims.checking import faults_of, stated_in
from tests.claims.job import Job
from tests.claims.measures.copies import copies_of
from tests.claims.plain_kernels import kernels_of
from tests.claims.registry import MEASURES, Stated
from tests.verdicts.planted import (
    test_attention,
    test_chains,
    test_copies,
    test_dense_gradients,
    test_drift,
    test_launches,
    test_memory,
    test_precision,
    test_recomputation,
    test_shapes,
)
from tests.verdicts.planted.devices import A100, H100, opened
from tests.verdicts.planted.host_program import US

Build = Callable[[Path], Trace]


def planted(program: Callable[[], Any], device: str = A100, **limits: Any) -> Build:
    return lambda folder: opened(folder, program(), device, **limits)


def launches(*of: Any, **how: Any) -> Build:
    return planted(test_launches.steps(*of, **how), A100, **test_launches.LIMITS)


LAYER_NORM, LAUNCH = (
    ("aten::native_layer_norm", test_launches.ROWS, test_launches.NORM, 2000 * US),
    test_launches.launch,
)
PROGRAMS: dict[str, tuple[str, Build]] = {
    "fp32": ("fp32_units", planted(test_precision.steps((test_precision.FP32, 12), (test_precision.ADD, 8)))),
    "fp64": ("fp64_units", planted(test_precision.steps((test_precision.FP64, 12), (test_precision.ADD, 8)))),
    "dense gradients": (
        "dense_gradients",
        planted(lambda: test_dense_gradients.program_of(True), H100),
    ),
    "tf32": ("tf32_units", planted(test_precision.steps((test_precision.TF32, 12), (test_precision.ADD, 8)))),
    "attention": ("attention_not_fused", planted(test_attention.steps(test_attention.attends), H100)),
    "math path": ("attention_not_fused", planted(test_attention.steps(test_attention.falls_back), H100)),
    "vocabulary": (
        "unaligned_shapes",
        planted(test_shapes.steps("aten::addmm", test_shapes.VOCABULARY, test_shapes.HALF, 6000 * US)),
    ),
    "waves": (
        "wave_quantization",
        launches("aten::mm", test_launches.LARGE, test_launches.GEMM, 6000 * US, LAUNCH(256)),
    ),
    "grid": (
        "low_occupancy",
        launches("aten::mm", ((128, 8192), (8192, 3456)), test_launches.GEMM, 1000 * US, LAUNCH(27, pct=2)),
    ),
    "registers": ("low_occupancy", launches(*LAYER_NORM, LAUNCH(4096, 128, 255, 0, 12))),
    "shared memory": ("low_occupancy", launches(*LAYER_NORM, LAUNCH(4096, 128, 32, 81920, 12))),
    "block size": ("low_occupancy", launches(*LAYER_NORM, LAUNCH(13824, 8, 16, 0, 25))),
    "tiny": (
        "tiny_products",
        launches(*test_launches.TINY[:5], count=200),
    ),
    "chains": (
        "pointwise_chains",
        planted(test_chains.steps(test_chains.SCALE, test_chains.ADD, test_chains.ACTIVATE), H100),
    ),
    "recomputation": ("recomputation", planted(test_recomputation.steps(test_recomputation.LAYER), H100)),
    "pageable": (
        "pageable_copies",
        lambda folder: test_precision.opened(
            folder, test_copies.copying((test_copies.PAGEABLE, 24_000_000, 6.0))(), test_copies.V100
        ),
    ),
    "pinned": (
        "slow_copies",
        lambda folder: test_precision.opened(
            folder, test_copies.copying((test_copies.PINNED, 24_000_000, 3.0))(), test_copies.V100
        ),
    ),
    "clock": ("clock_drift", lambda folder: test_drift.steps(test_drift.FALLING).open(folder)),
    "leak": ("memory_leak", lambda folder: test_memory.loop(leak=64 << 20).open(folder)),
    "full": ("memory_full", lambda folder: test_memory.loop(held=75 * test_memory.GIB).open(folder)),
    "slack": (
        "memory_fragmentation",
        lambda folder: test_memory.loop(held=60 * test_memory.GIB, slack=15 * test_memory.GIB).open(folder),
    ),
}  # fmt: skip

OTHERS = {"saving", "cost", "changes"}
"""What is stated of findings about other things, too."""


@dataclass(frozen=True)
class Recorded:
    """A program that ran: what it plants, its rows of the overview, and the slow reader's view of it."""

    topic: str
    trace: Trace
    rows: pd.DataFrame
    job: Job


@pytest.fixture(scope="module", params=PROGRAMS)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    topic, build = PROGRAMS[request.param]
    trace = build(tmp_path_factory.mktemp("job"))
    frame = overview(trace)
    return Recorded(topic, trace, frame[frame["topic"] == topic], Job(trace))


def test_what_is_stated_is_true_and_its_opposite_false(recorded: Recorded) -> None:
    job, rows = recorded.job, recorded.rows
    assert len(rows)
    faults = faults_of(recorded.trace, rows, job=job)
    assert [str(fault) for fault in faults if fault.measure not in OTHERS] == []
    unseen = []
    for stated in stated_in(rows):
        if stated.measure not in OTHERS:
            unseen += [each for each in changed(stated) if not contradicted(job, each)]
    assert [(each.measure, each.value) for each in unseen] == []


def changed(stated: Stated) -> list[Stated]:
    """The same claim with other values."""
    if stated.unit == "ranks":
        return [replace(stated, value=tuple(rank + 1 for rank in stated.value), shown="rank 77")]
    if isinstance(stated.value, tuple):
        return [replace(stated, value=tuple(value + 1 for value in stated.value))]
    if isinstance(stated.value, str):
        return [replace(stated, value=f"{stated.value} of another", shown="another")]
    return [replace(stated, value=stated.value * 1.3), replace(stated, value=stated.value * 0.7)]


def contradicted(job: Job, stated: Stated) -> bool:
    """Whether its reader finds it false, or cannot find what it names."""
    try:
        return bool(MEASURES[stated.measure](job, stated))
    except (LookupError, ValueError):
        return True


def test_the_evidence_is_an_interval_that_shows_it(recorded: Recorded) -> None:
    job = recorded.job
    (row,) = recorded.rows.to_dict("records")
    if row["role"] == "memory":  # which takes no time
        return
    rank = job.ranks[row["event_rank"]]
    inside = [each for each in rank.work if row["start_ns"] <= each.start and each.end <= row["end_ns"]]
    if recorded.topic == "clock_drift":  # a step, in which these kernels take longer than in the first
        first = [each for each in rank.work if rank.windows[0][0] <= each.start < rank.windows[0][1]]
        assert sum(each.dur for each in inside) > 1.1 * sum(each.dur for each in first)
        return
    (work,) = inside
    assert work.window == (row["start_ns"], row["end_ns"])
    about = named(json.loads(row["claims"]))
    kernels = kernels_of(job, rank, about) if "name" not in about else copies_of(rank, about["name"])
    assert work.dur == max(each.dur for each in kernels if each.name == work.name)


def named(stated: list[dict[str, Any]]) -> dict[str, Any]:
    """What tells the kernels or copies that claims are about."""
    keys = ("kind", "pattern", "units", "name")
    return next(claim["about"] for claim in stated if any(key in claim["about"] for key in keys))


def test_the_time_lost_is_that_of_these_kernels(recorded: Recorded) -> None:
    topic, job = recorded.topic, recorded.job
    finding = next(rule for rule in RULES if rule.topic == topic).judge(Inputs(recorded.trace, Scope()))
    assert finding is not None and isinstance(finding.text, Text)
    if topic in ("clock_drift", "memory_leak", "memory_full", "memory_fragmentation"):
        assert not finding.lost  # all kernels take a little longer; memory takes no time
        return
    about = named([claim.as_dict() for claim in finding.text.claims])
    rank = job.ranks[0]
    kernels = kernels_of(job, rank, about) if "name" not in about else copies_of(rank, about["name"])
    (lost,) = finding.lost.values()
    assert lost.length == rank.within([kernel.window for kernel in kernels])


COPIES = "void at::native::direct_copy_kernel_cuda(int)"
COPY = ("aten::copy_", (test_chains.BIG, test_chains.BIG), "bf16", COPIES)
FEATURES = ((1024, 647, 96), (1024, 96, 30))
OTHER = ("aten::mm", (test_chains.OTHER, test_chains.OTHER[::-1]), "bf16", test_chains.GEMM)


@pytest.mark.parametrize(
    ("program", "part", "whole"),
    [
        # the copies are links of chains, or stand between products
        (test_chains.steps(test_chains.SCALE, COPY, test_chains.ADD), "tensor_copies", "pointwise_chains"),
        (
            test_chains.steps(COPY, OTHER, test_chains.SCALE, test_chains.ADD, test_chains.ACTIVATE),
            "tensor_copies",
            "",
        ),
        (
            test_shapes.steps("aten::bmm", FEATURES, test_shapes.TF32, 6000 * US, "fp32"),
            "tf32_units",
            "unaligned_shapes",
        ),
        (
            test_shapes.steps("aten::addmm", test_shapes.VOCABULARY, test_shapes.HALF, 6000 * US),
            "unaligned_shapes",
            "",
        ),
    ],
    ids=["copies in chains", "copies beside chains", "unaligned in TF32", "unaligned in 16 bits"],
)  # fmt: skip
def test_what_lies_in_the_time_of_another_finding_is_a_part(
    program: Callable[[], Any], part: str, whole: str, tmp_path: Path
) -> None:
    frame = overview(opened(tmp_path, program(), H100 if "copies" in part else A100)).set_index("topic")
    assert frame.loc[part, "part_of"] == whole
    if whole:
        assert frame.loc[whole, "part_of"] == ""
