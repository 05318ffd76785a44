"""Real recordings, broken as profilers break them: claims keep their value, or are withheld.

Each recording is broken in each way in each amount, with known truth. The sample here takes seconds;
`HTA_WIDGETS_EVERY_CASE=1` takes all recordings and more seeds, and prints the table.
"""

import sys
from collections.abc import Iterator
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.trace import RankTrace
from hta_widgets.trace.rank_events import RankEvents
from hta_widgets.trace.reader.cache import load
from hta_widgets.trace.reader.table import EventTable
from tests.support import EVERY_CASE, SHARED_TRACES, shared_trace

SEEDS = 3 if EVERY_CASE else 1
RECORDINGS = [
    "hta/ns_resolution_trace",
    "hta/trace_diff/control",
    "tracelens/mi300/resnet_act_checkpoint.json.gz",
    "hta/nccl_parser_config",
]
EVERY_RECORDING = [
    *RECORDINGS,
    "hta/trace_diff/test",
    "kineto/resnet50_num_workers_0",
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "tracelens/torch_compile_triton",
    "hta/critical_path/alexnet",
]
KINDS = ("late by far", "late", "early", "zero", "lost")
AMOUNTS = ("1 record", "0.1 %", "1 %", "10 %", "a step", "the first 5 %")
# Claims that may be off though neither repaired nor withheld, of all: a mildly late end of a record without
# like ones cannot be refuted.
OFF = 0.01
Rows = npt.NDArray[np.int64]


@cache
def table_of(name: str) -> EventTable:
    path = shared_trace(name)
    files = sorted(path.rglob("*.json*")) if path.is_dir() else [path]
    return load(files[0], cache=False)


def with_changes(table: EventTable, events: Rows, **columns: Rows | str) -> EventTable:
    """The table with other values for some events; `phase="gone"` takes them away."""
    dense = {name: table.codes(name) if name in table.text_columns else table.ints(name)
             for name in table.dense_columns}  # fmt: skip
    dictionaries = {name: list(table.dictionary(name)) for name in table.text_columns}
    for name, values in columns.items():
        if isinstance(values, str):
            dictionaries[name] = [*dictionaries[name], values]
            values = np.full(len(events), len(dictionaries[name]) - 1)
        dense[name] = dense[name].copy()
        dense[name][events] = values
    sparse = {name: table.sparse(name) for name in table.sparse_columns}
    return EventTable(table.path, table.n, dense, sparse, dictionaries, table.metadata)


