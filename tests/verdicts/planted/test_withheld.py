"""What records do not support is withheld with the reason; the rest stays."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hta_widgets import Scope, Trace
from hta_widgets.analysis import overview
from hta_widgets.analysis.findings.rules import RULES
from hta_widgets.analysis.findings.story import story
from hta_widgets.analysis.findings.withheld import WithheldError, withheld
from tests.cli.conftest import Run, run  # noqa: F401
from tests.support import shared_input
from tests.trace.helpers import slice_
from tests.trace.test_impossible_records import Event, kernels_of, opened, program
from tests.verdicts.planted.test_one_rank import lacks_launches, loop

STEPS = 8


def events() -> list[Event]:
    """Steps that wait 20 % of their time for a host that is late, in a file of ns."""
    return program(STEPS, fraction=0.3)


def topics(trace: Trace, scope: Scope | None = None) -> set[str]:
    return {*overview(trace, scope)["topic"]}


def reasons(trace: Trace, scope: Scope | None = None) -> dict[str, str]:
    scope = scope or Scope()
    found = {
        claim: withheld(trace, scope, claim)
        for claim in ("idle_causes", "savings", "ranks", "steps", "efficiency")
    }
    return {claim: why.detail for claim, why in found.items() if why is not None}


def test_nothing_is_withheld_where_nothing_is_wrong(tmp_path: Path) -> None:
    trace = opened(tmp_path, events())
    assert reasons(trace) == {} and "idle_host" in topics(trace)


def test_a_clock_ahead_takes_the_causes_only(tmp_path: Path) -> None:
    changed = events()
    for event in kernels_of(changed):
        event["ts"] -= 150
    trace = opened(tmp_path, changed)
    assert list(reasons(trace)) == ["idle_causes"]
    found = overview(trace)
    assert "compute_bound" in {*found["topic"]} and "idle_host" not in {*found["topic"]}
    unknown = found.loc[found["topic"] == "not_judged", "text"].iloc[0]
    assert "ahead of the host's: it is unknown why devices are idle" in unknown
    believed = opened(tmp_path, changed, repair=False)
    assert reasons(believed) == {}


@pytest.mark.parametrize("cut", [True, False])
def test_work_that_a_cut_file_lacks(cut: bool, tmp_path: Path) -> None:
    """Calls stand before the device's work: a file that ends early has launches without it."""
    every = sorted(events(), key=lambda event: event["cat"] == "kernel")
    trace = opened(tmp_path, every[:-20])
    if cut:
        path = next(tmp_path.glob("*.json"))
        text = path.read_text()
        path.write_text(text[: text.rindex('"kernel"')])
        trace = Trace.open(path, cache=False)
    found = reasons(trace, Scope(iterations=(STEPS - 1,)))["idle_causes"]
    assert "launches was not recorded" in found
    assert found.endswith(", as the file was cut while being written") is cut


def test_a_step_in_doubt_is_withheld_where_it_is_chosen(tmp_path: Path) -> None:
    changed = events()
    lost = [id(event) for event in kernels_of(changed)[4:8]]
    trace = opened(tmp_path, [event for event in changed if id(event) not in lost])
    assert "idle_host" in topics(trace)  # of the other steps
    assert not reasons(trace, Scope(iterations=(0, 2, 3)))
    chosen = Scope(iterations=(1,))
    assert set(reasons(trace, chosen).values()) == {"step 1: the work of 4 launches was not recorded"}
    assert "withheld" in topics(trace, chosen) and "idle_host" not in topics(trace, chosen)
    assert "idle_host" in topics(trace, Scope(iterations=(0, 2, 3)))


def test_lost_records_lead(tmp_path: Path) -> None:
    """Most launches are lost, and what is left does not explain the time."""
    trace = loop(lacks_launches)().open(tmp_path)
    count = trace.rank(0).without_launch
    found = overview(trace)
    why = reasons(trace)["idle_causes"]
    assert why.startswith(f"{count} device records have no launch, and a replay of the others misses")
    assert why.endswith("records were probably lost")
    assert why in story(trace, frame=found).trust
    assert not found["saving_ns"].notna().any()
    assert "idle_host" not in {*found["topic"]}


def test_a_capture_in_a_running_program_is_judged_by_its_span(tmp_path: Path) -> None:
    def captured(step: int) -> Trace:
        begin = kernels_of(events())[4 * step]["ts"] + 300
        calls = [
            slice_("cudaStreamBeginCapture", "cuda_runtime", begin, 1, correlation=9001),
            slice_("cudaStreamEndCapture", "cuda_runtime", begin + 200, 1, correlation=9002),
        ]
        launches = [
            slice_("cudaLaunchKernel", "cuda_runtime", begin + 10 + 10 * k, 1, correlation=9100 + k)
            for k in range(6)
        ]
        return opened(tmp_path, [*events(), *calls, *launches])

    trace = captured(3)
    assert set(reasons(trace)) == {"idle_causes", "savings", "efficiency"}
    others = Scope(iterations=(0, 1, 5))
    assert not reasons(trace, others) and "idle_host" in topics(trace, others)


def test_every_rule_makes_claims_of_one_class() -> None:
    assert {rule.claim for rule in RULES} == {"idle_causes", "ranks", "steps", "efficiency", None}
    assert {rule.topic for rule in RULES if rule.claim is None} == {
        rule.topic for rule in RULES if rule.role == "memory"
    }


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("cases/a07_device_clock_ahead", ("too late", "Host busy")),
        ("cases/b02_xpu_kernels_missing_copies_only", ("idle 9", "computes", "takes most", "Ranks  (")),
        ("cases/d01_interleaved", ("computes", "too late", "takes most")),
        ("cases/l01_graph_burst_corr_kept", ("computes", "too late", "unusually long")),
    ],
)
def test_a_summary_asserts_nothing_that_is_withheld(run: Run, name: str, absent: tuple[str, ...]) -> None:  # noqa: F811
    shown = run("summary", shared_input(name)).out
    above = shown.partition("Health")[0]
    assert re.search("Trust +Limited", shown)
    assert not [text for text in absent if text in above]
    answers = run("summary", shared_input(name), "--json").json["answers"]
    assert "missing" in answers["idle_breakdown"]


def test_the_error_says_what_to_do() -> None:
    error = WithheldError("processes 1 and 2 wrote this file", "export one file for each process")
    assert error.remedy == "Export one file for each process."
