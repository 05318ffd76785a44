"""Peak, owners, fragmentation and failures of a simulated allocator are exact."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hta_widgets import MemorySnapshot
from hta_widgets.cli.run import main
from hta_widgets.errors import MissingDataError
from tests.memory_snapshot.allocator import KB, MB, Allocator, OutOfMemoryError, write
from tests.support import crossed

MODEL = (
    "/env/lib/python3.12/site-packages/torch/nn/modules/linear.py:10:forward",
    "/app/model.py:20:forward",
)
LOSS = ("/app/loss.py:3:loss", "/app/train.py:30:step")
OPTIMIZER = ("/env/lib/python3.12/site-packages/torch/optim/adam.py:1:step", "/app/train.py:40:step")
LINES = {
    MODEL: "/app/model.py:20: forward",
    LOSS: "/app/loss.py:3: loss",
    OPTIMIZER: "/app/train.py:40: step",
}


def run(allocator: Allocator, seed: int, steps: int = 400) -> None:
    """Random allocations and frees, some of them late."""
    dice = random.Random(seed)
    held: list[int] = []
    for _ in range(steps):
        if held and dice.random() < 0.45:
            allocator.free(held.pop(dice.randrange(len(held))), completed=dice.random() < 0.95)
        else:
            size = dice.choice((100, 5 * KB, 300 * KB, 3 * MB, 11 * MB, 45 * MB)) + dice.randrange(400)
            stack = dice.choice((MODEL, LOSS, OPTIMIZER))
            annotation = dice.choice((None, "phase 1", "phase 2"))
            try:
                held.append(allocator.alloc(size, *stack, annotation=annotation))
            except OutOfMemoryError:
                if held:
                    allocator.free(held.pop())


def line_of(stack: list[dict[str, Any]]) -> str:
    first = next(frame for frame in stack if "site-packages" not in frame["filename"])
    return f"{first['filename']}:{first['line']}: {first['name']}"


@pytest.mark.parametrize(("seed", "protocol", "expandable"), crossed(range(3), [2, 3, 4, 5], [False, True]))
def test_peak_owners_and_fragmentation_are_exact(
    tmp_path: Path, seed: int, protocol: int, expandable: bool
) -> None:
    allocator = Allocator(800 * MB, expandable)
    run(allocator, seed)
    snapshot = MemorySnapshot.open(write(tmp_path / "s.pickle", allocator, protocol=protocol))
    blocks = [block for segment in allocator.segments for block in segment.blocks]
    live = list(allocator.live.values())
    summary = snapshot.summary().iloc[0]
    assert summary["reserved_bytes"] == allocator.reserved
    assert summary["requested_bytes"] == sum(block.requested for block in live)
    assert summary["allocated_bytes"] == sum(block.size for block in live)
    assert summary["awaiting_bytes"] == sum(b.size for b in blocks if b.state == "active_awaiting_free")
    assert summary["peak_bytes"] == max(allocator.allocated)
    timeline = snapshot.timeline(0)
    assert timeline["reserved_bytes"].iloc[-1] == allocator.reserved
    assert timeline["allocated_bytes"].iloc[0] == 0 and timeline["reserved_bytes"].iloc[0] == 0
    expected = Counter[str]()
    for size, stack in allocator.at_peak:
        expected[line_of(stack)] += size
    peak = snapshot.peak()
    assert dict(zip(peak["owner"], peak["bytes"], strict=True)) == expected
    assert peak["bytes"].is_monotonic_decreasing and peak["pct"].sum() == pytest.approx(100)
    by_annotation = Counter[str]()
    for block in live:
        by_annotation[block.annotation or "no annotation"] += block.requested
    owners = snapshot.owners(by="annotation")
    assert dict(zip(owners["owner"], owners["bytes"], strict=True)) == by_annotation
    free = [block.size for block in blocks if block.state == "inactive"]
    row = snapshot.fragmentation().iloc[0]
    assert row["free_bytes"] == sum(free) and row["largest_free_bytes"] == max(free)
    empty = [s for s in allocator.segments if all(b.state == "inactive" for b in s.blocks)]
    assert row["releasable_bytes"] == sum(segment.size for segment in empty)
    assert row["stuck_bytes"] == sum(free) - row["releasable_bytes"]
    assert row["rounding_bytes"] == sum(block.size - block.requested for block in live)


def test_history_that_begins_late_is_anchored_at_the_end(tmp_path: Path) -> None:
    allocator = Allocator(800 * MB, max_entries=150)
    run(allocator, 5)
    snapshot = MemorySnapshot.open(write(tmp_path / "s.pickle", allocator))
    timeline = snapshot.timeline()
    assert timeline["allocated_bytes"].iloc[-1] == sum(b.requested for b in allocator.live.values())
    events = allocator.events[-150:]
    changes = [e["action"] for e in events if e["action"] in ("alloc", "free_requested")]
    window = allocator.allocated[-len(changes) - 1 :]
    assert snapshot.summary()["peak_bytes"].iloc[0] == max(window)
    peak = snapshot.peak()
    assert peak["bytes"].sum() == max(window)


def test_fragmentation_is_the_cause_where_pieces_would_do(tmp_path: Path) -> None:
    allocator = Allocator(100 * MB)
    pieces = [allocator.alloc(9 * MB, *MODEL) for _ in range(10)]  # two to a segment of 20 MB
    for piece in pieces[::2]:
        allocator.free(piece)
    with pytest.raises(OutOfMemoryError):
        allocator.alloc(30 * MB, *LOSS)
    snapshot = MemorySnapshot.open(write(tmp_path / "s.pickle", allocator))
    failure = snapshot.out_of_memory().iloc[0]
    assert failure["cause"] == "fragmentation" and failure["requested_bytes"] == 30 * MB
    blocks = [
        block for segment in allocator.segments for block in segment.blocks if block.state == "inactive"
    ]
    assert failure["free_bytes"] == sum(block.size for block in blocks)
    assert failure["largest_free_bytes"] == max(block.size for block in blocks)
    assert "fragmentation" in snapshot.sentence() and "expandable_segments" in snapshot.sentence()
    blockers = snapshot.blockers()
    assert len(blockers) == 5 and set(blockers["owner"]) == {LINES[MODEL]}


def test_capacity_is_the_cause_where_all_of_it_would_not_do(tmp_path: Path) -> None:
    allocator = Allocator(100 * MB)
    allocator.alloc(60 * MB, *OPTIMIZER)
    with pytest.raises(OutOfMemoryError):
        allocator.alloc(60 * MB, *LOSS)
    snapshot = MemorySnapshot.open(write(tmp_path / "s.pickle", allocator))
    failure = snapshot.out_of_memory().iloc[0]
    assert (failure["cause"], failure["owner"]) == ("capacity", LINES[OPTIMIZER])
    assert failure["device_free_bytes"] == 40 * MB
    assert snapshot.sentence() == (
        "Out of memory on device 0: 60.0 MiB were requested, and 60.0 MiB were allocated, most of it at "
        f"{LINES[OPTIMIZER]}."
    )


def test_a_snapshot_without_history_says_so(tmp_path: Path) -> None:
    allocator = Allocator(100 * MB, max_entries=1)
    allocator.alloc(60 * MB, *OPTIMIZER)
    allocator.events = []
    snapshot = MemorySnapshot.open(write(tmp_path / "s.pickle", allocator))
    with pytest.raises(MissingDataError, match="_record_memory_history"):
        snapshot.peak()
    assert snapshot.summary()["peak_bytes"].iloc[0] == -1
    assert snapshot.owners()["owner"].tolist() == [LINES[OPTIMIZER]]
    assert len(snapshot.out_of_memory()) == 0
    with pytest.raises(ValueError, match="no device 3"):
        snapshot.owners(3)


def test_devices_stay_apart(tmp_path: Path) -> None:
    first, second = Allocator(100 * MB), Allocator(100 * MB, device=1)
    first.alloc(3 * MB, *MODEL)
    second.alloc(5 * MB, *LOSS)
    snapshot = MemorySnapshot.open(write(tmp_path / "s.pickle", first, second))
    assert snapshot.devices == [0, 1]
    assert snapshot.peak()[["device", "bytes"]].to_numpy().tolist() == [[0, 3 * MB], [1, 5 * MB]]
    assert snapshot.peak(1)["owner"].tolist() == [LINES[LOSS]]


# what PyTorch 2.11 recorded on an H100, with C++ frames, which are the default
NATIVE = (
    "??:0:torch::unwind::unwind()",
    "CUDACachingAllocator.cpp:0:c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(...)",
    ":0:c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)",
    "??:0:at::_ops::mm::call(at::Tensor const&, at::Tensor const&)",
)
ENGINE = "??:0:torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)"


def test_frames_of_cpp_own_nothing_that_a_line_of_python_does(tmp_path: Path) -> None:
    allocator = Allocator(100 * MB)
    allocator.alloc(5 * MB, *NATIVE, *MODEL)
    allocator.alloc(3 * MB, *NATIVE, ENGINE)
    allocator.alloc(2 * MB, *NATIVE)
    allocator.alloc(1 * MB, *NATIVE[:3])
    snapshot = MemorySnapshot.open(write(tmp_path / "s.pickle", allocator))
    assert snapshot.peak()["owner"].tolist() == [
        LINES[MODEL], "backward pass: aten::mm", "aten::mm", "??:0: torch::unwind::unwind()",
    ]  # fmt: skip
    assert snapshot.peak(by="module")["owner"].iloc[0] == "/app/model.py"


def test_allocations_belong_to_the_range_that_was_entered_last(tmp_path: Path) -> None:
    allocator, other = Allocator(100 * MB), Allocator(100 * MB, device=1)
    allocator.alloc(1 * MB, *MODEL)
    with allocator.range("forward"):
        allocator.alloc(2 * MB, *MODEL)
        with allocator.range("attention"):
            allocator.alloc(3 * MB, *MODEL)
            allocator.alloc(6 * MB, *MODEL, annotation="cache")
            gone = allocator.alloc(4 * MB, *MODEL)
        allocator.alloc(5 * MB, *MODEL)
    allocator.alloc(7 * MB, *MODEL)
    other.alloc(9 * MB, *MODEL)
    allocator.free(gone)
    snapshot = MemorySnapshot.open(write(tmp_path / "s.pickle", allocator, other))
    held = {"forward": 7 * MB, "attention": 3 * MB, "cache": 6 * MB, "no annotation": 8 * MB}
    owners = snapshot.owners(0, by="annotation")
    owners = owners[owners["device"] == 0]
    assert dict(zip(owners["owner"], owners["bytes"], strict=True)) == held
    peak = snapshot.peak(by="annotation")
    peak = peak[peak["device"] == 0]
    assert dict(zip(peak["owner"], peak["bytes"], strict=True)) == {**held, "attention": 7 * MB}
    assert snapshot.owners(by="annotation")["owner"].tolist()[-1] == "no annotation"


def test_the_command_prints_and_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    allocator = Allocator(800 * MB)
    run(allocator, 1, 50)
    path = str(write(tmp_path / "s.pickle", allocator))
    assert main(["memory", path, "--by", "module"]) == 0
    text = capsys.readouterr().out
    assert "Owners at the peak" in text and "/app/model.py" in text
    assert main(["memory", path, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["summary"]["rows"][0]["peak_bytes"] == max(allocator.allocated)
    assert main(["memory", str(tmp_path / "none.pickle")]) == 3
