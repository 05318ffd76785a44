"""Every real recording, counted by hand: the readings have its numbers, and so have the package's answers.

All that asks a recording of the plain reader about each one is here, because reading takes most of the time.
"""

import tomllib
from collections import Counter
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_widgets.analysis import idle_breakdown, overview, temporal_breakdown
from hta_widgets.errors import MissingDataError
from tests.support import EVERY_CASE, UNLIKE_GPU_TRACES
from tests.verdicts.plain_reader import Idle, Rank, Window, length, overlap, union
from tests.verdicts.recordings import RECORDINGS, SEVERAL_JOBS, TWINS, opened, recording

FOLDER = Path(__file__).parent / "readings"
READINGS = {
    reading["recording"]: reading
    for reading in (tomllib.loads(file.read_text()) for file in sorted(FOLDER.glob("*.toml")))
}

KINDS = {"training", "inference", "serving", "capture", "start-up", "fragment", "unknown"}
# Of which parts of the time each topic is made.
PARTS = {
    "compute_bound": ["computing"],
    "exposed_communication": ["communicating"],
    "memory_copies": ["copying"],
    "data_stall": ["loading"],
    "sync_calls": ["synchronising"],
    "idle_host": ["running", "nothing_recorded"],
    "launch_bound": ["launching"],
    "tiny_kernels": ["queued"],
    "device_wait": ["queued"],
    "unrecorded_idle": ["unrecorded"],
    "no_work_due": ["no_work_due"],
}
OTHER_TOPICS = {
    "attention_not_fused",
    "unaligned_shapes",
    "wave_quantization",
    "low_occupancy",
    "tiny_products",
    "bucket_copies",
    "buffers_broadcast",
    "slowed_by_communication",
    "recomputation",
    "pointwise_chains",
    "fp32_units",
    "tf32_units",
    "straggler",
    "imbalance",
    "slow_kernels",
    "queue_full",
    "slow_steps",
    "start_up",
    "earlier_work",
    "capture",
    "several_jobs",
    "no_device",
}
SMALLEST_CAUSE_PCT = 3.0

# Parts of the names of kernels; the beginning of the names of parts of the host.
KERNELS = {
    "tensor_copies": ("direct_copy_kernel", "CatArrayBatchedCopy"),
    "layout_transposes": ("nchwToNhwcKernel", "nhwcToNchwKernel", "batched_transpose_"),
}
REGIONS = {
    "optimizer_not_fused": "Optimizer.step#",
    "zero_grad_fills": "Optimizer.zero_grad#",
    "bucket_copies": "torch.distributed.ddp.reducer::copy_bucket_to_grad",
}
TOPICS = {*KERNELS, *REGIONS, "allocator_calls"}

# Every real recording on which one of them is told.
TOLD = {
    "hta/nccl_parser_config": {"bucket_copies"},
    "hta/trace_diff/control": {"tensor_copies"},
    "hta/trace_diff/test": {"tensor_copies"},
    "kineto/resnet50_num_workers_0": {"optimizer_not_fused", "zero_grad_fills"},
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": {"tensor_copies"},
    "tracelens/mi210/gpu_only_trace": {"layout_transposes"},
    "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": {"tensor_copies"},
    "tracelens/mi300/resnet_act_checkpoint.json.gz": {"layout_transposes"},
}


@cache
def windows(rank: Rank, clock: str | None) -> list[Window]:
    """The complete steps on a clock; without one, from the first to the last device work."""
    if clock is None:
        return [rank.extent]
    return rank.device_windows() if clock == "device" else rank.host_windows()


@cache
def idle_pieces(rank: Rank, clock: str | None) -> list[Idle]:
    return [piece for window in windows(rank, clock) for piece in rank.idle(window)]


@cache
def parts_pct(rank: Rank, clock: str | None) -> dict[str, float]:
    """Each part of the windows' time, in percent of it."""
    parts = Counter(rank.shares(windows(rank, clock)))
    for piece in idle_pieces(rank, clock):
        parts[piece.why] += piece.end - piece.start
    return {part: 100 * time / length(windows(rank, clock)) for part, time in parts.items()}


