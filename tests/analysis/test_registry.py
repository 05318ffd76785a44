"""Every entry of the registry can be computed, summarised and drawn, also where data is missing."""

from dataclasses import fields
from functools import cache

import pandas as pd
import pytest

from examples.simulator.bundled import JOBS
from hta_widgets import Scope, Trace, examples
from hta_widgets.analysis import ANALYSES, kernel_sequences, op_kernels, user_annotations
from hta_widgets.charts import spec
from hta_widgets.charts.marks import marks
from hta_widgets.errors import MissingDataError
from tests.support import EVERY_CASE, shared_trace

NOTHING = Scope(window_ns=(10**15, 10**15 + 5))


# One of each kind, the one with most in it first; the others differ from these in what their devices do.
UNLIKE = ["ddp_4ranks", "gpt2_fsdp_full_shard", "inference_cuda_graphs", "continuous_batching"]


@pytest.fixture(scope="module")
def jobs() -> list[Trace]:
    return [examples.load(name) for name in (sorted(JOBS) if EVERY_CASE else UNLIKE)]


def speaks(sentence: str) -> None:
    assert sentence.endswith(".")
    assert "nan" not in sentence.lower().split()
    assert "<NA>" not in sentence


@pytest.mark.parametrize("kind", ANALYSES)
@pytest.mark.parametrize("scope", [Scope(), NOTHING], ids=["all", "nothing"])
def test_every_entry_answers_speaks_and_draws(jobs: list[Trace], kind: str, scope: Scope) -> None:
    """Of the first job that has the data; of every job the sentence is read in tests/voice."""
    analysis = ANALYSES[kind]
    for job in jobs:
        try:
            frame = analysis.function(job, scope)
        except MissingDataError as missing:
            assert missing.remedy
            assert any(
                missing.field.startswith(known) or known in missing.field for known in analysis.requires
            )
            continue
        speaks(analysis.sentence(frame))
        assert analysis.figure(frame).layout.title.text
        assert columns_of(analysis.chart) | columns_of(analysis.pictured) <= set(frame)
        if job is jobs[0] and scope == Scope():
            has_few_marks(kind, frame)
        if not EVERY_CASE:
            return


def has_few_marks(kind: str, frame: pd.DataFrame) -> None:
    analysis = ANALYSES[kind]
    if analysis.chart_from:
        assert not analysis.chart  # the other entry's is drawn
        assert ANALYSES[analysis.chart_from].chart
    elif not analysis.chart:
        # words and numbers, which a table shows; steps have a panel of their own
        assert kind in ("training_strategy", "parallelism", "step_parts")
    else:
        drawn = marks(analysis.chart, frame)
        assert len(drawn.table) <= 8 * 2000
        assert drawn.left_out >= 0
        # a roof may be unknown
        known = ["size", "label", "share", "calls"] if kind == "roofline" else [*drawn.table]
        assert not drawn.table[known].isna().any(axis=None)


def columns_of(chart: spec.Figure | None) -> set[str]:
    """The columns of a frame that its chart names."""
    match chart:
        case spec.Stack():
            parts = [series.column for series in chart.series]
            own = [chart.part, chart.value] if chart.part else [chart.whole, *parts]
            named = [*chart.label, *own, *(chart.interval or ())]
        case spec.Bars():
            named = [chart.value, *chart.label, *(chart.window or ()), chart.names, chart.weight, chart.note]
        case spec.Lines():
            named = [chart.time, chart.value, *chart.by, chart.beside, chart.end, chart.weight]
        case spec.Heat():
            named = [chart.x, chart.y, chart.value]
        case spec.Trend():
            named = [chart.x, chart.by, chart.value, chart.outlier, *(column for column, _ in chart.aside)]
        case spec.Spread():
            own = [chart.low, chart.mid, chart.high, chart.order]
            named = [chart.label, *own, *(chart.quartiles or ())]
        case spec.Histogram():
            named = [chart.value, *([chart.part.column] if chart.part else [])]
        case spec.Flame():
            weights = [column for total, own, _, _ in chart.weights for column in (total, own)]
            named = [chart.node, chart.parent, chart.label, *weights]
        case spec.Segments():
            named = [chart.start, chart.duration, chart.part, chart.name, *chart.label]
        case spec.Roofline():
            named = [getattr(chart, field.name) for field in fields(chart)]
        case None:
            named = []
        case _:
            raise AssertionError(f"what columns does a {type(chart).__name__} name?")
    return {*named} - {""}


@cache
def host_only(name: str) -> Trace:
    return Trace.open(shared_trace(name))


@pytest.mark.parametrize("kind", ANALYSES)
@pytest.mark.parametrize("name", ["hta/cpu_only", "hta/rank_non_gpu"] if EVERY_CASE else ["hta/rank_non_gpu"])
def test_host_only_jobs_say_what_to_record(name: str, kind: str) -> None:
    trace = host_only(name)
    try:
        frame = ANALYSES[kind].function(trace)
    except MissingDataError as missing:
        assert "profile" in missing.remedy or "Record" in missing.remedy
    else:
        speaks(ANALYSES[kind].sentence(frame))
        ANALYSES[kind].figure(frame)


@pytest.mark.parametrize("kind", ANALYSES)
def test_every_entry_is_described(kind: str) -> None:
    analysis = ANALYSES[kind]
    assert analysis.kind == kind
    assert analysis.label
    assert analysis.group
    assert not analysis.title.endswith((".", "?"))
    for option in analysis.options:
        assert not option.choices or option.default in option.choices


@pytest.mark.parametrize("kind", [kind for kind, entry in ANALYSES.items() if entry.options])
def test_every_choice_of_an_option_answers(jobs: list[Trace], kind: str) -> None:
    analysis = ANALYSES[kind]
    for option in analysis.options:
        for choice in option.choices:
            for job in jobs:
                try:
                    frame = analysis.function(job, Scope(), **{option.name: choice})
                except MissingDataError:
                    continue
                speaks(analysis.sentence(frame))
                analysis.figure(frame)
                if not EVERY_CASE:
                    break


def test_sequences_without_an_operator_are_those_of_the_busiest() -> None:
    job = examples.load("ddp_4ranks")
    busiest = str(op_kernels(job).groupby("op")["device_ns"].sum().idxmax())
    asked = ANALYSES["kernel_sequences"].function
    assert asked(job).equals(kernel_sequences(job, operator=busiest, min_length=1))
    assert asked(job, operator="aten::addmm")["operator"].unique().tolist() == ["aten::addmm"]


def test_regions_are_the_devices_where_it_has_some_else_the_hosts() -> None:
    regions = ANALYSES["user_annotations"].function
    job = examples.load("ddp_4ranks")
    assert regions(job).equals(user_annotations(job, side="gpu"))
    assert regions(job, side="cpu").equals(user_annotations(job, side="cpu"))
    host = Trace.open(shared_trace("hta/cpu_only"))
    assert regions(host).equals(user_annotations(host, side="cpu"))
