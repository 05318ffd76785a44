"""What the events of a file say of its rank and of when ranks leave a collective together."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from hta_widgets.trace.evidence import Evidence, evidence_of
from hta_widgets.trace.reader import scanner
from tests.trace.helpers import kernel, slice_


def evidence(*events: dict[str, Any]) -> Evidence:
    return evidence_of(scanner.scan(io.BytesIO(json.dumps(list(events)).encode())))


def exchange(start: int, dur: int, **args: Any) -> dict[str, Any]:
    event = kernel("ncclDevKernel_AllReduce", start, dur)
    return {**event, "args": {**event["args"], "Collective name": "allreduce", **args}}


def test_ranks_meet_where_numbered_collectives_end_on_the_device() -> None:
    found = evidence(
        slice_("record_param_comms", "cpu_op", 1, 1, **{"Collective name": "allreduce", "Seq": 6}),
        exchange(10, 5, Seq=7),
        exchange(20, 5),  # has no number
        exchange(30, 5, Seq=8),
        exchange(40, 5, Seq=9, **{"Collective name": "send"}),  # is not left together
        slice_("record_param_comms", "cpu_op", 50, 1, **{"Collective name": "allreduce", "Seq": 9}),
    )
    assert sorted(end for _, end in found.meetings) == [15_000, 35_000]


@pytest.mark.parametrize(
    ("stated", "ranks"), [((), ()), ((3,), (3,)), ((5, 3, 5), (3, 5)), ((7, 5, 3), (3, 5))]
)
def test_at_most_two_ranks_are_told(stated: tuple[int, ...], ranks: tuple[int, ...]) -> None:
    assert evidence(*(exchange(10 * at, 5, Rank=rank) for at, rank in enumerate(stated))).ranks == ranks
