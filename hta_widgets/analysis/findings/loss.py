"""A loss of several ranks: those that it is about, and how much it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.findings.finding import ALONE, Evidence, Finding
from hta_widgets.arrays import Int64

if TYPE_CHECKING:
    from hta_widgets.analysis.core.claim import Said
    from hta_widgets.analysis.core.intervals import Intervals
    from hta_widgets.analysis.findings.inputs import Inputs

_NEARLY_ALL = 0.9


@dataclass(frozen=True)
class Loss:
    """What is lost on the rank that stands out, or else on all."""

    rows: pd.DataFrame  # of these ranks, with all columns of the frame that was asked about
    ns: Int64  # how much each of them loses
    among: int  # how many ranks were asked about

    @property
    def ranks(self) -> list[int]:
        return self.rows["rank"].tolist()

    @property
    def worst(self) -> int:
        """The rank that loses most."""
        return int(self.rows["rank"].iloc[int(self.ns.argmax())])

    @property
    def alone(self) -> int | None:
        """The rank that stands out, if one does."""
        return self.worst if len(self.rows) < self.among else None

    @property
    def mostly_on(self) -> list[int]:
        """The ranks that lose nearly all of it, if that is some of them and no single one; else none."""
        large = 2 * self.ns >= self.ns.max()
        if not 1 < int(large.sum()) < len(large) or self.ns[large].sum() < _NEARLY_ALL * self.ns.sum():
            return []
        return self.rows["rank"][large].tolist()

    @property
    def cost_ns(self) -> int:
        """The mean of these ranks."""
        return int(self.ns.sum()) // len(self.ns)

    @cached_property
    def whole_ns(self) -> int:
        """The judged time of these ranks together."""
        return int(self.rows["window_ns"].sum())

    @property
    def share_pct(self) -> float:
        return self.share_of(int(self.ns.sum()))

    def share_of(self, ns: int) -> float:
        """What a time of these ranks together is of theirs, in %."""
        return 100.0 * ns / self.whole_ns

    @property
    def shares(self) -> dict[int, float]:
        """What is lost on each of several ranks, in % of its time."""
        if len(self.rows) < 2:
            return {}
        shares = 100.0 * self.ns.astype(np.float64) / self.rows["window_ns"].to_numpy(np.float64)
        return dict(zip(self.ranks, shares.tolist(), strict=True))

    def finding(self, text: Said, suggestion: str, kind: str, evidence: Evidence, **known: Any) -> Finding:
        """That this is lost, and what to try."""
        return Finding(self.cost_ns, self.share_pct, text, suggestion, kind, evidence, **known)


def lost_on(frame: pd.DataFrame, lost: str | Mapping[int, int]) -> Loss | None:
    """What ranks lose; None where that is nothing.

    Args:
        frame: a row per rank, with its judged time: columns rank and window_ns.
        lost: the column with what is lost, or rank -> that, ns.
    """
    if frame.empty:
        return None
    column = frame[lost] if isinstance(lost, str) else [lost[rank] for rank in frame["rank"].tolist()]
    ns: Int64 = np.array(column, np.int64)
    if not ns.any():
        return None
    share = ns / frame["window_ns"].to_numpy(np.int64)
    worst = int(share.argmax())
    most = float(share[worst])
    if len(frame) > 1 and most >= ALONE * (float(share.sum()) - most) / (len(frame) - 1):
        return Loss(frame.iloc[[worst]], ns[[worst]], len(frame))
    return Loss(frame, ns, len(frame))


class LossOfRanks(NamedTuple):
    """What ranks lose together."""

    ranks: list[int]
    share_pct: float  # of their judged time
    cost_ns: int  # on each
    worst: int  # the first of those that lose most


def lost_on_ranks(inputs: Inputs, lost: Mapping[int, Intervals]) -> LossOfRanks:
    """What these ranks lose."""
    ranks, whole = sorted(lost), sum(time.length for time in lost.values())
    share = 100.0 * whole / sum(inputs.judged_ns[rank] for rank in ranks)
    worst = max(ranks, key=lambda rank: (lost[rank].length, -rank))
    return LossOfRanks(ranks, share, whole // len(ranks), worst)
