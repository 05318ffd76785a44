"""Communication under names on no list: found by what surrounds it, and never among ordinary work."""

import pytest

from hta_widgets.trace import Trace
from hta_widgets.trace import classify as module
from hta_widgets.trace.suspects import COLUMNS, suspects
from tests.support import GPU_TRACES, TEXT_DTYPE, shared_trace
from tests.trace.helpers import kernel, rank_of, slice_, write

COMPUTE = [kernel("gemm", at, 10, at) for at in range(0, 100, 10)]


def ring(name="my_ring", start=20, stream=27, correlation=500):
    return kernel(name, start, 30, correlation, stream)


def launch(name="cudaLaunchKernel", start=5, dur=2, correlation=500):
    return slice_(name, "cuda_runtime", start, dur, correlation=correlation)


def found(tmp_path, events, job_size=2, **metadata):
    frame = suspects(rank_of(tmp_path, [*COMPUTE, *events], **metadata), job_size)
    assert list(frame.columns) == list(COLUMNS)
    expected = {name: TEXT_DTYPE if kind == "str" else kind for name, kind in COLUMNS.items()}
    assert {name: str(kind) for name, kind in frame.dtypes.items()} == expected
    return [tuple(row) for row in frame.itertuples(index=False)]


def test_a_name_that_speaks_of_exchange(tmp_path):
    rows = found(tmp_path, [ring("ns::tokenSend<4>(int)"), ring("ns::tokenSend<4>(int)", 60)])
    assert rows == [("ns::tokenSend<4>(int)", 27, 2, 60_000, "its name says 'Send'")]


@pytest.mark.parametrize(
    ("around", "why"),
    [
        (slice_("moe::dispatch", "cpu_op", 0, 10), "called by 'moe::dispatch'"),
        (slice_("deep_ep/buffer.py(300): go", "python_function", 0, 10), "called by 'deep_ep/buffer.py(300)"),
        (slice_("token exchange", "user_annotation", 0, 10), "within 'token exchange'"),
    ],
)
def test_who_asked_for_it(tmp_path, around, why):
    (row,) = found(tmp_path, [around, launch(), ring()])
    assert row[:4] == ("my_ring", 27, 1, 30_000)
    assert row[4].startswith(why)


@pytest.mark.parametrize(
    "events",
    [
        [ring()],  # nothing speaks of exchange
        [ring("token_send", stream=7)],  # on the stream of compute
        [ring("token_send", 200)],  # beside no compute
        [ring("void at::native::reduce_kernel<512>()")],  # of a library that stays on the device
        [ring("resender_ascend")],  # words that hold one by chance
        [slice_("aten::gather", "cpu_op", 0, 10), launch(), ring()],
        [slice_("torch/overrides.py(1): dispatch", "python_function", 0, 10), launch(), ring()],
        [slice_("token exchange", "user_annotation", 0, 10, tid=2), launch(), ring()],  # another thread's
        [{**ring("Memcpy HtoD (Pinned -> Device)"), "cat": "gpu_memcpy"}, slice_("send", "cpu_op", 0, 9)],
    ],
)
def test_ordinary_work_is_none(tmp_path, events):
    assert found(tmp_path, events) == []


def test_a_job_of_one_rank_has_none(tmp_path):
    assert found(tmp_path, [ring("token_send")], job_size=1) == []


def test_copies_between_devices_count(tmp_path):
    copy = {**ring("Memcpy PtoP (Device -> Device)"), "cat": "gpu_memcpy"}
    assert [row[4] for row in found(tmp_path, [copy])] == ["its name says 'PtoP'"]


@pytest.mark.parametrize("label", ["compute", "communication"])
def test_a_rule_settles_it(tmp_path, label):
    path = write(tmp_path / "trace.json", [*COMPUTE, ring("token_send")])
    trace = Trace.open(path, cache=False, classes={"token_": label})
    assert suspects(trace.rank(0), 2).empty


@pytest.mark.parametrize("name", GPU_TRACES)
def test_recordings_have_none(name):
    trace = Trace.open(shared_trace(name), cache=False)
    assert {rank: len(suspects(trace.rank(rank), 8)) for rank in trace.ranks} == dict.fromkeys(trace.ranks, 0)
    assert "maybe_communication" not in set(trace.health["check"])


@pytest.mark.parametrize("name", ["hta/trace_diff/control", "hta/trace_diff/test", "hta/trace_filter"])
def test_recorded_collectives_would_be_found_without_their_rules(monkeypatch, name):
    known = Trace.open(shared_trace(name), cache=False)
    assert "no_communication" not in set(known.health["check"])
    monkeypatch.setattr(module, "_classified", module._classified.__wrapped__)  # nothing is remembered
    monkeypatch.setattr(module, "DEVICE_RULES", ())
    blind = Trace.open(shared_trace(name), cache=False)
    rank = known.ranks[0]
    collectives = {text for text in known.rank(rank).names if text.startswith("nccl") and "Kernel" in text}
    assert collectives <= set(suspects(blind.rank(rank), 8)["name"])
    assert "no_communication" in set(blind.health["check"])


def test_health_tells_what_to_register(tmp_path):
    events = [*COMPUTE, slice_("moe::dispatch", "cpu_op", 0, 10), launch(), ring("void x::my_ring<4>(int)")]
    path = write(tmp_path / "trace.json", events, distributedInfo={"rank": 0, "world_size": 4})
    health = Trace.open(path, cache=False).health.set_index("check")
    told = health.loc["maybe_communication"]
    assert (told["severity"], told["count"]) == ("warning", 1)
    assert told["detail"] == (
        "30.0 µs on stream 27 may be communication: void x::my_ring, called by 'moe::dispatch'"
    )
    assert told["name"] == "void x::my_ring<4>(int)"
    pattern = told["remedy"].split("'")[1].replace("\\\\", "\\")
    ruled = Trace.open(path, cache=False, classes={pattern: "communication"})
    assert "maybe_communication" not in set(ruled.health["check"])
    assert "no communication in a rank of a job of 4" in health.loc["no_communication", "detail"]


def test_health_tells_of_five_and_suspects_of_all(tmp_path):
    rings = [ring(f"token_send_{nth}", stream=30 + nth) for nth in range(7)]
    path = write(tmp_path / "trace.json", [*COMPUTE, *rings], distributedInfo={"rank": 0, "world_size": 4})
    trace = Trace.open(path, cache=False)
    assert trace.health["check"].tolist().count("maybe_communication") == 5
    assert len(suspects(trace.rank(0), 4)) == 7


def test_two_files_are_a_job(tmp_path):
    for rank in (0, 1):
        write(tmp_path / "job" / f"rank{rank}.json", COMPUTE, distributedInfo={"rank": rank})
    health = Trace.open(tmp_path / "job", cache=False).health
    assert health.loc[health["check"] == "no_communication", "rank"].tolist() == [0, 1]


def test_a_job_of_one_may_be_silent(tmp_path):
    path = write(tmp_path / "trace.json", COMPUTE, distributedInfo={"rank": 0, "world_size": 1})
    assert "no_communication" not in set(Trace.open(path, cache=False).health["check"])
