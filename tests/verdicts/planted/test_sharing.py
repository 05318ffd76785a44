"""Communication that slows the kernels beside it: planted, near misses, and what is not recorded."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hta_widgets import Scope
from hta_widgets.analysis import overview
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.sharing_rules import slowed_by_communication
from hta_widgets.trace.model import Trace
from tests.analysis.multirank import RankFile

US = 1_000
GEMM = "ampere_bf16_s16816gemm_bf16_128x256_tn"


def recorded(
    folder: Path,
    slower: float = 1.4,
    spread: float = 0.01,
    shapes: bool = True,
    deeper: bool = False,
    beside: int = 6,
) -> tuple[Trace, int]:
    """One rank: twelve equal kernels a step, some beside an all-reduce; and how much longer those take, ns.

    Args:
        slower: how many times as long they take. spread: all times vary by that. shapes: inputs are recorded.
        deeper: they multiply a greater depth, in the same grid. beside: how many of twelve, in six steps.
    """
    file, dice, now, lost = RankFile(0), random.Random(1), 1_000_000, 0
    for step in range(6):
        begin, start = now, now + 100 * US
        exchange = 0
        for at in range(12):
            shared = at >= 12 - beside
            usual = int(300 * US * dice.uniform(1 - spread, 1 + spread))
            took = int(usual * slower) if shared else usual
            lost += took - usual
            if shared and not exchange:
                exchange = start
            call, depth = begin + at * 4 * US, 2048 if deeper and shared else 1024
            file.add(
                "cpu_op", "aten::mm", call, 3 * US,
                args={"Input Dims": [[512, depth], [depth, 512]]} if shapes else {},
            )  # fmt: skip
            file.kernel(start, start + took, GEMM, 7, launched=call + US, grid=[64, 1, 1], block=[128, 1, 1])
            start += took + 2 * US
        if exchange:
            file.kernel(exchange, start + 10 * US, launched=begin + 60 * US)
        now = start + 100 * US
        file.step(step, begin, now)
    file.write(folder, 2)
    return Trace.open(folder, cache=False), lost


def test_what_communication_costs_the_kernels_beside_it(tmp_path: Path) -> None:
    trace, lost = recorded(tmp_path)
    found = slowed_by_communication(Inputs(trace, Scope()))
    assert found is not None
    assert found.cost_ns == pytest.approx(lost, rel=0.03)
    assert "36 compute kernels take 1.40 times as long beside communication" in str(found.text)
    assert found.evidence.name == GEMM
    row = overview(trace).set_index("topic").loc["slowed_by_communication"]
    assert (row["severity"], row["kind"]) == ("warning", "comm_comp_overlap")
    assert row["share_pct"] == pytest.approx(found.share_pct)


@pytest.mark.parametrize(
    "near_miss",
    [
        {"slower": 1.0},
        {"slower": 1.08},  # caches and clocks make as much
        {"slower": 0.7},  # faster beside communication: then something else differs
        {"slower": 1.15, "spread": 0.3},  # not more than kernels vary anyway
        {"deeper": True},  # more work in the same grid
    ],
)
def test_near_misses(near_miss: dict, tmp_path: Path) -> None:
    trace, _ = recorded(tmp_path, **near_miss)
    assert slowed_by_communication(Inputs(trace, Scope())) is None


@pytest.mark.parametrize("gap", [{"shapes": False}, {"beside": 0}, {"beside": 12}])
def test_what_is_not_recorded_is_not_judged(gap: dict, tmp_path: Path) -> None:
    trace, _ = recorded(tmp_path, **gap)
    assert slowed_by_communication(Inputs(trace, Scope())) is None
