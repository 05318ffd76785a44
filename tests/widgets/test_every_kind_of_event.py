"""Whatever is clicked in a recording is shown: events of every kind, gaps of every stream."""

import json
import re
from collections.abc import Iterator

import numpy as np
import pytest

from hta_widgets import Trace
from hta_widgets.analysis import inspect_event, inspect_gap
from hta_widgets.errors import HtaWidgetsError
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.inspector_content import event_content, gap_content
from hta_widgets.widgets.timeline_scrubber import TimelineScrubber
from tests.claims.recordings import SHARED as RECORDED
from tests.claims.recordings import UNLIKE, path_of
from tests.support import EVERY_CASE, SHARED_TRACES

pytestmark = pytest.mark.slow

SHARED = SHARED_TRACES.parent


def recorded() -> list[str]:
    """All files of recordings; by default the first of each recording that is unlike the others."""
    chosen = RECORDED if EVERY_CASE else UNLIKE
    names = [name for name in chosen if name.startswith(("traces/", "recordings/"))]
    found = [sorted(path.rglob("*.json*")) or [path] for path in map(path_of, names) if path.exists()]
    files = [file for of in found for file in (of if EVERY_CASE else of[:1])]
    return [str(file.relative_to(SHARED)) for file in files]


FILES = recorded()
KINDS, GAPS = (150, 8) if EVERY_CASE else (50, 4)


def kinds(rank_trace: RankTrace) -> dict[tuple[object, ...], list[int]]:
    """Rows by category, class, device or host, launched or not, and the first letters of the name."""
    names = [re.sub(r"[^A-Za-z_]", "", name)[:12] for name in rank_trace.names]
    found: dict[tuple[object, ...], list[int]] = {}
    columns = (
        rank_trace.category, rank_trace.event_class, rank_trace.is_device, rank_trace.launch >= 0,
        rank_trace.name,
    )  # fmt: skip
    for row, (*kind, name) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        found.setdefault((*kind, names[name]), []).append(row)
    return found


def gaps(rank_trace: RankTrace, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """(stream, moment) at the beginning and in the middle of some gaps of every stream, and in work."""
    device = np.flatnonzero(rank_trace.is_device)
    for stream in np.unique(rank_trace.stream[device]).tolist():
        rows = device[rank_trace.stream[device] == stream]
        rows = rows[np.argsort(rank_trace.start[rows], kind="stable")]
        start, end = rank_trace.start[rows], np.maximum.accumulate(rank_trace.end[rows])
        yield stream, int(start[0])
        between = np.flatnonzero(start[1:] > end[:-1])
        for at in rng.permutation(between)[:GAPS].tolist():
            yield stream, int(end[at])
            yield stream, int(end[at] + start[at + 1]) // 2


@pytest.mark.parametrize("name", FILES or ["none"])
def test_every_kind_of_event_and_gap_is_shown(name: str) -> None:
    if not FILES:
        pytest.skip("no recordings beside the folder of HTA_WIDGETS_TRACES")
    try:
        trace = Trace.open(SHARED / name)
    except HtaWidgetsError:
        pytest.skip("no trace of events")
    rng = np.random.default_rng(0)
    seen = 0
    for rank in trace.ranks:
        rank_trace = trace.rank(rank)
        found = list(kinds(rank_trace).values())
        for at in rng.permutation(len(found))[:KINDS].tolist():
            for row in {found[at][0], found[at][-1]}:
                facts = inspect_event(trace, rank, int(rank_trace.event_id[row]), replay=False)
                assert json.dumps(facts.to_dict()) and event_content(facts)["kind"] == "event"
                if rank_trace.is_device[row] and rank_trace.launch[row] >= 0:
                    assert facts.launch is not None
                    assert facts.launch.latency_ns == facts.launch.queued_ns + facts.launch.overhead_ns
                seen += 1
        for stream, moment in gaps(rank_trace, rng):
            try:
                gap = inspect_gap(trace, rank, stream, moment)
            except HtaWidgetsError:  # a stream of waits alone
                continue
            if gap is not None:
                assert gap.start_ns <= moment < gap.end_ns
                assert sum(gap.causes_ns.values()) == gap.end_ns - gap.start_ns
                assert json.dumps(gap.to_dict()) and gap_content(gap)["kind"] == "gap"
            seen += 1
    assert seen or not sum(len(trace.rank(rank).start) for rank in trace.ranks)


@pytest.mark.parametrize("name", FILES[::6] or ["none"])
def test_every_kind_of_slice_is_told_under_the_pointer(name: str) -> None:
    """What the timeline asks when the pointer rests on a slice, and when it is clicked."""
    if not FILES:
        pytest.skip("no recordings beside the folder of HTA_WIDGETS_TRACES")
    try:
        trace = Trace.open(SHARED / name)
    except HtaWidgetsError:
        pytest.skip("no trace of events")
    timeline = TimelineScrubber(trace)
    try:
        settle([timeline])
        lanes = timeline._require().lanes
        for position in {0, lanes.n // 2, lanes.n - 1} | set(range(0, lanes.n, max(1, lanes.n // 100))):
            if position < lanes.n:
                result, _ = timeline.ask("slice", {"id": position})
                assert json.dumps(result)
    finally:
        timeline.close()