def chosen(rank: RankTrace, amount: str, seed: int) -> Rows:
    """Rows of linked device work to break, in order of their launches."""
    rows = np.flatnonzero(rank.is_device & (rank.launch >= 0) & (rank.event_class != 3))
    rows = rows[np.argsort(rank.start[rank.launch[rows]], kind="stable")]
    if amount == "a step":
        steps = np.unique(rank.iteration[rows])
        step = steps[min(len(steps) - 1, 1 + seed)]
        return rows[rank.iteration[rows] == step]
    if amount == "the first 5 %":
        return rows[: max(1, len(rows) // 20)]
    count = 1 if amount == "1 record" else max(1, int(len(rows) * float(amount[:-2]) / 100))
    return np.sort(np.random.default_rng(seed).choice(rows, count, replace=False))


def broken(table: EventTable, rank: RankTrace, kind: str, amount: str, seed: int) -> EventTable | None:
    rows = chosen(rank, amount, seed)
    random = np.random.default_rng(seed)
    start, dur = table.ints("start_ns"), table.ints("dur_ns")
    if kind.startswith("late"):
        device = np.flatnonzero(rank.is_device)
        order = device[np.lexsort((rank.start[device], rank.thread[device]))]
        following = np.full(rank.n, -1, np.int64)
        same = rank.thread[order][1:] == rank.thread[order][:-1]
        following[order[:-1][same]] = order[1:][same]
        rows = rows[following[rows] >= 0]
        room = rank.start[following[rows]] - rank.start[rows]
        far = random.integers(50 * 10**6, 2 * 10**9, len(rows))
        mild = (rank.dur[rows] * random.uniform(0.1, 3, len(rows))).astype(np.int64) + 1000
        events = rank.event_id[rows].astype(np.int64)
        return (
            with_changes(table, events, dur_ns=room + (far if "far" in kind else mild)) if len(rows) else None
        )
    events = rank.event_id[rows].astype(np.int64)
    if kind == "early":
        return with_changes(
            table, events, start_ns=start[events] - random.integers(10**8, 5 * 10**9, len(rows))
        )
    if kind == "zero":
        return with_changes(table, events, start_ns=np.zeros_like(dur[events]), dur_ns=np.zeros_like(events))
    return with_changes(table, events, phase="gone")


def claims(rank: RankTrace, steps: list[int]) -> tuple[float, float, float]:
    """Busy time in % of the steps, the device time of their work, and the median of their lengths, ns."""
    frame = rank.iterations[rank.iterations["iteration"].isin(steps)]
    rows = np.flatnonzero(rank.is_device & np.isin(rank.iteration, steps))
    busy = Intervals.union(rank.start[rank.is_device], rank.end[rank.is_device])
    inside = sum(
        busy.within(np.array([[a, b]])) for a, b in zip(frame["start_ns"], frame["end_ns"], strict=True)
    )
    whole = int((frame["end_ns"] - frame["start_ns"]).sum())
    lengths = frame["end_ns"] - frame["start_ns"]
    return 100.0 * inside / whole, float(rank.dur[rows].sum()), float(lengths.median())


def runs(names: list[str]) -> Iterator[tuple[str, str, str, int]]:
    """Each way and amount on a recording, in turn; all with EVERY_CASE."""
    for at, name in enumerate(names):
        for way, kind in enumerate(KINDS):
            for much, amount in enumerate(AMOUNTS):
                if EVERY_CASE or (at + way + much) % len(names) == 0:
                    yield from ((name, kind, amount, seed) for seed in range(SEEDS))


def differences(rank: RankTrace, truth: RankTrace, steps: list[int]) -> list[float]:
    """How far the claims about steps are off, in units of what is allowed: 0.5 points, 1 % and 1 %."""
    right, found = claims(truth, steps), claims(rank, steps)
    shares = [abs(a / b - 1) / 0.01 for a, b in zip(found[1:], right[1:], strict=True)]
    return [abs(found[0] - right[0]) / 0.5, *shares]


def whole_steps(rank: RankTrace) -> set[int]:
    """Steps of which claims are made: of open ones only where there are no others."""
    frame = rank.iterations[~rank.iterations["partial"]]
    frame = frame[~frame["open"]] if not frame["open"].all() else frame
    vetoes = [veto for veto in rank.vetoes if "efficiency" in veto.claims]
    spans = zip(frame["iteration"], frame["start_ns"], frame["end_ns"], strict=True)
    return {step for step, *span in spans if not any(veto.touches(*span) for veto in vetoes)}


def test_claims_keep_their_value_or_are_withheld(capsys: pytest.CaptureFixture[str]) -> None:
    if not SHARED_TRACES.exists():
        pytest.skip("real traces not found: set HTA_WIDGETS_TRACES to the folder that holds them")
    rows: list[tuple[str, str, str, int, int, int, float]] = []
    for name, kind, amount, seed in runs(EVERY_RECORDING if EVERY_CASE else RECORDINGS):
        truth = RankTrace(RankEvents.of(table_of(name)), 0)
        mutated = broken(table_of(name), truth, kind, amount, seed)
        if mutated is None:
            continue
        rank = RankTrace(RankEvents.of(mutated), 0)
        kept = sorted(whole_steps(truth) & whole_steps(rank))
        off = differences(rank, truth, kept) if kept else [0.0]
        rows.append((kind, amount, name, seed, len(kept), len(whole_steps(truth)), max(off)))
    wrong = [row for row in rows if row[-1] > 1]
    if EVERY_CASE:
        with capsys.disabled():
            sys.stdout.write("\n".join(map(str, [*rows, "wrong:", *wrong, len(wrong), len(rows)])) + "\n")
    assert sum(row[4] == 0 for row in rows) < 0.6 * len(rows)
    assert len(wrong) <= OFF * len(rows), wrong
