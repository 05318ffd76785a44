"""Every comparison of the registry can be computed, summarised and drawn, also where runs do not compare."""

from itertools import pairwise
from typing import Any

import pandas as pd
import pytest

from hta_widgets import Scope, Trace, examples
from hta_widgets.analysis import COMPARISONS, diff
from hta_widgets.analysis.compare.check_table import check_table
from hta_widgets.charts.spec import Stack, Waterfall
from hta_widgets.charts.waterfall_bars import waterfall_bars
from hta_widgets.errors import MissingDataError, NotComparableError
from tests.support import EVERY_CASE, shared_trace

pytestmark = pytest.mark.slow

SETUPS = ("gpt2_baseline", "gpt2_ddp", "gpt2_fsdp_full_shard", "gpt2_fsdp_shard_grad_op")


@pytest.fixture(scope="module")
def runs() -> dict[str, Trace]:
    return {name: examples.load(name) for name in SETUPS}


def speaks(sentence: str) -> None:
    assert sentence.endswith(".")
    assert "nan" not in sentence.lower().split()


@pytest.mark.parametrize("kind", COMPARISONS)
@pytest.mark.parametrize("count", [2, 4] if EVERY_CASE else [3])
def test_every_comparison_answers_speaks_and_draws(runs: dict[str, Trace], kind: str, count: int) -> None:
    analysis = COMPARISONS[kind]
    some = dict(list(runs.items())[:count])
    frame = analysis.function(some)
    assert set(frame["run"]) == set(some)
    speaks(analysis.sentence(frame))
    figure = analysis.figure(frame)
    assert figure.layout.title.text == analysis.title
    frame = analysis.function(some, {run: Scope(iterations=(trace.iterations["iteration"].max(),))
                                   for run, trace in some.items()})  # fmt: skip
    speaks(analysis.sentence(frame))
    analysis.figure(frame)


@pytest.mark.parametrize("kind", COMPARISONS)
def test_every_comparison_is_described(kind: str) -> None:
    analysis = COMPARISONS[kind]
    assert analysis.kind == kind
    assert analysis.label and analysis.group
    assert not analysis.title.endswith((".", "?"))
    for option in analysis.options:
        assert option.default in option.choices


def test_every_choice_of_an_option_answers(runs: dict[str, Trace]) -> None:
    analysis = COMPARISONS["diff"]
    some = {run: runs[run] for run in SETUPS[1:3]}
    for option in analysis.options:
        for choice in option.choices:
            frame = analysis.function(some, None, **{option.name: choice})
            assert len(frame)
            speaks(analysis.sentence(frame))
            analysis.figure(frame)


def test_auto_is_the_choice_of_diff_itself(runs: dict[str, Trace]) -> None:
    some = {run: runs[run] for run in SETUPS[:2]}
    assert COMPARISONS["diff"].function(some, by="op", time="auto").equals(diff(some, "op"))
    assert COMPARISONS["diff"].function(some, by="op", time="host").equals(diff(some, "op", time="host"))


def test_the_parts_of_the_run_table_are_those_of_the_step(runs: dict[str, Trace]) -> None:
    chart = COMPARISONS["run_table"].chart
    assert isinstance(chart, Stack)
    frame = COMPARISONS["run_table"].function(runs)
    assert (frame[[series.column for series in chart.series]].sum(axis=1) == frame[chart.whole]).all()


@pytest.mark.parametrize("by", ["job", "rank"])
def test_bars_of_a_waterfall_lead_from_nothing_to_the_whole_change(runs: dict[str, Trace], by: str) -> None:
    chart = COMPARISONS["step_waterfall"].chart
    assert isinstance(chart, Waterfall)
    frame = COMPARISONS["step_waterfall"].function(runs, by=by)
    bars, names = waterfall_bars(chart, frame)
    if by == "job":
        assert names == list(SETUPS[1:])
    else:
        assert names == [f"{run}, rank 0" for run in SETUPS[1:]]  # the only one that the first run has
    for place in range(len(names)):
        own = bars[bars["run"] == place]
        *parts, whole = own.to_dict("records")
        assert [part["whole"] for part in parts] == [0] * len(parts) and whole["whole"] == 1
        assert parts[0]["start"] == 0
        assert all(left["end"] == right["start"] for left, right in pairwise(parts))
        assert all(bar["end"] - bar["start"] == bar["value"] for bar in own.to_dict("records"))
        assert (own["after"] - own["before"] == own["value"]).all()
        assert whole["end"] == parts[-1]["end"] == sum(part["value"] for part in parts)
        assert whole["before"] == sum(part["before"] for part in parts)
        assert whole["after"] == sum(part["after"] for part in parts)


@pytest.mark.parametrize("kind", COMPARISONS)
def test_a_run_against_itself_shows_no_change(kind: str) -> None:
    trace = examples.load("gpt2_ddp")
    frame = COMPARISONS[kind].function({"a": trace, "b": trace})
    if "change_ns" in frame:
        assert not frame["change_ns"].any()
        assert not frame["significant"].any()
    if kind == "comparability":
        assert (frame["severity"] == "ok").all()
    COMPARISONS[kind].figure(frame)


@pytest.mark.parametrize("kind", COMPARISONS)
def test_training_and_serving_are_refused_or_distinguished(kind: str) -> None:
    pair = {"training": examples.load("gpt2_baseline"), "serving": examples.load("inference_cuda_graphs")}
    analysis = COMPARISONS[kind]
    if kind in ("comparability", "training_strategy"):
        speaks(analysis.sentence(analysis.function(pair)))
        return
    with pytest.raises(NotComparableError):
        analysis.function(pair)


@pytest.mark.parametrize("kind", COMPARISONS)
def test_host_only_runs_compare_or_say_what_to_record(kind: str) -> None:
    trace = Trace.open(shared_trace("hta/cpu_only"))
    analysis = COMPARISONS[kind]
    options: dict[str, Any] = {"by": "op"} if kind == "diff" else {}
    try:
        frame = analysis.function({"a": trace, "b": trace}, **options)
    except MissingDataError as missing:
        assert "profile" in missing.remedy or "Record" in missing.remedy
    except NotComparableError as refused:
        assert refused.reasons
    else:
        speaks(analysis.sentence(frame))
        analysis.figure(frame)


@pytest.mark.parametrize("kind", COMPARISONS)
def test_names_from_outside_are_no_markup_in_figures(kind: str) -> None:
    trace = examples.load("gpt2_baseline")
    analysis = COMPARISONS[kind]
    figure = analysis.figure(analysis.function({"<b>a</b>": trace, "<i>b</i>": trace}))
    shown = str(figure.to_plotly_json())
    assert "&lt;i&gt;" in shown
    assert "<b>" not in shown and "<i>" not in shown


def test_checks_have_a_column_for_each_run() -> None:
    """Also for one that is named as another column."""
    rows = [
        {
            "check": check,
            "severity": "warning",
            "reason": f"{check} differ",
            "run": run,
            "value": f"{check} of {run}",
        }
        for check in ("devices", "models")
        for run in ("base", "reason")
    ]
    found = check_table(pd.DataFrame(rows))
    assert found.columns.tolist() == ["check", "severity", "base", "run reason", "reason"]
    assert found.iloc[1].tolist() == [
        "models",
        "warning",
        "models of base",
        "models of reason",
        "models differ",
    ]
