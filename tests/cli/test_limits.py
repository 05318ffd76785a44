"""What `diff --fail-on` takes, and what it says to everything else."""

from __future__ import annotations

import math
from typing import get_args

import pytest

from hta_widgets.analysis.compare.lines import By
from hta_widgets.analysis.idle.split import PARTS
from hta_widgets.cli.exits import UsageError
from hta_widgets.cli.limits import LINES, MEASURES, limit
from tests.support import ROOT


@pytest.mark.parametrize(
    ("text", "of", "line", "sign", "amount", "unit"),
    [
        ("step_time>+3%", "step_time", "", 1, 3.0, "%"),
        ("  step_time > +3 % ", "step_time", "", 1, 3.0, "%"),
        ("compute<-0.5%", "compute", "", -1, 0.5, "%"),
        ("idle>+2ms", "idle", "", 1, 2e6, "ns"),
        ("host_busy>+.5us", "host_busy", "", 1, 500.0, "ns"),
        ("host_busy>+5\N{MICRO SIGN}s", "host_busy", "", 1, 5e3, "ns"),
        ("host_busy>+5\N{GREEK SMALL LETTER MU}s", "host_busy", "", 1, 5e3, "ns"),
        ("communication>+1s", "communication", "", 1, 1e9, "ns"),
        ("peak_memory>+512MiB", "peak_memory", "", 1, 2.0**29, "bytes"),
        ("peak_memory>+0%", "peak_memory", "", 1, 0.0, "%"),
        ('kernel:"void f<float, 4>(float*)">+5%', "kernel", "void f<float, 4>(float*)", 1, 5.0, "%"),
        ('op:"a \\"quoted\\" \\\\ name">+10us', "op", 'a "quoted" \\ name', 1, 1e4, "ns"),
    ],
)
def test_limits(text: str, of: str, line: str, sign: int, amount: float, unit: str) -> None:
    found = limit(text)
    assert (found.of, found.line, found.sign, found.amount, found.unit) == (of, line, sign, amount, unit)
    assert found.text == text.strip()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "METRIC"),
        ("step_time", "METRIC"),
        ("step_time>+3", "METRIC"),
        ("step_time>=+3%", "METRIC"),
        ("step_time>+3% or so", "METRIC"),
        ("step_time>3%", "above +0 or below -0"),
        ("step_time>-3%", "above +0 or below -0"),
        ("step_time<+3%", "above +0 or below -0"),
        ("speed>+3%", "the metrics are step_time, compute"),
        ("step_time>+3MiB", "not in 'MiB'"),
        ("peak_memory>+3ms", "B, KiB, MiB, GiB"),
        ("idle>+3h", "ns, us"),
        ("kernel>+3%", "a line in quotes"),
        ('kernel:"">+3%', "a line in quotes"),
        ('idle:"x">+3%', "no line in quotes"),
        ('moon:"x">+3%', "there is no metric 'moon'"),
        (f"step_time>+{'9' * 400}%", "so large that nothing is beyond it"),
        (f"peak_memory>+{'9' * 400}GiB", "so large that nothing is beyond it"),
    ],
)
def test_what_is_no_limit(text: str, word: str) -> None:
    with pytest.raises(UsageError) as raised:
        limit(text)
    assert word in str(raised.value)


@pytest.mark.parametrize(
    ("text", "before", "change", "beyond"),
    [
        ("step_time>+3%", 1000, 30, False),
        ("step_time>+3%", 1000, 31, True),
        ("step_time>+3%", 1000, -500, False),
        ("step_time<-3%", 1000, -30, False),
        ("step_time<-3%", 1000, -31, True),
        ("step_time<-3%", 1000, 500, False),
        ("idle>+1us", 0, 1000, False),
        ("idle>+1us", 0, 1001, True),
        ("idle>+1000%", 0, 1, True),
        ("idle>+0%", 0, 0, False),
        ("idle>+3%", 1000, math.nan, True),
        ("idle>+3%", math.nan, 1, True),
        ("idle<-3ms", 1000, math.nan, True),
    ],
)
def test_what_is_beyond(text: str, before: float, change: float, beyond: bool) -> None:
    assert limit(text).beyond(before, change) is beyond


def test_metrics_are_those_of_the_analyses() -> None:
    assert set(PARTS) | {"step_time", "idle", "communication", "peak_memory"} == set(MEASURES)
    assert set(LINES) == set(get_args(By))


def test_page_tells_every_metric() -> None:
    page = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
    for metric in (*MEASURES, *LINES):
        assert f"`{metric}" in page
