"""The queues of device work: as many as there are, whatever numbers a file gives them."""

from pathlib import Path

import numpy as np

from hta_widgets.trace import Trace
from tests.trace.helpers import kernel, write

GREATEST = 2**63 - 1


def test_numbers_of_any_size_are_queues(tmp_path: Path) -> None:
    events = []
    for at, (device, stream) in enumerate([(0, 7), (GREATEST, 7), (GREATEST, GREATEST), (0, 7)]):
        event = kernel("gemm", 10 * at, 5, at + 1, stream=stream)
        event["args"]["device"] = event["pid"] = device
        events.append(event)
    rank = Trace.open(write(tmp_path / "trace.json", events), cache=False).rank(0)
    first, second, third, again = rank.queues(np.arange(4)).tolist()
    assert first == again and len({first, second, third}) == 3
