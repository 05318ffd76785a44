"""Thousands of ranks of which only what is kept is there: opening, merging and what an explorer shows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ipywidgets.widgets.widget import _remove_buffers

from hta_widgets import RankSelector, Scope, Trace, examples
from hta_widgets.analysis import stragglers, temporal_breakdown
from hta_widgets.charts.rank_bands import in_bands
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.rank_groups import rank_groups
from tests.calls import calls
from tests.job.kept_shares import SLOW, kind_of, simulate
from tests.support import EVERY_CASE

pytestmark = pytest.mark.slow

FEW, MANY = (256, 2048) if EVERY_CASE else (128, 512)
# As in `test_growth`
EXPONENT = 1.1
# of one rank in the selector's message: its number, label and six numbers
BYTES = 150


def bytes_of(widget: RankSelector) -> int:
    """What the browser is sent of it."""
    state, _, buffers = _remove_buffers(widget.get_state())
    return len(json.dumps(state, default=str)) + sum(memoryview(buffer).nbytes for buffer in buffers)


def asked(opened: Callable[[], Trace]) -> tuple[dict[str, int], Trace, RankSelector]:
    """The calls of what an explorer of the job asks first, none of which reads a column."""
    work: dict[str, int] = {}
    work["open"], trace = calls(opened)
    work["summary"], _ = calls(lambda: trace.extent_ns and trace.job_size and trace.absent and trace.key)
    work["all shares"], whole = calls(lambda: temporal_breakdown(trace))
    odd = Scope(ranks=tuple(trace.ranks[1::2]))
    work["half of them"], half = calls(lambda: temporal_breakdown(trace, odd))
    pd.testing.assert_frame_equal(half, whole[whole["rank"] % 2 == 1].reset_index(drop=True))
    work["iterations"], steps = calls(lambda: trace.iterations)
    work["rank picker"], selector = calls(lambda: RankSelector(trace))
    settle([selector])
    cells = pd.DataFrame(
        {"x": steps["iteration"], "y": steps["rank"], "value": steps["end_ns"] - steps["start_ns"]}
    )
    work["heat map"], (rows, bands) = calls(lambda: in_bands(cells))
    assert rows["y"].nunique() <= 48 and sum(len(json.loads(band)) for band in bands) >= len(trace.ranks) - 16
    assert trace.memory.dropped == 0 and not any(trace.rank(rank).events.here for rank in trace.ranks)
    return work, trace, selector


def test_many_ranks_are_merged_from_their_shares(tmp_path: Path) -> None:
    found = {}
    for ranks in (FEW, MANY):
        (tmp_path / str(ranks)).mkdir()
        with simulate(tmp_path / str(ranks), ranks) as opened:
            found[ranks], trace, selector = asked(opened)
            assert trace.ranks == list(range(ranks)) and trace.job_size == ranks and not trace.without
            assert [one["rank"] for one in selector.outliers] == [SLOW]
            assert bytes_of(selector) < BYTES * ranks
            whole = temporal_breakdown(trace)
    grown = {
        what: round(math.log(many / found[FEW][what]) / math.log(MANY / FEW), 2)
        for what, many in found[MANY].items()
    }
    assert not {what: exponent for what, exponent in grown.items() if exponent > EXPONENT}

    # the shares are those of ranks that were asked: columns say the same
    small = tmp_path / "small"
    small.mkdir()
    with simulate(small, 8) as opened:
        trace = opened()
        expected = [temporal_breakdown(trace.keep(lambda rank: np.ones(rank.n, bool)), Scope(ranks=(rank,)))
                    for rank in trace.ranks]  # fmt: skip
        of_kind = [whole[whole["rank"] == (rank if rank == SLOW else rank + 8)] for rank in trace.ranks]
        for rank, (own, kept) in enumerate(zip(expected, of_kind, strict=True)):
            assert kind_of(rank) == kind_of(int(kept["rank"].iloc[0]))
            same = [name for name in own if name != "rank"]
            pd.testing.assert_frame_equal(own[same], kept[same].reset_index(drop=True))
        late = stragglers(trace)
        assert late.loc[late["caused_wait_ns"].idxmax(), "rank"] == SLOW
        assert rank_groups(trace) == rank_groups(opened())


def test_ranks_of_a_scope_are_those_of_the_trace_once_and_ascending() -> None:
    trace = examples.load("ddp_4ranks")
    assert trace.ranks_of(None) == trace.ranks_of(Scope()) == [0, 1, 2, 3]
    assert trace.ranks_of(Scope(ranks=(3, 9, 1))) == [1, 3]
