"""What travels to a page does not grow with the ranks, but for some bytes of each in the selector."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from hta_widgets import Trace, TraceExplorer
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.part import Part
from tests.job.many_ranks import write_job

pytestmark = pytest.mark.slow

FEW, MANY = 32, 128
LONGEST = 15_000  # bytes of one part, of one change
A_RANK = 25  # bytes in the selector, which draws them all: its number, and times of up to four bytes


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Bytes by part."""
    counted: Counter[str] = Counter()
    send = Part._send

    def counting(part: Part, msg: object, buffers: list[bytes] | None = None) -> None:
        name = getattr(part, "kind", "") or type(part).__name__
        counted[name] += len(json.dumps(msg)) + sum(memoryview(each).nbytes for each in buffers or ())
        send(part, msg, buffers)

    monkeypatch.setattr(Part, "_send", counting)
    return counted


def of_a_window(folder: Path, ranks: int, sent: Counter[str]) -> dict[str, int]:
    trace = Trace.open(write_job(folder / f"{ranks}", ranks, slow=5))
    explorer = TraceExplorer(trace, panels=["temporal_breakdown", "comm_comp_overlap"])
    explorer.wait()
    settle([explorer])
    parts = [part for _, part in explorer.parts if type(part).__name__ != "Story"]
    settle(parts)
    start, end = explorer.trace.extent_ns
    sent.clear()
    explorer.selection.window = (start + (end - start) // 4, end - (end - start) // 4)
    settle(parts)
    of_change = dict(sent)
    explorer.close()
    return of_change


def test_a_change_of_the_window_sends_what_is_drawn(tmp_path: Path, sent: Counter[str]) -> None:
    few, many = (of_a_window(tmp_path, ranks, sent) for ranks in (FEW, MANY))
    assert {"temporal_breakdown", "comm_comp_overlap", "RankSelector"} <= many.keys()
    assert max(many.values()) <= LONGEST
    assert many["RankSelector"] - few["RankSelector"] <= A_RANK * (MANY - FEW)
