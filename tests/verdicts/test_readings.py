"""The readings of the real recordings: each is complete, and its numbers are those of the recording."""

import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.verdicts.plain_reader import Idle, Rank, Window, length, overlap, union
from tests.verdicts.recordings import RECORDINGS, recording

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


def cases() -> list[tuple[str, str | None]]:
    """Each recording whose time is measured, with each clock that does it justice."""
    return [
        (name, clock)
        for name, reading in READINGS.items()
        if "window" in reading
        for clock in reading["timed_on"] or [None]
    ]


def test_every_recording_has_been_read() -> None:
    assert sorted(READINGS) == sorted(RECORDINGS)
    assert len(list(FOLDER.glob("*.toml"))) == len(READINGS)


@pytest.mark.parametrize("name", READINGS)
def test_a_reading_is_in_the_words_that_the_readme_explains(name: str) -> None:
    reading = READINGS[name]
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


@pytest.mark.parametrize("name", READINGS)
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


@pytest.mark.parametrize(("name", "clock"), cases())
def test_causes_have_their_shares_on_every_clock(name: str, clock: str | None) -> None:
    for cause in READINGS[name].get("cause", []):
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


@pytest.mark.parametrize(("name", "clock"), [case for case in cases() if READINGS[case[0]]["headline"]])
def test_no_cause_is_left_out(name: str, clock: str | None) -> None:
    reading = READINGS[name]
    causes = [cause for cause in reading["cause"] if "share_pct" in cause]
    named = {part for cause in causes for part in cause.get("parts") or PARTS[cause["topic"]]}
    if "idle" in named:  # named as a whole
        return
    (rank,) = recording(name)
    for topic, parts in PARTS.items():
        share = sum(parts_pct(rank, clock).get(part, 0.0) for part in parts)
        smallest = 80 if topic == "compute_bound" else SMALLEST_CAUSE_PCT + 0.5
        assert share < smallest or named & set(parts), (topic, share)
