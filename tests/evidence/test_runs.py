"""Which commands are offered to see a finding, to try its change, and to look at its longest event."""

from itertools import product
from pathlib import Path

import pytest

from hta_widgets.analysis.evidence.document import evidence
from hta_widgets.analysis.evidence.runs import Options, runs_of
from tests.verdicts.planted.host_program import MS, Program

EVENT = {"ref": "0:7"}


@pytest.mark.parametrize(("edits", "answers", "savings", "events"), [*product((False, True), repeat=4)])
def test_only_what_can_answer_is_offered(edits: bool, answers: bool, savings: bool, events: bool) -> None:
    row = {"kind": "idle", "topic": "loader", "edits": "[edits.host(0.5)]" if edits else ""}
    offered = str(runs_of(row, [EVENT] if events else [], Options(), answers, savings))
    assert ("the rows behind it" in offered) == answers
    assert ("with the change, simulated" in offered) == (edits and savings)
    assert ("the longest event" in offered) == events
    assert ("what is doubtful" in offered) == (not (answers or (edits and savings) or events))


def test_a_loss_is_seen_by_the_analysis_that_it_comes_from(tmp_path: Path) -> None:
    program = Program()
    for number in range(8):
        with program.step(number):
            program.launch(2 * MS)
            program.synchronise()
            program.silence(5 * MS)
    first = evidence(program.open(tmp_path))["findings"][0]
    assert first["id"] == "unmarked_host"
    assert first["runs"][0]["argv"][:3] == ["hta-widgets", "analyze", "idle_breakdown"]
