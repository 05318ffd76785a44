"""What a kernel's operation is called after the range around its launch; and what the verdict makes of it."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from hta_widgets.analysis import collectives, overview
from hta_widgets.analysis.communication.operations import collective_of
from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import Event, event, job, kernel, launch
from tests.support import EVERY_CASE, shared_trace

US = 1_000
MS = 1_000_000
SEND = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)"


def called(folder: Path, *ranges: tuple[str, int, int], tid: int = 1, **args: object) -> str:
    """The operation of one kernel that is launched at 100 us, with these ranges on a thread."""
    events = [
        launch(100 * US, 5, dur=10 * US),
        kernel(SEND, 200 * US, 50 * US, correlation=5, **args),
        *(event("user_annotation", name, start, end - start, tid) for name, start, end in ranges),
    ]
    return collectives(job(folder, events, events))["collective"].iloc[0]


@pytest.mark.parametrize(
    ("ranges", "operation"),
    [
        ([("nccl:all_to_all", 90 * US, 120 * US)], "all_to_all"),
        ([("nccl:all_to_all", 100 * US, 110 * US)], "all_to_all"),
        ([("xccl:all_to_all", 90 * US, 120 * US)], "all_to_all"),
        ([("nccl:send 0->1", 90 * US, 120 * US)], "send"),
        ([("nccl:recv 1<-0", 90 * US, 120 * US)], "recv"),
        ([("nccl:all_reduce", 0, 200 * US), ("nccl:all_to_all", 90 * US, 120 * US)], "all_to_all"),
        # near misses
        ([("nccl:all_to_all", 90 * US, 105 * US)], "sendrecv"),
        ([("nccl:all_to_all", 80 * US, 99 * US)], "sendrecv"),
        ([("nccl:all_to_all", 101 * US, 120 * US)], "sendrecv"),
        ([("nccl:coalesced", 90 * US, 120 * US)], "sendrecv"),
        ([("my all_to_all", 90 * US, 120 * US)], "sendrecv"),
        ([], "sendrecv"),
    ],
)
def test_the_range_around_the_launch_names_the_operation(ranges, operation, tmp_path):
    assert called(tmp_path, *ranges) == operation


def test_a_range_of_another_thread_does_not(tmp_path):
    assert called(tmp_path, ("nccl:all_to_all", 90 * US, 120 * US), tid=2) == "sendrecv"


def test_recorded_arguments_are_believed_first(tmp_path):
    title = "nccl:all_to_all", 90 * US, 120 * US
    assert called(tmp_path, title, **{"Collective name": "recv"}) == "recv"


PLAIN = ["hta/nccl_parser_config", "hta/trace_diff/test", "hta/trace_diff/control"]


@pytest.mark.parametrize("name", PLAIN if EVERY_CASE else PLAIN[:2])
def test_as_in_the_plain_json(name):
    (path,) = Path(shared_trace(name)).glob("*.json.gz")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    slices = [one for one in events if one.get("ph") == "X"]
    calls = {one["args"].get("correlation"): one for one in slices if one.get("cat") == "cuda_runtime"}
    ranges = defaultdict(list)
    for one in slices:
        if one.get("cat") == "user_annotation" and one["name"].startswith("nccl:"):
            ranges[one["pid"], one["tid"]].append(one)
    expected: Counter[str] = Counter()
    for one in slices:
        if one.get("cat") == "kernel" and one["name"].startswith("nccl"):
            text, call = one["name"], calls.get(one["args"]["correlation"])
            for title in ranges[call["pid"], call["tid"]] if call else ():
                if title["ts"] <= call["ts"] and call["ts"] + call["dur"] <= title["ts"] + title["dur"]:
                    text = title["name"].partition(":")[2]
            expected[collective_of(text)] += 1
    assert collectives(Trace.open(path))["collective"].value_counts().to_dict() == dict(expected)


def steps(title: str) -> list[Event]:
    """Five steps of 10 ms: 6 ms of compute, then 4 of a kernel that was launched in a range of this title."""
    events = []
    for step in range(5):
        start = 10 * MS * step
        events += [
            event("user_annotation", f"ProfilerStep#{step}", start, 10 * MS),
            launch(start + 10 * US, 10 * step + 1),
            kernel("ampere_sgemm_128x64_tn", start + 20 * US, 6 * MS, correlation=10 * step + 1),
            event("user_annotation", title, start + 40 * US, 20 * US),
            launch(start + 50 * US, 10 * step + 2),
            kernel(SEND, start + 6 * MS + 20 * US, 3_900 * US, 20, correlation=10 * step + 2),
        ]
    return events


@pytest.mark.parametrize(
    ("title", "words", "advice"),
    [
        ("nccl:all_to_all", "most of it in all-to-alls", "embeddings"),
        ("nccl:coalesced", "most of it in sends and receives", "microbatches"),
        ("nccl:all_reduce", "waiting for other ranks included", "in larger pieces"),
    ],
)
def test_advice_is_about_the_operation(title, words, advice, tmp_path):
    frame = overview(job(tmp_path, steps(title))).set_index("topic")
    found = frame.loc["exposed_communication"]
    assert words in found["text"] and advice in found["suggestion"]
    assert ("most of it" in found["text"]) == (title != "nccl:all_reduce")
