"""Memory that leaks, fills its device or is reserved in vain is said so; near misses and gaps are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hta_widgets.analysis.findings import overview
from tests.analysis.multirank import job
from tests.analysis.training_memory import Training

GIB = 1024**3


def loop(
    steps: int = 6, device_bytes: int = 80 * GIB, held: int = 8 * GIB, slack: int = 0, leak: int = 0
) -> Training:
    """Each step's peak is 600 MiB above what is held."""
    program = Training(held, device_bytes, slack)
    for number in range(steps):
        program.step(number, activation=500 << 20, gradient=100 << 20, leak=leak)
    return program


def told(program: Training, folder: Path) -> dict[str, dict[str, object]]:
    frame = overview(program.open(folder))
    rows = frame[frame["section"] == "memory"].to_dict("records")
    # the last of all that was found
    assert [row["topic"] for row in rows] == frame["topic"].iloc[:-1].tolist()[-len(rows) :] * bool(rows)
    return {str(row["topic"]): row for row in rows}


@pytest.mark.parametrize(
    ("program", "topic", "words"),
    [
        # 71.4 GiB are left, 64 MiB at a time
        (loop(leak=64 << 20), "memory_leak", "Each step leaves about 64.0 MiB allocated on cuda:0 of rank 0"),
        (loop(leak=64 << 20, device_bytes=0), "memory_leak", "the lowest level of its 6 steps rises."),
        (loop(held=75 * GIB), "memory_full", "Tensors take up to 94.5 % of the memory of cuda:0 of rank 0"),
        (loop(held=60 * GIB, slack=15 * GIB), "memory_fragmentation", "15.0 GiB of the 75.6 GiB reserved"),
    ],
    ids=["leak", "leak-unknown-device", "full", "fragmentation"],
)
def test_it_is_told(tmp_path, program, topic, words):
    found = told(program, tmp_path)
    assert list(found) == [topic]
    assert words in str(found[topic]["text"])
    assert "FSDP" not in str(found[topic]["suggestion"])  # of a single rank
    assert (found[topic]["cost_ns"], found[topic]["share_pct"], found[topic]["saving"]) == (0, 0.0, "")
    of = {(claim["unit"], claim["of"]) for claim in json.loads(str(found[topic]["claims"]))}
    assert all(whole == ("memory" if unit == "%" else "") for unit, whole in of)


@pytest.mark.parametrize(
    "program",
    [
        loop(leak=1 << 20),  # fills the device after 70 000 steps
        loop(leak=1 << 20, device_bytes=0),
        loop(steps=4, leak=64 << 20),  # too few steps
        loop(held=71 * GIB),  # 89.5 %
        loop(held=75 * GIB, device_bytes=0),
        loop(held=68 * GIB, slack=6 * GIB),  # nearly all is reserved, little of it in vain
        loop(held=40 * GIB, slack=20 * GIB),  # much slack on a device with room
    ],
    ids=["slow-leak", "slow-leak-unknown-device", "few-steps", "not-full", "unknown-device", "slack", "room"],
)
def test_it_is_not_told(tmp_path, program):
    assert not told(program, tmp_path)


def test_one_full_device_is_told_though_another_has_room(tmp_path):
    """As of a stage of a pipeline that holds more: the fuller one, whichever rank comes first."""
    for order, held in enumerate(((8, 75), (75, 8))):
        files = [loop(held=each * GIB).file for each in held]
        for rank, file in enumerate(files):
            file.rank = rank
        frame = overview(job(tmp_path / str(order), *files)).set_index("topic")
        assert f"cuda:0 of rank {held.index(75)}" in frame.loc["memory_full", "text"]