def inside_pct(rank: Rank, clock: str | None, parts: list[str], name: str) -> float:
    """Idle time of these parts in which the host was inside an event of this name."""
    when = {
        thread: union(event.window for event in events if event.name == name)
        for thread, events in rank.threads.items()
    }
    inside = sum(
        length(overlap(when.get(piece.thread, []), (piece.start, piece.end)))
        for piece in idle_pieces(rank, clock)
        if "idle" in parts or piece.why in parts
    )
    return 100 * inside / length(windows(rank, clock))


def clocks_of(name: str) -> list[str | None]:
    """Each clock that does a recording justice, where its time is measured."""
    reading = READINGS[name]
    return (reading["timed_on"] or [None]) if "window" in reading else []


def test_every_recording_has_been_read() -> None:
    assert sorted(READINGS) == sorted(RECORDINGS)
    assert len(list(FOLDER.glob("*.toml"))) == len(READINGS)


@pytest.mark.parametrize("reading", READINGS.values(), ids=READINGS)
def test_a_reading_is_in_the_words_that_the_readme_explains(reading: dict[str, Any]) -> None:
    causes = reading.get("cause", [])
    topics = [cause["topic"] for cause in causes]
    denied = [sentence["topic"] for sentence in reading.get("not_said", [])]
    assert reading["kind"] in KINDS
    assert set(reading["timed_on"]) <= {"device", "host"}
    assert {*topics, *denied} <= PARTS.keys() | OTHER_TOPICS
    assert set(reading["headline"]) <= {*topics, "abstains"}
    assert not set(topics) & set(denied)
    assert len(reading["reading"].split()) > 30
    assert all(cause["evidence"].strip() for cause in causes)
    assert all(sentence["why"].strip() for sentence in reading.get("not_said", []))
    assert all(advice["words"] and advice["why"].strip() for advice in reading.get("not_advised", []))
    shares = [cause["share_pct"] for cause in causes if "share_pct" in cause]
    assert shares == sorted(shares, reverse=True)
    assert all(cause["share_pct"] >= 80 for cause in causes if cause["topic"] == "compute_bound")


@pytest.fixture(scope="module", params=[name for name in RECORDINGS if EVERY_CASE or name not in TWINS])
def name(request: pytest.FixtureRequest) -> str:
    """One recording after the other, so that each is read once."""
    found: str = request.param
    return found


def test_windows_are_those_of_the_recording(name: str) -> None:
    reading = READINGS[name]
    clock = next(iter(reading["timed_on"]), None)
    ranks = [rank for rank in recording(name) if rank.work]
    if reading["headline"] == ["several_jobs"]:
        assert len(ranks) > 1  # no window is common to unrelated jobs
        return
    assert len(ranks) == len(reading.get("window", []))
    assert bool(ranks) == ("no_device" not in [cause["topic"] for cause in reading.get("cause", [])])
    for rank, window in zip(ranks, reading.get("window", []), strict=True):
        assert window["steps"] == (len(rank.steps) if clock else 0)
        assert window["time_ms"] == pytest.approx(length(windows(rank, clock)) / 1e6, abs=0.001)
        assert window["unrecorded"] == rank.unrecorded()[0]
        parts = parts_pct(rank, clock)
        for part in ("computing", "communicating", "copying", "idle"):
            assert window[f"{part}_pct"] == pytest.approx(parts[part], abs=0.01)


def test_causes_have_their_shares_on_every_clock(name: str) -> None:
    for clock, cause in product(clocks_of(name), READINGS[name].get("cause", [])):
        if "share_pct" not in cause:
            continue
        (rank,) = recording(name)
        parts = cause.get("parts") or PARTS[cause["topic"]]
        found = sum(parts_pct(rank, clock).get(part, 0.0) for part in parts)
        assert found == pytest.approx(cause["share_pct"], abs=cause["tolerance"]), cause["topic"]
        if clock != (READINGS[name]["timed_on"] or [None])[0]:
            continue
        for place, share in cause.get("places", {}).items():
            inside = inside_pct(rank, clock, parts, place)
            assert inside == pytest.approx(share, abs=0.1), place


