"""Strategies of jobs that are not quite what the simulator makes: other types, steps, groups, and gaps."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets import Scope, Trace, examples
from hta_widgets.analysis import strategy_memory, training_strategy
from hta_widgets.analysis.strategy.reading import NOT_RECOGNISED
from hta_widgets.analysis.strategy.table import sentence
from hta_widgets.errors import MissingDataError
from tests.analysis.edited_jobs import Event, clone, collective, each, edited, in_first_step, kernels_of, only

pytestmark = pytest.mark.slow

BF16 = 2


@cache
def as_made(name: str) -> pd.Series:
    return only(training_strategy(examples.load(name)))


@pytest.mark.parametrize("name", ["gpt2_fsdp_full_shard", "gpt2_fsdp_shard_grad_op"])
def test_mixed_precision_reduces_in_another_type_than_it_gathers(tmp_path: Path, name: str) -> None:
    def widen(event: Event) -> None:
        if "reduce_scatter" in collective(event):
            event["args"]["dtype"] = "Float"

    before, row = (
        as_made(name),
        only(training_strategy(edited(tmp_path, name, each(widen)))),
    )
    assert row["strategy"] == before["strategy"]
    assert (row["gathered_dtype"], row["reduced_dtype"]) == ("BFloat16", "Float")
    assert row["parameters"] == before["parameters"]
    assert row["parameter_bytes"] == before["parameter_bytes"]
    assert row["sent_bytes"] == row["expected_bytes"] == before["sent_bytes"] + before["parameter_bytes"] // 2


@pytest.mark.parametrize("name", ["gpt2_ddp", "gpt2_fsdp_full_shard", "gpt2_fsdp_shard_grad_op"])
def test_steps_that_accumulate_gradients_do_not_count(tmp_path: Path, name: str) -> None:
    def accumulate(events: list[Event]) -> list[Event]:
        first = in_first_step(events)
        return [event for event in events if not ("reduce" in collective(event) and first(event))]

    before = as_made(name)
    trace = edited(tmp_path, name, accumulate)
    row = only(training_strategy(trace))
    assert (row["steps"], row["reducing_steps"]) == (3, 2)
    same = [column for column in before.index if column != "reducing_steps"]
    assert row[same].to_dict() == before[same].to_dict()
    alone = only(training_strategy(trace, Scope(iterations=(10,))))
    assert alone["strategy"] == NOT_RECOGNISED
    assert "reduces no gradients" in alone["evidence"] or "no collective" in alone["evidence"]


def test_steps_of_other_sizes_tell_the_strategy_but_not_the_size(tmp_path: Path) -> None:
    def larger(events: list[Event]) -> list[Event]:
        first = in_first_step(events)
        for event in events:
            if collective(event) and first(event):
                event["args"]["In msg nelems"] *= 2
                event["args"]["Out msg nelems"] *= 2
        return events

    row = only(training_strategy(edited(tmp_path, "gpt2_ddp", larger)))
    assert row["strategy"] == "DDP" and row["reducing_steps"] == 3
    assert pd.isna(row["parameters"]) and pd.isna(row["expected_bytes"])
    assert "of other sizes in other steps" in row["evidence"]


def test_frozen_units_are_gathered_but_not_reduced(tmp_path: Path) -> None:
    block = 7_087_872

    def freeze(events: list[Event]) -> list[Event]:
        return [
            event
            for event in events
            if not ("reduce_scatter" in collective(event) and event["args"]["In msg nelems"] == block)
        ]

    row = only(training_strategy(edited(tmp_path, "gpt2_fsdp_full_shard", freeze)))
    assert row["strategy"] == "FSDP FULL_SHARD"
    assert row["parameters"] - row["gradient_elements"] == 2 * block
    assert row["sent_bytes"] == row["expected_bytes"]


def test_metrics_are_no_gradients(tmp_path: Path) -> None:
    def metric(events: list[Event]) -> list[Event]:
        def shrink(event: Event) -> None:
            event["args"] |= {"In msg nelems": 8, "Out msg nelems": 8, "dtype": "Float"}

        main = next(event["tid"] for event in events if event["name"].startswith("ProfilerStep#"))
        return events + clone(events, kernels_of(events, "allreduce")[::2], shrink, main)

    before = as_made("gpt2_ddp")
    row = only(training_strategy(edited(tmp_path, "gpt2_ddp", metric)))
    assert (row["other_bytes"], before["other_bytes"]) == (32, 0)
    same = ["strategy", "parameters", "sent_bytes", "expected_bytes", "units"]
    assert row[same].to_dict() == before[same].to_dict()


def test_what_an_operators_gradient_sums_is_no_gradient_of_a_parameter(tmp_path: Path) -> None:
    """Batch normalisation over ranks all-reduces statistics from within its backward."""

    def normalise(events: list[Event]) -> list[Event]:
        def shrink(event: Event) -> None:
            event["args"] |= {"In msg nelems": 128, "Out msg nelems": 128}

        added = clone(events, kernels_of(events, "allreduce")[::2], shrink)
        nodes = []
        for call in (item for item in added if item["cat"] == "cuda_runtime"):
            begin, length = float(call["ts"]), float(call["dur"])
            node = {**call, "cat": "cpu_op", "args": {}, "ts": begin + length / 5, "dur": length / 2}
            nodes.append({**node, "name": "autograd::engine::evaluate_function: SyncBatchNormBackward"})
            call |= {"ts": begin + length / 4, "dur": length / 4}
        return events + added + nodes

    before = as_made("gpt2_ddp")
    row = only(training_strategy(edited(tmp_path, "gpt2_ddp", normalise)))
    assert (row["strategy"], row["parameters"]) == ("DDP", before["parameters"])
    assert (row["units"], row["other_bytes"]) == (before["units"], 128 * BF16)


@pytest.mark.parametrize(
    ("name", "hybrid"),
    [
        ("gpt2_fsdp_full_shard", "FSDP HYBRID_SHARD"),
        ("gpt2_fsdp_shard_grad_op", "FSDP _HYBRID_SHARD_ZERO2"),
    ],
)
def test_hybrid_sharding_all_reduces_the_shards_in_another_group(
    tmp_path: Path, name: str, hybrid: str
) -> None:
    def replicate(events: list[Event]) -> list[Event]:
        def reduce(event: Event) -> None:
            shard = event["args"]["Out msg nelems"]
            event["args"] |= {
                "Collective name": "allreduce", "In msg nelems": shard, "Group size": 4,
                "Process Group Name": "7",
            }  # fmt: skip

        return events + clone(events, kernels_of(events, "reduce_scatter"), reduce)

    before = as_made(name)
    frame = training_strategy(edited(tmp_path, name, replicate))
    assert frame["strategy"].tolist() == [hybrid, hybrid]
    assert frame["role"].tolist() == ["shard", "replicate"]
    assert frame["group_size"].tolist() == [2, 4]
    shard, replica = frame.iloc[0], frame.iloc[1]
    assert shard["parameters"] == before["parameters"]
    assert pd.isna(replica["parameters"])
    assert replica["sent_bytes"] == replica["expected_bytes"] == 2 * 3 * before["parameter_bytes"] // 2 // 4
    assert sentence(frame).startswith(f"The job uses {hybrid} over 2 ranks, for ")


def test_shards_are_no_model_where_their_group_is_not_recognised(tmp_path: Path) -> None:
    """Hybrid sharding with an evaluation in each step: one group says too much, the other only shards."""

    def edit(events: list[Event]) -> list[Event]:
        def reduce(event: Event) -> None:
            event["args"] |= {
                "Collective name": "allreduce", "In msg nelems": event["args"]["Out msg nelems"],
                "Group size": 4, "Process Group Name": "7",
            }  # fmt: skip

        gathers, scatters = kernels_of(events, "allgather"), kernels_of(events, "reduce_scatter")
        cut = [message for message in gathers if int(message["args"]["Out msg nelems"]) % 3 == 0]
        return [event for event in events if event not in cut[::2]] + clone(events, scatters, reduce)

    frame = training_strategy(edited(tmp_path, "gpt2_fsdp_full_shard", edit))
    assert set(frame["strategy"]) == {NOT_RECOGNISED}
    assert frame["parameters"].isna().all()


def test_groups_that_reduce_parts_of_a_model_are_all_reported(tmp_path: Path) -> None:
    """Experts are reduced among fewer ranks than the rest of the model."""

    def experts(events: list[Event]) -> list[Event]:
        def reduce(event: Event) -> None:
            event["args"] |= {
                "In msg nelems": 96, "Out msg nelems": 96, "Group size": 4, "Process Group Name": "9",
            }  # fmt: skip

        return events + clone(events, kernels_of(events, "allreduce"), reduce)

    trace = edited(tmp_path, "gpt2_ddp", experts)
    frame = training_strategy(trace)
    assert frame["strategy"].tolist() == ["DDP", "DDP"]
    assert sentence(frame).endswith("as expected. 1 more process group does likewise with other sizes.")
    with pytest.raises(MissingDataError, match="parts of its model in several process groups"):
        strategy_memory(trace)


def test_communication_that_nobody_names_is_not_called_fsdp_or_ddp(tmp_path: Path) -> None:
    def anonymous(event: Event) -> None:
        event["name"] = event["name"].replace("FullyShardedDataParallel", "Mine")
        event["name"] = event["name"].replace("DistributedDataParallel", "Mine")

    for name, strategy in (
        ("gpt2_fsdp_full_shard", "ZeRO stage 3"),
        ("gpt2_fsdp_shard_grad_op", "ZeRO stage 1 or 2"),
        ("gpt2_ddp", NOT_RECOGNISED),
    ):
        folder = tmp_path / name
        folder.mkdir()
        row = only(training_strategy(edited(folder, name, each(anonymous))))
        before = as_made(name)
        assert row["strategy"] == strategy
        assert row["parameters"] == before["parameters"]


def test_missing_sizes_are_reported_and_not_guessed(tmp_path: Path) -> None:
    sizes = ("In msg nelems", "Out msg nelems")

    def unsized(event: Event) -> None:
        for size in sizes:
            event.get("args", {}).pop(size, None)

    with pytest.raises(MissingDataError, match=r"PyTorch 2\.2 or newer") as missing:
        training_strategy(edited(tmp_path, "gpt2_ddp", each(unsized)))
    assert missing.value.field == "collective sizes"

    def one_unsized(events: list[Event]) -> list[Event]:
        kernel = kernels_of(events, "allreduce")[0]
        events = [event for event in events if event["name"] != "record_param_comms"]
        kernel["args"] = {"stream": kernel["args"]["stream"], "correlation": kernel["args"]["correlation"]}
        return events

    folder = tmp_path / "one"
    folder.mkdir()
    row = only(training_strategy(edited(folder, "gpt2_ddp", one_unsized)))
    assert row["strategy"] == NOT_RECOGNISED
    assert "sizes of 1 of 6 collectives" in row["evidence"]
    assert pd.isna(row["parameters"])


@pytest.mark.parametrize(("world_size", "named"), [(2, True), (8, False)])
def test_groups_without_names_are_recognised_if_they_hold_the_whole_job(
    tmp_path: Path, world_size: int, named: bool
) -> None:
    def nameless(event: Event) -> None:
        event.get("args", {}).pop("Process Group Name", None)

    metadata = {"rank": 0, "world_size": world_size}
    edited(tmp_path, "gpt2_ddp", each(nameless), metadata)
    row = only(training_strategy(Trace.open(sorted(tmp_path.iterdir())[0], cache=False)))
    assert (row["strategy"] == "DDP", "no names" in row["evidence"]) == (named, not named)


def test_steps_have_to_be_marked(tmp_path: Path) -> None:
    def unmarked(event: Event) -> None:
        if event["name"].startswith("ProfilerStep#"):
            event["name"] = "something"

    row = only(training_strategy(edited(tmp_path, "gpt2_fsdp_shard_grad_op", each(unmarked))))
    assert row["strategy"] == NOT_RECOGNISED
    assert "step()" in row["evidence"]


@pytest.mark.parametrize("metadata", [None, {"rank": 1}, {"rank": 0, "world_size": 2}])
def test_a_job_of_many_without_kernels_of_communication_abstains(
    tmp_path: Path, metadata: Event | None
) -> None:
    def silent(events: list[Event]) -> list[Event]:
        kept = [event for event in events if not (event.get("cat") == "kernel" and collective(event))]
        return kept if metadata is None else [item for item in kept if not host_communication(item)]

    def host_communication(event: Event) -> bool:
        return str(event["name"]).startswith(("record_param_comms", "c10d::", "nccl:"))

    (tmp_path / "all").mkdir()
    edited(tmp_path / "all", "gpt2_ddp", silent, metadata)
    only_one = sorted((tmp_path / "all").iterdir())[0]
    with pytest.raises(MissingDataError) as missing:
        training_strategy(Trace.open(only_one, cache=False))
    assert missing.value.field == "communication kernels"


def test_more_traffic_than_expected_shows(tmp_path: Path) -> None:
    """Activation checkpointing around FSDP units gathers them a third time."""

    def again(events: list[Event]) -> list[Event]:
        backward = kernels_of(events, "reduce_scatter")[0]
        launches = {
            event["args"]["correlation"]: event for event in events if event.get("cat") == "cuda_runtime"
        }
        thread = launches[backward["args"]["correlation"]]["tid"]
        gathers = [
            item
            for item in kernels_of(events, "allgather")
            if launches[item["args"]["correlation"]]["tid"] == thread
        ]
        return events + clone(events, gathers, lambda event: None)

    row = only(training_strategy(edited(tmp_path, "gpt2_fsdp_full_shard", again)))
    assert row["strategy"] == "FSDP FULL_SHARD"
    assert row["sent_bytes"] - row["expected_bytes"] == 2 * 7_087_872 * BF16 // 2
    assert "are expected" in sentence(training_strategy(Trace.open(tmp_path, cache=False)))


def test_stages_that_look_alike_leave_gradients_open(tmp_path: Path) -> None:
    def anonymous(event: Event) -> None:
        event["name"] = event["name"].replace("FullyShardedDataParallel", "Mine")

    trace = edited(tmp_path, "gpt2_fsdp_shard_grad_op", each(anonymous))
    frame = strategy_memory(trace)
    computed = frame[frame["rank"] == 0].set_index("component")["computed_bytes"]
    assert pd.isna(computed["gradients"])
    assert pd.isna(computed["model states"])
