"""Larger gradient buckets: the replay of a recorded job, held to the job played with those buckets."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from hta_widgets import edits
from hta_widgets.analysis import what_if
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from tests.analysis.multirank import RankFile, job
from tests.job.test_changes import time
from tests.support import crossed

US, MB = 1_000, 1_000_000
GEMM, ADAM = "ampere_bf16_s16816gemm_bf16_128x256_nt", "multi_tensor_apply_kernel"
GRADIENTS = [4 * MB, 1 * MB, 6 * MB, 2 * MB, 3 * MB, 1 * MB, 8 * MB, 2 * MB] * 2


@dataclass(frozen=True)
class Job:
    """Data parallelism whose gradients are reduced beside the backward pass.

    Attributes:
        layer_ns: the backward pass of one layer. alpha_ns, mb_ns: a transfer, and each MB of it.
        slow: rank 1 takes this many times as long.
        sizes: of the gradients, bytes.
        awaited: each reduction is waited for by the next layer, as in tensor parallelism.
    """

    layer_ns: int = 300 * US
    alpha_ns: int = 200 * US
    mb_ns: int = 40 * US
    slow: float = 1.0
    sizes: tuple[int, ...] = tuple(GRADIENTS)
    awaited: bool = False

    def play(self, folder: Path, most_bytes: int = 0, ranks: int = 3, steps: int = 4) -> tuple[Trace, float]:
        """The files, and how long a step takes, ns."""
        files = [RankFile(rank) for rank in range(ranks)]
        dice = [random.Random(rank) for rank in range(ranks)]
        now, lengths, number = 1_000_000, [], 0
        for step in range(steps):
            compute, stream = [now] * ranks, now
            held: list[int] = []
            for at, size in enumerate(self.sizes):
                for rank in range(ranks):
                    pace = self.slow if rank == 1 else 1.0
                    end = compute[rank] + int(self.layer_ns * pace * dice[rank].uniform(0.99, 1.01))
                    files[rank].kernel(compute[rank], end, GEMM, 7, launched=now - 80 * US + at * 2 * US)
                    compute[rank] = end
                held.append(size)
                following = [*self.sizes, most_bytes][at + 1]
                if at + 1 < len(self.sizes) and sum(held) + following <= most_bytes:
                    continue
                begins = [max(ready, stream) for ready in compute]
                stream = max(begins) + self.alpha_ns + self.mb_ns * sum(held) // MB
                number += 1
                for rank, begin in enumerate(begins):
                    args = {
                        "Collective name": "allreduce", "Group size": ranks, "Process Group Name": "0",
                        "Process Group Ranks": list(range(ranks)), "dtype": "Float", "Seq": number,
                        "In msg nelems": sum(held) // 4, "Out msg nelems": sum(held) // 4,
                    }  # fmt: skip
                    files[rank].kernel(begin, stream, launched=now - 79 * US + at * 2 * US, **args)
                if self.awaited:
                    compute = [stream] * ranks
                held = []
            begin = max(stream, *compute)
            for file in files:
                file.kernel(begin, begin + 500 * US, ADAM, 7, launched=now - 20 * US)
                file.step(step, now - 100 * US, begin + 390 * US)
            lengths.append(begin + 500 * US - now)
            now = begin + 500 * US
        return job(folder, *files), sum(lengths) / len(lengths)


JOBS = {
    "transfers decide": Job(layer_ns=150 * US),
    "compute decides": Job(layer_ns=900 * US),
    "both": Job(),
    "one slow rank": Job(slow=1.4),
    "latency is most": Job(alpha_ns=600 * US, mb_ns=5 * US),
}


@pytest.mark.parametrize(("name", "most"), crossed(JOBS, [8 * MB, 16 * MB, 30 * MB]))
def test_merged_buckets_take_as_long_as_the_job_played_with_them(
    name: str, most: int, tmp_path: Path
) -> None:
    trace, recorded = JOBS[name].play(tmp_path / "recorded")
    _, made = JOBS[name].play(tmp_path / "made", most)
    frame = what_if(trace, edits.larger_buckets(most))
    assert time(frame, "before_ns") == pytest.approx(recorded, rel=0.01)
    assert time(frame, "after_ns") == pytest.approx(made, rel=0.03)
    parts = frame[["compute_ns", "exposed_communication_ns", "exposed_memory_ns", "idle_ns"]]
    assert parts.sum(axis=1).tolist() == frame["after_ns"].tolist()


def test_where_compute_decides_larger_buckets_cost_time(tmp_path: Path) -> None:
    """The near miss: what was hidden waits for the last gradient of its bucket."""
    trace, _ = JOBS["compute decides"].play(tmp_path)
    frame = what_if(trace, edits.larger_buckets(30 * MB))
    assert time(frame, "after_ns") > 1.02 * time(frame, "before_ns")


def test_larger_buckets_are_made_with_other_changes_in_any_order(tmp_path: Path) -> None:
    trace, _ = JOBS["one slow rank"].play(tmp_path)
    changes = [edits.larger_buckets(16 * MB), edits.no_stragglers(), edits.faster_links(2.0)]
    there, back = what_if(trace, changes), what_if(trace, changes[::-1])
    assert there.equals(back)
    for one, more in pairwise([changes[:1], changes[:2], changes]):
        assert time(what_if(trace, more), "after_ns") < time(what_if(trace, one), "after_ns")


def test_as_large_as_recorded_changes_nothing(tmp_path: Path) -> None:
    trace, _ = JOBS["both"].play(tmp_path)
    frame = what_if(trace, edits.larger_buckets(1 * MB))
    assert frame["after_ns"].tolist() == frame["before_ns"].tolist()


def test_what_cannot_be_told_is_refused(tmp_path: Path) -> None:
    change = edits.larger_buckets(30 * MB)
    few, _ = Job(sizes=(4 * MB, 2 * MB) * 4).play(tmp_path / "few")
    with pytest.raises(MissingDataError, match="2 sizes of messages yield no latency"):
        what_if(few, change)
    small, _ = Job(sizes=tuple(range(1 * MB, 17 * MB // 10, MB // 20))).play(tmp_path / "small")
    with pytest.raises(ValueError, match="more than 4 times as large as all that was recorded"):
        what_if(small, change)
    tensors, _ = Job(awaited=True).play(tmp_path / "tensors")
    with pytest.raises(ValueError, match="waits for a collective that would be merged with later ones"):
        what_if(tensors, change)
    with pytest.raises(MissingDataError, match=r"none is named \*gather"):
        what_if(tensors, edits.larger_buckets(30 * MB, name="*gather"))
    with pytest.raises(ValueError, match="most_bytes must be more than 0"):
        edits.larger_buckets(0)
