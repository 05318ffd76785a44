"""The sentence of the overview, by what its rows say."""

from __future__ import annotations

import pandas as pd
import pytest

from hta_widgets.analysis.findings.headline import sentence
from hta_widgets.analysis.findings.sections import SAVES, UNKNOWN


def row(title: str, section: str, share_pct: float, saving_pct: float = 0.0) -> dict[str, object]:
    return {
        "title": title, "section": section, "share_pct": share_pct, "saving_pct": saving_pct, "topic": title,
        "severity": "warning", "role": "", "part_of": "", "headline": "", "text": "", "saving": "",
        "method": "replay", "cost_on_rank_pct": share_pct, "saving_rank": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("share_pct", "said"),
    [
        (30.0, ". B costs 30.0 %, how much of it can be saved is unknown. 1 more cause stands out."),
        (20.0, ". 2 more causes stand out."),
        (10.0, ". 2 more causes stand out."),
    ],
)
def test_only_a_larger_cost_whose_saving_is_unknown_is_told_of(share_pct: float, said: str) -> None:
    rows = [row("A", SAVES, 20.0, 15.0), row("B", UNKNOWN, share_pct), row("C", SAVES, 12.0, 12.0)]
    begin = "A costs 20.0 % of the time. Without it, 15.0 % is saved, more than by any other change"
    assert sentence(pd.DataFrame(rows)) == begin + said
