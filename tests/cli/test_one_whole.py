"""On recordings of every kind a share has one value: in findings, `summary`, `analyze` and the panels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hta_widgets import Scope, Trace, analysis
from hta_widgets.analysis.findings import judged_scope
from hta_widgets.analysis.wholes import coverage_of, shown_scope, whole_of
from hta_widgets.cli.opening import kept_open
from hta_widgets.errors import HtaWidgetsError, MissingDataError
from tests.claims.recordings import EXAMPLES, ONE_OF_EACH, SHARED, path_of
from tests.cli.conftest import Run
from tests.cli.test_same_numbers import plain
from tests.support import EVERY_CASE

OF_WINDOWS = ("temporal_breakdown", "comm_comp_overlap", "idle_breakdown")
NAMES = [*EXAMPLES, *SHARED] if EVERY_CASE else ONE_OF_EACH


@pytest.fixture(autouse=True)
def opened_once() -> Iterator[None]:
    """All commands about a recording look at the same one; the panels at another."""
    with kept_open(1):
        yield


@pytest.mark.parametrize("name", NAMES)
def test_a_share_has_one_value(name: str, run: Run) -> None:
    path = path_of(name)
    try:
        trace = Trace.open(path)
    except HtaWidgetsError as error:
        pytest.skip(f"no trace: {error}")
    document = run("summary", path, "--json").json
    answers = document["answers"]
    findings = run("analyze", "overview", path, "--format", "json", "--budget", "all").json
    assert findings["rows"] == answers["overview"]["rows"]
    assert document["judged"] == coverage_of(trace, Scope())
    for kind in OF_WINDOWS:
        scope = shown_scope(trace, kind, Scope())  # of a panel
        alone = run("analyze", kind, path, "--format", "json", "--budget", "all")
        if "missing" in answers[kind]:
            continue  # withheld, or nobody can answer
        rows = answers[kind]["rows"]
        panel = analysis.ANALYSES[kind].function(trace, scope)
        assert [list(row.values()) for row in rows] == plain(panel)
        assert alone.json["rows"] == rows
        assert alone.json["of"] == whole_of(trace, kind, scope) == document["of"]
    kernels = answers["kernel_breakdown"]
    if "missing" not in kernels:
        scope = shown_scope(trace, "kernel_breakdown", Scope())
        panel = analysis.kernel_breakdown(trace, scope, by="job", top=10)
        assert [list(row.values()) for row in kernels["rows"]] == plain(panel)[: len(kernels["rows"])]
    waiting = answers["stragglers"]
    if "missing" not in waiting:
        panel = analysis.stragglers(trace, shown_scope(trace, "stragglers", Scope()))
        assert [list(row.values()) for row in waiting["rows"]] == plain(panel)
    assert not contradictions(trace, findings["rows"])


def contradictions(trace: Trace, rows: list[dict[str, Any]]) -> list[str]:
    """Findings whose share is not that of the breakdowns of the same scope."""
    try:
        split = analysis.temporal_breakdown(trace, judged_scope(trace))
    except MissingDataError:
        return []
    whole = split["window_ns"].sum()
    share = {
        part: 100.0 * split[f"{part}_ns"].sum() / whole if whole else 0.0
        for part in ("compute", "exposed_communication", "exposed_memory", "idle")
    }
    of_part = {"compute_bound": "compute", "exposed_communication": "exposed_communication"}
    most_idle = split["idle_pct"].max()  # some findings are about one rank
    found = []
    idle = {"idle_host", "data_stall", "sync_calls", "launch_bound", "device_wait", "tiny_kernels"}
    for row in rows:
        part = of_part.get(row["topic"])
        if part == "compute" and abs(row["share_pct"] - share[part]) > 0.01:
            found.append(f"{row['topic']} {row['share_pct']} is {share[part]}")
        if part == "exposed_communication" and row["share_pct"] > share[part] + 0.01:
            found.append(f"{row['topic']} {row['share_pct']} of {share[part]}")
        if row["topic"] in idle and row["share_pct"] > most_idle + 0.01:
            found.append(f"{row['topic']} {row['share_pct']} of {most_idle} idle")
    return found
