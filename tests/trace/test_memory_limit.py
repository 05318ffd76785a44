"""A job larger than memory: the same answers, while few ranks are held."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hta_widgets import Scope, Trace, analysis, examples
from hta_widgets.analysis.communication.collectives import shared_collectives
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings import replayed_job
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.judging import found_with_savings
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError, TraceFormatError
from hta_widgets.trace import kept_of_job, memory, rank_events
from hta_widgets.trace.memory import Memory, bytes_of, default_limit
from hta_widgets.trace.rank_events import RankEvents
from hta_widgets.trace.rank_trace import REMEMBERED, RankTrace
from hta_widgets.trace.reader import cache
from tests.job.many_ranks import write_job
from tests.support import crossed

pytestmark = pytest.mark.slow

RANKS, HELD = 5, 2


@pytest.fixture(scope="module")
def job() -> dict[int, Path]:
    files = sorted(examples.path("ddp_4ranks").iterdir())
    return {rank: files[rank % len(files)] for rank in range(RANKS)}


def limit_of(trace: Trace) -> int:
    """What two ranks take once they are read, a little more than their columns."""
    return HELD * max(trace.rank(rank).events.held_bytes() for rank in trace.ranks)


def in_memory(trace: Trace) -> int:
    return sum(trace.rank(rank).events._table is not None for rank in trace.ranks)


@pytest.fixture(scope="module")
def whole(job: dict[int, Path]) -> Trace:
    """The job in memory."""
    trace = Trace.open(job)
    for rank in trace.ranks:
        assert trace.rank(rank).is_device.any()
    assert in_memory(trace) == RANKS
    return trace


@pytest.fixture(scope="module")
def limit(whole: Trace) -> int:
    return limit_of(whole)


@pytest.fixture
def limited(job: dict[int, Path], limit: int) -> Trace:
    return Trace.open(job, memory_limit=limit)


def answer(trace: Trace, kind: str, scope: Scope | None) -> Any:
    try:
        return ANALYSES[kind].function(trace, scope)
    except MissingDataError as missing:
        return str(missing)


@pytest.mark.parametrize(("kind", "part"), crossed(ANALYSES, ["all", "steps", "a window of some ranks"]))
def test_every_analysis_answers_the_same(whole: Trace, limited: Trace, kind: str, part: str) -> None:
    start, end = whole.extent_ns
    steps = sorted(whole.iterations["iteration"].unique().tolist())
    scope = {
        "all": None,
        "steps": Scope(iterations=tuple(steps[1:3])),
        "a window of some ranks": Scope(
            ranks=(1, 3, 4), window_ns=(start + (end - start) // 3, end - (end - start) // 3)
        ),
    }[part]
    expected, found = answer(whole, kind, scope), answer(limited, kind, scope)
    if isinstance(expected, str):
        assert found == expected
    else:
        if kind == "overview":  # where time is lost is not collected over ranks that do not fit
            expected = expected.assign(places=found["places"])
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
    assert in_memory(limited) <= HELD


# Facts and start-up; what the rules ask of a rank; collectives; work beside waits, in the replay of the job,
# and by launch configuration (twice); how well replays explain a rank; and some more of the one replayed.
MOST_LOADS = 8  # one of them to tell what process groups are for that nothing describes


def test_the_overview_reads_each_rank_a_few_times_and_not_for_each_rule(
    job: dict[int, Path], limited: Trace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limited.answers = tmp_path  # where nothing is kept yet
    loaded: list[RankEvents] = []
    held = RankEvents._held

    def counted(self: RankEvents) -> Any:
        loaded.extend([] if self.here else [self])
        return held(self)

    monkeypatch.setattr(RankEvents, "_held", counted)
    found = analysis.overview(limited)
    loads = Counter(limited.ranks[at] for at in map([*limited._events.values()].index, loaded))
    assert set(loads) == set(limited.ranks) and max(loads.values()) <= MOST_LOADS + 4
    assert sum(loads.values()) <= MOST_LOADS * RANKS
    expected = analysis.overview(Trace.open(job)).assign(places="")
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def kept_beside_ranks(folder: Path) -> int:
    """The bytes that the rules of the overview keep of a job, of which one rank is in memory at a time."""
    Trace.open(folder)
    trace = Trace.open(folder, memory_limit=1)
    trace.answers = None
    inputs = Inputs(trace, Scope())
    assert trace.exceeds_memory and found_with_savings(inputs)
    assert np.shares_memory(
        inputs.collectives["start_ns"].to_numpy(), shared_collectives(trace, Scope())["start_ns"].to_numpy()
    )
    return bytes_of([vars(trace)[REMEMBERED], vars(inputs)])


def test_what_an_overview_keeps_does_not_grow_with_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums and collectives, nothing for each kernel: what a thousand ranks hold whatever the limit."""
    monkeypatch.setenv("HTA_WIDGETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(replayed_job, "MOST_WORK", 0)  # as in a large job, which is not replayed
    few, many = (
        kept_beside_ranks(write_job(tmp_path / str(products), RANKS, 5, layers=10, products=products))
        for products in (9, 17)  # of fewer, other findings are made
    )
    collectives, kernels = 4 * 10, 4 * 10 * 2 * 8  # of a rank; kernels: more of them
    # less than a byte for each; times of collectives are kept where communication is found to be exposed
    assert many - few < RANKS * (kernels + 16 * collectives)
    assert few < 3000 * RANKS * collectives


def test_an_overview_short_of_memory_finds_the_health_that_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTA_WIDGETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_of_job, "_LEAST_SLICES", 1)
    folder = write_job(tmp_path / "job", 3, slow=0)
    expected = Trace.open(folder, cache=False).health
    analysis.overview(Trace.open(folder, memory_limit=1))
    monkeypatch.setattr(cache, "read_table", None)  # which cannot be called
    again = Trace.open(folder)
    pd.testing.assert_frame_equal(again.health, expected)
    assert again.several_jobs == ""


