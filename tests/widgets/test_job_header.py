"""What stands at the head of an explorer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from hta_widgets import Trace, examples
from hta_widgets.widgets.job_header import _iterations, notices


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


def test_a_notice_begins_as_a_sentence_but_a_name_stays(tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to(examples.path("single_gpu_dataloader_stall"), target_is_directory=True)
    (tmp_path / "execution_details.json").write_text('{"a": 1}')
    said = [notice["text"] for notice in notices(Trace.open(tmp_path, cache=False))]
    assert said[0] == "No trace in the folder itself: those in its subfolders were read"
    assert said[1].startswith("execution_details.json is left out: ")
