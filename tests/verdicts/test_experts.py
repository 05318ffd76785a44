"""Nothing that is said of a recording may contradict what an expert concludes from it, or leave it out."""

from __future__ import annotations

import pytest

from hta_widgets import examples
from tests.support import shared_input
from tests.verdicts.experts import CONCLUSIONS, OF_OUR_OWN, held_against, own_held_against

# Graphs' captures belong to recordings of ../shared/traces: tests/analysis/serving/test_roles.py.
ELSEWHERE = {"captures"}


@pytest.mark.parametrize("name", CONCLUSIONS)
def test_what_an_expert_concludes_is_said(name: str) -> None:
    found = held_against(name)
    assert (found.wrong, found.silent, found.partly) == ([], [], [])


@pytest.mark.parametrize("name", OF_OUR_OWN)
def test_what_was_done_to_a_recording_is_said(name: str) -> None:
    found = own_held_against(name)
    assert (found.wrong, found.silent, found.partly) == ([], [], [])


def test_every_recorded_example_was_read() -> None:
    assert {*examples.names(recorded=True)} <= {*OF_OUR_OWN}


def test_every_recording_was_read() -> None:
    folder = shared_input("recordings")
    assert {each.name for each in folder.iterdir() if each.is_dir()} == {*CONCLUSIONS, *ELSEWHERE}