def test_no_cause_is_left_out(name: str) -> None:
    reading = READINGS[name]
    causes = [cause for cause in reading.get("cause", []) if "share_pct" in cause]
    named = {part for cause in causes for part in cause.get("parts") or PARTS[cause["topic"]]}
    if "idle" in named or not reading["headline"]:  # named as a whole
        return
    for clock, (topic, parts) in product(clocks_of(name), PARTS.items()):
        (rank,) = recording(name)
        share = sum(parts_pct(rank, clock).get(part, 0.0) for part in parts)
        smallest = 80 if topic == "compute_bound" else SMALLEST_CAUSE_PCT + 0.5
        assert share < smallest or named & set(parts), (topic, share)


def test_the_parts_of_a_recording_add_up(name: str) -> None:
    """The plain reader's own books: of recordings that are unlike."""
    if not EVERY_CASE and name not in UNLIKE_GPU_TRACES:
        return
    for rank in recording(name):
        if not rank.work:
            assert not rank.steps
            continue
        for spans in ([rank.extent], rank.host_windows(), rank.device_windows()):
            shares = rank.shares(spans)
            assert sum(shares.values()) == length(spans)
            pieces = [piece for span in spans for piece in rank.idle(span)]
            assert sum(piece.end - piece.start for piece in pieces) == shares["idle"]
            assert not any(overlap(rank.busy["any"], (piece.start, piece.end)) for piece in pieces)
        for spans in (rank.host_windows(), rank.device_windows()):
            assert len(spans) == len(rank.steps)
            assert union(spans) == union(sorted(spans))
            assert length(spans) == length(union(spans))


def counted(rank: Rank) -> dict[str, int]:
    """What the package's two breakdowns measure, from the first to the last device work."""
    busy = rank.shares([rank.extent])
    idle = Counter[str]()
    for piece in rank.idle(rank.extent):
        idle[piece.why] += piece.end - piece.start
    return {
        "compute_ns": busy["computing"],
        "exposed_communication_ns": busy["communicating"],
        "exposed_memory_ns": busy["copying"],
        "data_stall_ns": idle["loading"],
        "host_wait_ns": sum(idle[why] for why in ("synchronising", "loading", "running", "nothing_recorded")),
        "launched_ns": idle["launching"] + idle["queued"],
    }


def test_time_is_split_as_counted_by_hand(name: str) -> None:
    if name == SEVERAL_JOBS:  # whose files are read one by one
        return
    ranks = [rank for rank in recording(name) if rank.work]
    trace = opened(name)
    if not ranks:
        with pytest.raises(MissingDataError):
            temporal_breakdown(trace)
        return
    idle = idle_breakdown(trace)
    idle["launched_ns"] = idle["launch_latency_ns"] + idle["kernel_wait_ns"] + idle["device_wait_ns"]
    measured = temporal_breakdown(trace).merge(idle, on="rank")
    wanted = [counted(rank) for rank in ranks]
    assert measured[list(wanted[0])].to_dict("records") == wanted


def taken_ns(rank: Rank, topic: str, spans: list[Window]) -> int:
    """How much of these spans the work, or the part of the host, takes."""
    if topic in KERNELS:
        work = [event.window for event in rank.work if any(part in event.name for part in KERNELS[topic])]
        return sum(length(overlap(union(work), span)) for span in spans)
    events = [event for thread in rank.threads.values() for event in thread]
    inside = union(event.window for event in events if event.name.startswith(REGIONS[topic]))
    return sum(length(overlap(inside, span)) for span in spans)


def test_avoidable_work_takes_what_the_plain_events_say(name: str) -> None:
    trace = opened(name)
    frame: pd.DataFrame = overview(trace).set_index("topic")
    assert set(frame.index) & TOPICS == TOLD.get(name, set())
    if name not in TOLD:
        return
    (rank,) = recording(name)
    clock = next(iter(trace.iterations["clock"]), None)
    spans = windows(rank, "device" if clock == "device" else "host" if rank.steps else None)
    for topic in TOLD[name]:
        share = 100 * taken_ns(rank, topic, spans) / length(spans)
        assert frame.loc[topic, "share_pct"] == pytest.approx(share, abs=0.1), topic