def test_frames_of_the_job_are_the_same(whole: Trace, limited: Trace) -> None:
    pd.testing.assert_frame_equal(limited.events(), whole.events())
    pd.testing.assert_frame_equal(limited.iterations, whole.iterations)
    pd.testing.assert_frame_equal(limited.health, whole.health)
    assert (limited.summary, limited.extent_ns) == (whole.summary, whole.extent_ns)
    pd.testing.assert_frame_equal(
        limited.timed_by("device").iterations, whole.timed_by("device").iterations, check_exact=True
    )
    fewer, expected = (trace.keep(lambda rank: rank.is_device) for trace in (limited, whole))
    again, again_expected = (
        trace.keep(lambda rank: rank.dur > int(np.median(rank.dur))) for trace in (fewer, expected)
    )
    for trace, known in ((fewer, expected), (again, again_expected)):
        pd.testing.assert_frame_equal(trace.events(), known.events())
        assert trace.extent_ns == known.extent_ns and trace.summary == known.summary
    assert again.rank(0).n < fewer.rank(0).n < limited.rank(0).n


def test_what_depends_on_a_rank_goes_with_its_columns(job: dict[int, Path], limited: Trace) -> None:
    class Links:
        def __init__(self, rank: RankTrace) -> None:
            self.rank, self.end = rank, rank.end

    remembered = memoize_per_rank()(Links)
    first = limited.rank(0)
    links, columns = weakref.ref(remembered(first)), weakref.ref(first.end)
    assert remembered(first) is links()
    for rank in limited.ranks[1:]:
        assert limited.rank(rank).end.any()
    gc.collect()
    assert links() is None and columns() is None
    assert remembered(first).rank is first  # and can be had again


def test_a_rank_in_use_is_not_the_first_to_go(limited: Trace) -> None:
    for rank in (0, 1, 0, 2):  # 1 was used least recently
        assert limited.rank(rank).n and len(limited.rank(rank).start)
    assert [limited.rank(rank).events._table is not None for rank in (0, 1, 2)] == [True, False, True]


