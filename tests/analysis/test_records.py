"""What ranks say of their communication kernels comes back as it was, in few bytes."""

from __future__ import annotations

import pickle
import zlib

import numpy as np

from hta_widgets import examples
from hta_widgets.analysis.communication.collectives import _evidence_of
from hta_widgets.analysis.communication.records import Records
from hta_widgets.trace.reader.schema import NULL


def records(rank: int, values: list[int], names: list[str | None]) -> Records:
    table = ["never", *sorted({name for name in names if name is not None})]
    codes = np.array([-1 if name is None else table.index(name) for name in names], np.int32)
    numbers = {name: np.array(values, np.int64) for name in ("start_ns", "seq", "dur_ns", "stream")}
    return Records.of({"rank": np.full(len(values), rank), **numbers}, {"name": (codes, table)})


def assert_same(one: Records, other: Records) -> None:
    assert list(one.numbers) == list(other.numbers) and list(one.codes) == list(other.codes)
    for name, column in one.numbers.items():
        assert column.dtype == other.numbers[name].dtype == np.int64
        assert column.tolist() == other.numbers[name].tolist()
    for name in one.codes:
        assert one.texts_of(name).tolist() == other.texts_of(name).tolist()


def test_any_value_comes_back() -> None:
    """Absent ones are the least of all int64, so differences to them wrap around."""
    greatest = np.iinfo(np.int64).max
    values = [0, -1, NULL, 5, greatest, NULL, -greatest, 3]
    for each in (
        records(3, values, ["b", None, "a", "a", "über\n", "", "b", None]),
        records(0, [], []),
        records(1, [7], [None]),
    ):
        assert_same(pickle.loads(pickle.dumps(each)), each)


def test_joined_and_in_the_order_of_ranks() -> None:
    """However ranks were put together: each keeps its rows in their order, and texts their meaning."""
    parts = [records(5, [9, 8], ["a", "b"]), records(0, [], []), records(2, [1, 1], ["c", None])]
    parts.append(records(4, [NULL], ["b"]))
    flat = Records.joined(parts).by_rank()
    tree = Records.joined([Records.joined(parts[2:]), pickle.loads(pickle.dumps(Records.joined(parts[:2])))])
    assert flat.numbers["rank"].tolist() == [2, 2, 4, 5, 5]
    assert flat.numbers["seq"].tolist() == [1, 1, NULL, 9, 8]
    assert flat.texts_of("name").tolist() == ["c", None, "b", "a", "b"]
    assert_same(tree.by_rank(), flat)


def test_texts_that_no_kernel_has_do_not_travel() -> None:
    assert records(0, [1], ["x"]).texts == ["x"]
    trace = examples.load("ddp_4ranks")
    own = _evidence_of(trace.rank(0))
    assert 0 < len(own.texts) < len(trace.rank(0).names)


def test_few_bytes_a_kernel() -> None:
    """A start, a duration and an id are some 2 bytes of news each; what repeats costs next to nothing."""
    generator = np.random.default_rng(0)
    n = 2000
    numbers = {
        "rank": np.full(n, 3),
        "start_ns": np.cumsum(generator.integers(100_000, 900_000, n)) + 10**15,
        "dur_ns": generator.integers(20_000, 80_000, n),
        "event_id": np.cumsum(generator.integers(20, 120, n)),
        "seq": np.arange(n),
        "comms_id": np.full(n, NULL),
        "in_elements": np.resize([1 << 20, 1 << 22, 12345678], n),
    }
    names = (np.zeros(n, np.int32), ["ncclDevKernel_AllReduce_Sum_f32_RING_LL"])
    packed = pickle.dumps(Records.of(numbers, {"name": names}))
    assert len(zlib.compress(packed)) < 8 * n
