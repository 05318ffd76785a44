"""The selector of ranks: one small bar per rank that shows where its time goes.

What takes longer than the bars, who waits and which ranks belong together, is asked for by the view once it
is needed.
"""

from __future__ import annotations

from typing import Any, ClassVar

import pandas as pd
import traitlets as t

from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.analysis.wholes import shown_scope
from hta_widgets.charts.rank_outliers import outliers
from hta_widgets.charts.spec import Stack
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_analysis
from hta_widgets.widgets.computed import Computed
from hta_widgets.widgets.rank_groups import rank_groups
from hta_widgets.widgets.rank_labels import rank_options
from hta_widgets.widgets.rpc import rpc_method
from hta_widgets.widgets.selection import Integers, Selection, Window
from hta_widgets.widgets.table_codec import Table, encode

_KIND = "temporal_breakdown"


class RankSelector(Computed):
    """All ranks of a job, each with the split of its time; click, Shift-click, Ctrl-click or use the arrows.

    The bars follow the selected iterations and window but not the selected ranks: all ranks stay selectable.
    Ranks whose time is split unlike that of most are marked. More than a dozen ranks can be searched, sorted
    and grouped, and those that are marked come first.

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        selection: the `Selection` to share with other parts.
    """

    _view = t.Unicode("ranks").tag(sync=True)
    _depends: ClassVar = ("iterations", "window", "streams")
    _ignores = ("ranks",)

    ranks = Integers(help="selected ranks; () means all").tag(sync=True)
    iterations = Integers(help="iterations the bars are about; () means all")
    window = Window(help="(start, end) in ns the bars are about; None means all time")
    streams = Integers(help="streams the bars are about; () means all")

    options: t.List[Any] = t.List(
        help="the ranks there are: [{rank, label, place}], as `rank_options` has them"
    ).tag(sync=True)
    series: t.List[Any] = t.List(help="the parts of a bar: [{column, label, time_class}]").tag(sync=True)
    whole = t.Unicode(help="the column that the parts of a bar add up to").tag(sync=True)
    table = Table(help="the bars").tag(sync=True)
    outliers: t.List[Any] = t.List(help="ranks whose time is split unlike that of most: [{rank, why}]").tag(
        sync=True
    )

    def __init__(self, trace: Any, *, selection: Selection | dict[str, Any] | None = None) -> None:
        chart = ANALYSES[_KIND].chart
        assert isinstance(chart, Stack)
        super().__init__(
            trace, selection=selection, series=[vars(part) for part in chart.series], whole=chart.whole
        )
        self.options = rank_options(self.trace)

    def _compute(self, scope: Scope) -> pd.DataFrame:
        # which steps are judged takes the columns of all ranks; where those do not fit, kept shares answer
        if not self.trace.exceeds_memory:
            scope = shown_scope(self.trace, _KIND, scope)
        return cached_analysis(self.trace, _KIND, scope)

    def _show(self, frame: pd.DataFrame) -> None:
        parts = {part["column"]: part["label"] for part in self.series}
        self.table = encode(frame[["rank", self.whole, *parts]])
        self.outliers = outliers(frame, self.whole, parts)

    def _fail(self, error: BaseException) -> None:
        super()._fail(error)
        if isinstance(error, MissingDataError):  # ranks can be chosen without bars; the panels explain
            with self.hold_sync():
                self.table, self.outliers = None, []
                self.message = "No device events: the ranks have no bars."

    @rpc_method("groups")
    def _on_groups(self, _params: dict[str, Any]) -> dict[str, Any]:
        return {"groups": rank_groups(self.trace)}

    @rpc_method("waits")
    def _on_waits(self, _params: dict[str, Any]) -> dict[str, Any]:
        """Of each rank how long it waits, and what waiting it causes, as `rank_waits` has it; ns."""
        from hta_widgets.analysis.communication.culprits import NOBODY

        try:
            pairs = cached_analysis(self.trace, "rank_waits", self._question())
        except MissingDataError as missing:
            return {"waits": None, "missing": str(missing)}
        known = pairs[pairs["awaited"] != NOBODY]
        sums = [pairs.groupby("rank")["wait_ns"].sum(), known.groupby("awaited")["wait_ns"].sum()]
        ranks = self.trace.ranks
        waiting, caused = ([int(each.get(rank, 0)) for rank in ranks] for each in sums)
        return {"waits": {"waiting": waiting, "caused": caused}, "missing": ""}
