"""HTA's `get_potential_stragglers`, its extension point and its default."""

import json
import warnings
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import pytest

from hta_widgets import examples
from hta_widgets.analysis.communication.collectives import collectives
from hta_widgets.analysis.communication.stragglers import stragglers
from hta_widgets.errors import HtaWidgetsError, MissingDataWarning, NoSuchStepError
from hta_widgets.hta.analyzers import straggler, straggler_analysis
from hta_widgets.hta.analyzers.straggler import (
    extract_iteration_info,
    find_stragglers_with_late_start_comm_kernels,
    straggler_figures,
)
from hta_widgets.hta.analyzers.straggler_analysis import StragglerAnalysis, potential_stragglers
from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.trace_analysis import TraceAnalysis
from tests.analysis.multirank import RankFile, job
from tests.support import shared_trace

MS = 1_000_000


def loaded(path: object) -> Trace:
    t = Trace(None, str(path))
    t.load_traces()
    return t


@pytest.fixture(scope="module")
def ddp() -> Trace:
    return loaded(examples.path("ddp_4ranks"))


def test_the_simulated_straggler_comes_first(ddp):
    assert potential_stragglers(ddp)[0] == 2
    assert len(potential_stragglers(ddp)) == 2
    assert potential_stragglers(ddp, num_candidates=-1) == [2]
    assert potential_stragglers(ddp, [11], 1) == [2]
    assert len(potential_stragglers(ddp, num_candidates=9)) == 4


def test_steps_that_do_not_exist_are_ignored_or_refused(ddp):
    assert potential_stragglers(ddp, [11, 99], 1) == [2]
    with pytest.raises(ValueError, match=r"profiler_steps=\[99\]; available profiler steps=\[10, 11, 12\]"):
        potential_stragglers(ddp, [99])


def test_a_rank_that_is_not_late_is_no_straggler_however_many_are_asked_for():
    late = stragglers(examples.load("ddp_4ranks"))
    assert (late["lateness_ns"] == 0).any()
    expected = (late["lateness_ns"] > 0).groupby(late["rank"]).sum()
    assert straggler.counts(late, 4).sort_index().to_dict() == expected.to_dict()


def test_both_ranks_of_the_real_job_as_in_hta():
    assert potential_stragglers(loaded(shared_trace("hta/trace_filter"))) == [0, 1]


def test_with_the_last_step_the_late_rank_is_first():
    t = Trace(None, str(shared_trace("hta/trace_filter")))
    t.load_traces(include_last_profiler_step=True)
    assert potential_stragglers(t, num_candidates=1) == [1]
    assert potential_stragglers(t) == [1, 0]


def test_a_plug_in_gets_the_frame_of_the_steps(ddp):
    seen = {}

    def mine(df, symbol_table, num_candidates, visualize):
        seen.update(df=df, table=symbol_table, rest=(num_candidates, visualize))
        return pd.Series({0: 1, 1: 5, 2: 5, 3: 0})

    assert potential_stragglers(ddp, [11, 12], 3, False, mine) == [1, 2, 0]
    assert seen["table"] is ddp.symbol_table
    assert seen["rest"] == (3, False)
    frame = seen["df"]
    assert list(frame.columns[:2]) == ["rank", "idx"]
    assert set(frame["rank"]) == {0, 1, 2, 3}
    assert set(frame["iteration"]) == {11, 12}


def test_the_default_called_on_a_frame_agrees_with_the_method(ddp):
    def default(*args):
        found.append(find_stragglers_with_late_start_comm_kernels(*args))
        return found[-1]

    found: list[pd.Series] = []
    for count in (1, 2, 3):
        assert potential_stragglers(ddp, None, count, False, default) == potential_stragglers(
            ddp, None, count
        )
    assert found[0].to_dict() == {0: 0, 1: 0, 2: 3, 3: 0}
    assert found[0].index[0] == 2


@pytest.mark.parametrize(
    ("name", "stream"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 20),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", 0),
        ("rcclGenericKernel(ncclDevKernelArgs)", 3),
    ],
)
def test_any_library_any_stream_and_step_zero(tmp_path, name, stream):
    ranks = [
        RankFile(rank)
        .step(0, 0, 90 * MS)
        .kernel((10 + 5 * rank) * MS, 30 * MS, name, stream, launched=10)
        .step(1, 100 * MS, 200 * MS)
        for rank in (0, 1, 2)
    ]
    job(tmp_path / "job", *ranks)
    t = loaded(tmp_path / "job")
    assert potential_stragglers(t, num_candidates=2) == [2, 1]

    def default(*args):
        return find_stragglers_with_late_start_comm_kernels(*args)

    assert potential_stragglers(t, None, 2, False, default) == [2, 1]


