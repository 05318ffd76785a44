"""`--scheduler` and `TraceExplorer(client=)`: a cluster reads and answers, and the answers are the same."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from hta_widgets import TraceExplorer, examples
from hta_widgets.cli import main, opening
from hta_widgets.trace.far import FarTrace

distributed = pytest.importorskip("distributed", reason="dask.distributed is an optional dependency")
pytestmark = pytest.mark.slow

JOB = str(examples.path("ddp_4ranks"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as found:
        yield found
        opening._connected.cache_clear()


@pytest.mark.parametrize(
    "command",
    [
        ["summary"],
        ["health"],
        ["analyze", "stragglers", "--format", "csv"],
        ["analyze", "idle_breakdown", "--format", "csv", "--ranks", "1-2", "--window", "1ms:30ms"],
    ],
)
def test_a_cluster_answers_as_this_process_does(
    cluster: Any, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*command, JOB])
    here = capsys.readouterr().out
    assert here
    assert main([*command, JOB, "--scheduler", cluster.scheduler_address]) == code
    assert capsys.readouterr().out == here


@pytest.mark.parametrize(
    ("address", "code", "words"),
    [
        ("tcp://127.0.0.1:1", 3, "no scheduler answers at tcp://127.0.0.1:1. Check the address"),
        ("nothing://here", 2, "nothing://here is no address of a scheduler"),
    ],
)
def test_a_scheduler_that_is_not_there_is_told(
    address: str, code: int, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_CONNECTING_SECONDS", 1)
    assert main(["health", JOB, "--scheduler", address]) == code
    assert words in capsys.readouterr().err


def test_an_explorer_on_a_cluster(cluster: Any) -> None:
    with distributed.Client(cluster) as client:
        here = TraceExplorer(JOB, panels=["temporal_breakdown"])
        explorer = TraceExplorer(JOB, panels=["temporal_breakdown"], client=client)
        assert isinstance(explorer.trace, FarTrace)
        for kind in ("overview", "temporal_breakdown", "stragglers"):
            pd.testing.assert_frame_equal(explorer.frame(kind), here.frame(kind))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (
            explorer.header != here.wait().header or explorer.lacking != here.lacking
        ):
            time.sleep(0.1)
        assert explorer.header == here.header
        assert explorer.health == here.health
        assert explorer.lacking == here.lacking
        explorer.selection.ranks = (2,)
        pd.testing.assert_frame_equal(explorer.events, here.trace.events(explorer.selection.scope))
        explorer.close()
        here.close()
