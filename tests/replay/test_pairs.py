"""Two recordings that differ in one known thing: the first, replayed without it, takes as long as the second.

The bundled jobs train one model on one device, with DDP and with two strategies of FSDP. They are simulated,
each by a run of its own with its own noise. The times of the second are read from its plain events.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from statistics import median

import pytest

from hta_widgets import analysis, edits, examples
from hta_widgets.analysis.replay.edits import Edit
from tests.verdicts.plain_reader import read

_IN_BACKWARD = "FullyShardedDataParallel._pre_backward*"


@dataclass(frozen=True)
class Pair:
    """A recording, what makes it the other one, and by how many % of its step that one is missed."""

    first: str
    made: Edit
    second: str
    error_pct: float


PAIRS = {
    "one device instead of DDP": Pair("gpt2_ddp", edits.communication(0), "gpt2_baseline", -0.3),
    # FSDP leaves work of its own: what gathers and frees parameters is neither communication nor the model's
    "one device instead of full sharding": Pair(
        "gpt2_fsdp_full_shard", edits.communication(0), "gpt2_baseline", 2.6
    ),
    "one device instead of sharded gradients": Pair(
        "gpt2_fsdp_shard_grad_op", edits.communication(0), "gpt2_baseline", 2.1
    ),
    # compute hides them: what takes 14 % of the communication saves nothing
    "no second gathering of parameters": Pair(
        "gpt2_fsdp_full_shard",
        edits.communication(0, "*AllGather*", within=_IN_BACKWARD),
        "gpt2_fsdp_shard_grad_op",
        0.2,
    ),
}


@lru_cache
def recorded_ns(name: str) -> float:
    """The median step over all ranks, from the plain events."""
    windows = [window for rank in read(examples.path(name)) for window in rank.host_windows()]
    return median(end - begin for begin, end in windows)


def predicted_ns(name: str, made: Edit) -> float:
    return float(analysis.what_if(examples.load(name), made).dropna(subset="iteration")["after_ns"].median())


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_the_second_recording_is_foreseen_within_5_pct(pair: Pair):
    error = 100 * (predicted_ns(pair.first, pair.made) / recorded_ns(pair.second) - 1)
    assert error == pytest.approx(pair.error_pct, abs=0.2)
    assert abs(error) < 5


def test_the_time_of_what_changed_would_be_a_worse_guess():
    """Of DDP's communication a part is hidden, of FSDP's more: subtracting it all misses by up to a tenth."""
    for name, missed in (("gpt2_ddp", -1), ("gpt2_fsdp_full_shard", -8)):
        work = [each for rank in read(examples.path(name)) for each in rank.work]
        taken = (
            sum(end - begin for begin, end in (each.window for each in work if "nccl" in each.name)) / 2 / 3
        )
        assert 100 * ((recorded_ns(name) - taken) / recorded_ns("gpt2_baseline") - 1) < missed


def test_the_gathering_in_the_backward_pass_is_what_is_taken_away():
    """It ends 7 ms before it is waited for: only a gathering of 50 times the length takes time."""
    slower = edits.communication(50.0, "*AllGather*", within=_IN_BACKWARD)
    assert predicted_ns("gpt2_fsdp_full_shard", slower) > 1.5 * recorded_ns("gpt2_fsdp_full_shard")
    unchanged = predicted_ns("gpt2_fsdp_shard_grad_op", edits.communication(1.0))
    assert predicted_ns("gpt2_fsdp_shard_grad_op", slower) == unchanged