def test_opening_again_reads_no_columns_before_they_are_needed(
    job: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    Trace.open(job)
    read: list[Path] = []
    read_table = cache.read_table
    monkeypatch.setattr(cache, "read_table", lambda file: (read.append(file), read_table(file))[1])
    trace = Trace.open(job)
    assert trace.extent_ns[1] > 0 and trace.summary["events"] > 0 and trace.job_size == RANKS
    assert not read
    assert trace.rank(0).n and trace.rank(0).end.sum() and len(read) == 1


def test_threads_get_the_same_columns(limited: Trace, job: dict[int, Path]) -> None:
    whole = Trace.open(job)
    expected = {rank: whole.rank(rank).end.sum() + whole.rank(rank).launch.sum() for rank in whole.ranks}
    wrong: list[int] = []

    def look(first: int) -> None:
        for at in range(4 * RANKS):
            rank = limited.rank((first + 3 * at) % RANKS)
            if rank.end.sum() + rank.launch.sum() != expected[rank.rank]:
                wrong.append(rank.rank)

    threads = [threading.Thread(target=look, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and limited.memory.dropped > RANKS


@pytest.mark.parametrize(
    ("how", "why"), [({"cache": False}, "there is none"), ({"client": object()}, "client")]
)
def test_a_limit_that_cannot_be_kept_is_refused_in_words(
    job: dict[int, Path], how: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=f"memory_limit=1000 cannot be used: .*{why}"):
        Trace.open(job, memory_limit=1000, **how)
    with pytest.raises(ValueError, match="above 0"):
        Trace.open(job, memory_limit=0)


@pytest.mark.parametrize(
    ("limit", "size"),
    [
        ("1GB", 10**9), ("1 GiB", 2**30), ("1.5gb", 1_500_000_000), (" 500 MB ", 5 * 10**8), ("64kB", 64_000),
        (".5 MiB", 2**19), ("2T", 2 * 10**12), ("4096", 4096), ("4096 B", 4096), (1e9, 10**9), (7, 7),
    ],
)  # fmt: skip
def test_a_limit_is_a_number_or_a_text_with_a_unit(
    job: dict[int, Path], limit: float | str, size: int
) -> None:
    assert Trace.open(job, memory_limit=limit).memory.limit == size


@pytest.mark.parametrize(
    "limit", ["", "GB", "1 XB", "1iB", "-1GB", "1e9", "nan", "1 GB 2", float("nan"), float("inf"), True]
)
def test_a_limit_in_another_form_is_refused_with_the_forms_there_are(
    job: dict[int, Path], limit: float | str
) -> None:
    with pytest.raises(ValueError, match=r"memory_limit=.* cannot be used: it is n"):
        Trace.open(job, memory_limit=limit)


def test_health_tells_of_ranks_that_must_stay(job: dict[int, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "memory" not in set(Trace.open(job, cache=False).health["check"])
    monkeypatch.setattr("hta_widgets.trace.model.default_limit", lambda: 1_000_000)
    (told,) = Trace.open(job, cache=False).health.query("check == 'memory'").to_dict("records")
    assert (told["count"], told["severity"]) == (RANKS, "warning") and "977 KiB" in told["detail"]
    assert "memory" not in set(Trace.open(job).health["check"])


def test_files_that_changed_are_not_mixed_with_what_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTA_WIDGETS_CACHE", str(tmp_path / "cache"))
    folder = write_job(tmp_path / "job", 2, slow=0)
    Trace.open(folder)
    trace = Trace.open(folder)
    file = folder / "rank0.json"
    file.write_text(file.read_text().replace("aten::mm", "aten::mn"))
    before = set(trace.rank(0).names)
    assert "aten::mm" in before  # the cache has what was opened
    trace = Trace.open(folder)
    file.write_text(file.read_text().replace("aten::mn", "aten::mo"))
    trace.rank(0).events.drop()
    for entry in (tmp_path / "cache").glob("*.arrow"):
        entry.unlink()
    with pytest.raises(TraceFormatError, match=r"has changed since .*open the trace again"):
        len(trace.rank(0).end)
    file.unlink()
    with pytest.raises(TraceFormatError, match="is gone since"):
        len(trace.rank(0).end)
    assert "aten::mm" in trace.rank(1).names  # that one is read from its file


def test_damaged_headers_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTA_WIDGETS_CACHE", str(tmp_path / "cache"))
    folder = write_job(tmp_path / "job", 2, slow=0)
    expected = Trace.open(folder).extent_ns
    for at, header in enumerate(sorted((tmp_path / "cache").glob("*/*.json"))):
        content = header.read_bytes()
        header.write_bytes(content[:-20] if at else b"\0" + content[1:])
    assert Trace.open(folder).extent_ns == expected
    assert Trace.open(folder).extent_ns == expected


def test_headers_keep_within_their_part_of_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTA_WIDGETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(rank_events, "_TRIM_EVERY", 1)
    folder = write_job(tmp_path / "job", 4, slow=0)
    Trace.open(folder / "rank0.json")
    (header,) = (tmp_path / "cache" / "headers").iterdir()
    room = 2.5 * header.stat().st_size
    monkeypatch.setenv("HTA_WIDGETS_CACHE_BYTES", str(int(room / rank_events._PART_OF_BUDGET)))
    Trace.open(folder)
    assert len(list((tmp_path / "cache" / "headers").iterdir())) == 2


def test_only_the_least_recently_used_are_dropped() -> None:
    class Rank:
        def __init__(self, size: int) -> None:
            self.size = size

        def held_bytes(self) -> int:
            return self.size

        held_things = held_bytes

        def drop(self) -> None:
            self.size = 0

    memory, ranks = Memory(100), [Rank(30) for _ in range(4)]
    for rank in (*ranks[:3], ranks[0], ranks[3]):
        memory.used(rank)
    assert [rank.size for rank in ranks] == [30, 0, 30, 30]
    ranks[3].size = 60  # an analysis remembers something for it
    memory.used(ranks[2])
    assert [rank.size for rank in ranks] == [0, 0, 30, 60]
    large = Rank(1000)
    memory.used(large)
    assert [rank.size for rank in (*ranks, large)] == [0, 0, 0, 0, 1000] and memory.dropped == 4


def test_ranks_that_grew_before_anybody_looked_are_counted() -> None:
    class Rank:
        size = 4  # when it is loaded

        def held_bytes(self) -> int:
            return self.size

        held_things = held_bytes

        def drop(self) -> None:
            self.size = 0

    memory, ranks = Memory(100), [Rank() for _ in range(8)]
    for rank in ranks:
        memory.used(rank)
        rank.size = 40
    assert sum(rank.size for rank in ranks) <= 100 + 40  # all but the last were looked at
    memory.used(ranks[-2])
    assert sum(rank.size for rank in ranks) <= 100 and memory.dropped == 6


def test_a_rank_is_counted_again_once_it_holds_an_eighth_more() -> None:
    class Rank:
        things, counted = 80, 0

        def held_things(self) -> int:
            return self.things

        def held_bytes(self) -> int:
            self.counted += 1
            return self.things

        def drop(self) -> None:
            raise AssertionError

    memory, rank, other = Memory(400), Rank(), Rank()
    for things, counted in ((80, 1), (85, 1), (90, 1), (91, 2), (95, 2), (103, 3)):
        rank.things = things
        memory.used(rank)
        memory.used(other)
        assert rank.counted == counted, things


def test_memory_goes_back_to_the_system_once_much_was_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each rank: what is made next touches its memory anew."""

    class Rank:
        def held_bytes(self) -> int:
            return 20

        held_things = held_bytes

        def drop(self) -> None:
            pass

    given_back: list[int] = []
    limited = Memory(100)
    monkeypatch.setattr(memory, "_trim", lambda: lambda _: given_back.append(limited.dropped))
    for _ in range(5 + 7):
        limited.used(Rank())
    assert given_back == [2, 4, 6]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc has it")
def test_the_c_library_takes_the_request() -> None:
    trim = memory._trim()
    assert trim is None or trim(0) in (0, 1)


def test_bytes_are_counted_once() -> None:
    array = np.zeros(1000, np.int64)
    assert bytes_of([array, array, array[10:], {"same": array}]) < 8000 + 500
    assert bytes_of([pd.DataFrame({"a": np.zeros(1000)})]) >= 8000
    assert bytes_of([[f"{number:1000}" for number in range(1000)]]) > 1_000_000


def test_the_default_is_a_part_of_the_machine() -> None:
    with suppress(AttributeError, ValueError):
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        assert 0 < default_limit() <= machine // 2
