"""Nothing that is said of a recording may contradict what an expert concludes from it, or leave it out."""

from __future__ import annotations

import pytest

from tests.support import shared_input
from tests.verdicts.experts import CONCLUSIONS, held_against

# Graphs' captures belong to recordings of ../shared/traces: tests/analysis/serving/test_roles.py.
ELSEWHERE = {"captures"}


@pytest.mark.parametrize("name", CONCLUSIONS)
def test_what_an_expert_concludes_is_said(name: str) -> None:
    found = held_against(name)
    assert (found.wrong, found.silent, found.partly) == ([], [], [])


def test_every_recording_was_read() -> None:
    folder = shared_input("recordings")
    assert {each.name for each in folder.iterdir() if each.is_dir()} == {*CONCLUSIONS, *ELSEWHERE}
