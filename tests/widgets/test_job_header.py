"""What stands at the head of an explorer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from hta_widgets.widgets.job_header import _iterations


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (["recorded", "recorded"], "2"),
        (["recorded", "guessed"], "2 (guessed)"),  # of one rank
        (["guessed", "guessed"], "2 (guessed)"),
    ],
)
def test_iterations_are_guessed_if_those_of_a_rank_are(known: list[str], said: str) -> None:
    frame = pd.DataFrame({"iteration": [1, 2], "known": known, "source": "step", "clock": "host"})
    trace = cast("Any", SimpleNamespace(iterations=frame, iteration_clock="auto"))
    assert said in _iterations(trace).values()
