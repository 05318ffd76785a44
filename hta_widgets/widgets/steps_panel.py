"""The panel of steps: every step of every rank beside the median step, and any two of them compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd
import traitlets as t

from hta_widgets.analysis.device_time.step_strips import step_strips
from hta_widgets.analysis.inspect.step_difference import difference_of
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.breakdown_panel import BreakdownPanel
from hta_widgets.widgets.panel import PanelState
from hta_widgets.widgets.selection import Focus
from hta_widgets.widgets.step_content import difference_content
from hta_widgets.widgets.table_codec import Table, encode

MOST_STEPS: Final = 256
"""Rows that are drawn; of more, those that differ most from the median."""

_BINS: Final = 480
_SENT: Final = [
    "rank", "iteration", "dur_ns", "change_ns", "median_rank", "median_iteration", "outlier", "partial",
    "start_up", "open", "compute_ns", "exposed_communication_ns", "exposed_memory_ns",
]  # fmt: skip


class Steps(t.TraitType[tuple[tuple[int, int], ...], Any]):
    """Up to two steps, each a pair (rank, iteration), in the order in which they were chosen."""

    info_text = "up to two pairs (rank, iteration)"
    default_value = ()

    def validate(self, obj: t.HasTraits, value: Any) -> tuple[tuple[int, int], ...]:
        one = Focus()
        try:
            steps = [one.validate(obj, step) for step in value]
        except TypeError:
            self.error(obj, value)
        if len(steps) > 2 or None in steps or len(set(steps)) < len(steps):
            self.error(obj, value)
        return tuple(step for step in steps if step is not None)


@dataclass(frozen=True)
class _Shown:
    answer: PanelState
    steps: pd.DataFrame
    strips: dict[str, Any]
    difference: dict[str, Any]


class StepsPanel(BreakdownPanel):
    """`step_parts` of the selection: steps aligned at their starts, and two of them compared.

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        kind: "step_parts".
        further: as for `BreakdownPanel`.
    """

    _depends: ClassVar[tuple[str, ...]] = (*BreakdownPanel._depends, "pair")
    _from_browser: ClassVar[Sequence[str]] = ("pair",)

    pair = Steps(
        help="(rank, iteration) of the steps compared; one alone, or the longest, with its median step"
    ).tag(sync=True)
    steps = Table(help="the steps that are drawn, a row each").tag(sync=True)
    strips: t.Dict[str, Any] = t.Dict(
        help="{bins, span_ns, data}: what runs in each bin of each step; data is uint8[steps, 3, bins]"
    ).tag(sync=True)
    difference: t.Dict[str, Any] = t.Dict(help="two steps compared, as `difference_content` makes it").tag(
        sync=True
    )

    def __init__(self, trace: Any, kind: str = "step_parts", **further: Any) -> None:
        self._drawn: tuple[Any, dict[str, Any]] = (None, {})
        super().__init__(trace, kind, **further)

    def _compute(self, question: Scope) -> Any:
        answer = super()._compute(question)
        frame, pair = answer.table.sort_values(["rank", "iteration"], ignore_index=True), self.pair
        drawn = _most_different(frame)
        key = (self.trace, question, len(frame))
        if self._drawn[0] != key:
            self._drawn = key, self._strips(drawn, question)
        difference = self._difference(frame, pair, question)
        return _Shown(answer, drawn[_SENT], self._drawn[1], difference)

    def _strips(self, drawn: pd.DataFrame, scope: Scope) -> dict[str, Any]:
        return {
            "bins": _BINS,
            "span_ns": int(drawn["dur_ns"].max()) if len(drawn) else 0,
            "data": step_strips(self.trace, drawn, scope, _BINS).tobytes(),
        }

    def _difference(
        self, frame: pd.DataFrame, pair: Sequence[tuple[int, int]], scope: Scope
    ) -> dict[str, Any]:
        """The chosen steps compared; one, or the longest, with its median step; {} where there is none."""
        known = set(zip(frame["rank"].tolist(), frame["iteration"].tolist(), strict=True))
        steps = [step for step in pair if step in known]
        if len(steps) < 2:
            steps = _with_median(frame, *steps)
        if len(steps) < 2:
            return {}
        try:
            found = difference_of(self.trace, steps[0], steps[1], Scope(streams=scope.streams))
        except MissingDataError:
            return {}
        return {**difference_content(found), "pair": [list(step) for step in steps]}

    def _show(self, shown: Any) -> None:
        self.steps, self.strips, self.difference = encode(shown.steps), shown.strips, shown.difference
        super()._show(shown.answer)
        self.left_out = len(shown.answer.table) - len(shown.steps)


def _most_different(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that are drawn, in their order, with the median steps among them."""
    if len(frame) <= MOST_STEPS:
        return frame
    steps = pd.MultiIndex.from_frame(frame[["rank", "iteration"]])
    medians = pd.MultiIndex.from_frame(frame[["median_rank", "median_iteration"]].dropna().drop_duplicates())
    size = frame["change_ns"].abs().astype("Float64").fillna(0).to_numpy(np.float64)
    size[steps.isin(medians)] = np.inf
    return frame.iloc[np.sort(np.argsort(-size, kind="stable")[:MOST_STEPS])].reset_index(drop=True)


def _with_median(frame: pd.DataFrame, *chosen: tuple[int, int]) -> list[tuple[int, int]]:
    """A step, by default the longest, after its median step; [] where that is unknown, or the same."""
    compared = frame[frame["change_ns"].notna()]
    if chosen:
        rank, iteration = chosen[0]
        compared = compared[(compared["rank"] == rank) & (compared["iteration"] == iteration)]
    else:
        compared = compared[~(compared["partial"] | compared["start_up"] | compared["open"])]
    if compared.empty:
        return list(chosen)
    row = compared.iloc[int(compared["change_ns"].to_numpy(np.int64).argmax())]
    median = int(row["median_rank"]), int(row["median_iteration"])
    step = int(row["rank"]), int(row["iteration"])
    return [median, step] if median != step else list(chosen)