@pytest.mark.parametrize("name", ["hta/nccl_parser_config", "hta/ns_resolution_trace", "hta/amd_trace"])
def test_where_hta_raises_the_answer_is_nobody_and_a_reason(name):
    with pytest.warns(MissingDataWarning, match="second rank"):
        assert potential_stragglers(loaded(shared_trace(name))) == []


def test_the_default_on_a_frame_without_collectives_says_so(ddp):
    def default(df, *rest):
        return find_stragglers_with_late_start_comm_kernels(df[df["stream"] < 0], *rest)

    with pytest.warns(MissingDataWarning, match="0 communication kernels"):
        assert potential_stragglers(ddp, None, 2, False, default) == []


def test_collectives_whose_arguments_are_not_recorded_are_matched_by_their_order(ddp):
    """HTA's frame holds -1 for a number that an event lacks, which is no number that all events share: where
    one rank lacks a step, the others are compared by the rest.
    """

    def default(df, *rest):
        cut = df[(df["rank"] != 3) | (df["iteration"] != 12)]
        absent = {"seq": -1, "comms_id": -1, "in_msg_nelems": -1}
        return find_stragglers_with_late_start_comm_kernels(cut.assign(**absent), *rest)

    assert potential_stragglers(ddp, None, 1, False, default) == [2]


def test_steps_of_every_rank(ddp):
    frame = extract_iteration_info(ddp)
    assert list(frame) == ["rank", "iter", "ts", "dur", "end"]
    assert frame["iter"].tolist() == [10, 11, 12] * 4
    assert frame["ts"].iloc[0] == 66.91
    assert (frame["ts"] + frame["dur"] - frame["end"]).abs().max() < 1e-6
    assert StragglerAnalysis.get_profiler_steps(ddp) == [10, 11, 12]


def test_pictures_have_the_titles_of_hta(ddp, monkeypatch):
    shown: list[go.Figure] = []
    monkeypatch.setattr(straggler_analysis, "show", shown.extend)
    potential_stragglers(ddp, visualize=True)
    assert [figure.layout.title.text for figure in shown] == [
        "Timeline of Communication Kernels Longer Than 1.00% of Iteration Time\n",
        "Timeline of Candidate Kernels (Iterations=[10, 11, 12])",
        "Potential Stragglers",
    ]
    bars = shown[2]
    assert bars.layout.width == 900
    assert bars.layout.yaxis.title.text == "normalized_start_time"
    assert {bar.marker.color for bar in bars.data} == {"red", "blue"}
    heights = [height for bar in bars.data for height in bar.y]  # of a mean iteration
    assert 0 < max(heights) < 1
    again: list[go.Figure] = []
    monkeypatch.setattr(straggler, "show", again.extend)

    def default(df, table, count, visualize):
        return find_stragglers_with_late_start_comm_kernels(df, table, count, visualize)

    potential_stragglers(ddp, None, 2, True, default)
    assert len(again) == 3


def test_pictures_of_any_rank_numbers(tmp_path):
    ranks = [RankFile(rank).step(3, 0, 90 * MS).kernel((10 + rank) * MS, 30 * MS) for rank in (5, 12)]
    trace = job(tmp_path / "job", *ranks)
    figures = straggler_figures(collectives(trace), stragglers(trace), 1)
    assert {x for bar in figures[2].data for x in bar.x} == {"5", "12"}


def test_the_order_of_rows_does_not_matter(ddp):
    def shuffled(df, *rest):
        return find_stragglers_with_late_start_comm_kernels(df.sample(frac=1, random_state=3), *rest)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert potential_stragglers(ddp, None, 4, False, shuffled) == potential_stragglers(ddp, None, 4)


def test_without_steps_the_error_says_what_to_record(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 10, "dur": 5}
    (tmp_path / "rank-0.json").write_text(
        json.dumps({"distributedInfo": {"rank": 0}, "traceEvents": [event]})
    )
    with pytest.raises(NoSuchStepError, match=r"prof\.step\(\)") as raised:
        TraceAnalysis(trace_dir=str(tmp_path)).get_potential_stragglers()
    assert isinstance(raised.value, HtaWidgetsError) and isinstance(raised.value, ValueError)
