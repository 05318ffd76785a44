"""A job on a cluster: the same answers as here, little on the wire, and failures in words."""

from __future__ import annotations

import json
import os
import pickle
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pytest

from hta_widgets import Scope, Trace, examples
from hta_widgets.analysis import ANALYSES
from hta_widgets.analysis.core import there
from hta_widgets.engine import Superseded, Ticket, submit
from hta_widgets.errors import ClusterError, MissingDataError
from hta_widgets.trace import cluster, far
from hta_widgets.trace.far import FarTrace
from tests.job.many_ranks import write_job
from tests.support import EVERY_CASE, crossed
from tests.trace.helpers import kernel, slice_, write

distributed = pytest.importorskip("distributed", reason="dask.distributed is an optional dependency")
pytestmark = pytest.mark.slow

# Their answers have a row for each event, call or moment: no bound on the bytes of a rank can hold.
PER_EVENT = {
    "idle_gaps", "launch_stats", "queue_length", "call_stacks", "memory_timeline", "memory_bandwidth",
    "critical_path",
}  # fmt: skip
JOBS = ["ddp_4ranks", "gpt2_fsdp_full_shard", "inference_cuda_graphs", "unlike ranks"]
# Each is asked of everything and of a part of the job whose ranks are unlike, and of a part of another one;
# the parts and the jobs turn. Its choices are asked of one of these jobs.
ASKED = [
    (name, kind)
    for turn, kind in enumerate(ANALYSES)
    for name in (JOBS if EVERY_CASE else (JOBS[turn % 3], "unlike ranks"))
]
FIRST_VIEW = 100_000
SELECTION = 10_000


class Once(distributed.Nanny):
    """Starts its worker, but no other one when that has died: it would take seconds."""

    started = False

    async def instantiate(self) -> Any:
        if self.started:
            return self.status
        self.started = True
        return await super().instantiate()


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, worker_class=Once
        ) as running,
        distributed.Client(running) as connected,
    ):
        yield connected


class Wire:
    """The bytes of what comes from the workers."""

    def __init__(self, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.received = 0
        gather = client.gather

        def measured(futures: Any, **options: Any) -> Any:
            answers = gather(futures, **options)
            self.received += sum(len(pickle.dumps(answer)) for answer in answers)
            return answers

        monkeypatch.setattr(client, "gather", measured)


def answer(ask: Any) -> pd.DataFrame | str:
    try:
        return ask()
    except MissingDataError as missing:
        return str(missing)


def assert_same(here: pd.DataFrame | str, far_away: pd.DataFrame | str) -> None:
    if isinstance(here, str):
        assert far_away == here
    else:
        pd.testing.assert_frame_equal(far_away, here, check_exact=True)


def unlike_ranks(folder: Path) -> Path:
    """A job of which each rank recorded what the others did not."""
    files = sorted(write_job(folder, 3, slow=2).iterdir())
    allocated = {"Bytes": 512, "Addr": 1, "Device Type": 1, "Device Id": 0, "Total Allocated": 512}
    own = (
        [
            slice_("region", "gpu_user_annotation", 1010, 300, 7, device=0, stream=7),
            slice_("kernel", "cuda_profiler_range", 1010, 50, 0, first_counter=1),
        ],
        [
            slice_("another region", "user_annotation", 1010, 300),
            slice_("kernel", "cuda_profiler_range", 1010, 50, 0, second_counter=0.5),
        ],
        [
            slice_("nn.Module: Linear_0", "python_function", 1001, 200, **{"Python id": 1}),
            {**slice_("[memory]", "cpu_instant_event", 1020, 0, **allocated), "ph": "i"},
        ],
    )
    for rank, (file, events) in enumerate(zip(files, own, strict=True)):
        content = json.loads(file.read_text())
        kept = [event for event in content["traceEvents"] if rank != 1 or event["cat"] != "kernel"]
        file.write_text(json.dumps({**content, "traceEvents": kept + events}))
    return folder


@pytest.fixture(scope="module")
def jobs(client: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Trace, FarTrace]]:
    found = {}
    for name in JOBS:
        is_unlike = name == "unlike ranks"
        path = unlike_ranks(tmp_path_factory.mktemp("jobs") / "unlike") if is_unlike else examples.path(name)
        far_away = Trace.open(path, client=client)
        assert isinstance(far_away, FarTrace)
        found[name] = (Trace.open(path), far_away)
    return found


def scopes(trace: Trace) -> list[Scope]:
    first, last = trace.extent_ns
    kernels = trace.rank(trace.ranks[-1])
    names = tuple(sorted({kernels.names[code] for code in kernels.name[kernels.is_device][:5].tolist()}))
    return [
        Scope(),
        Scope(ranks=(trace.ranks[-1],)),
        Scope(iterations=tuple(trace.iterations["iteration"].unique()[-2:].tolist())),
        Scope(window_ns=(first + (last - first) // 3, first + (last - first) // 2)),
        Scope(names=names),
        Scope(ranks=()),
    ]


@pytest.mark.parametrize(("name", "kind"), ASKED)
def test_every_answer_is_that_of_a_local_trace(
    jobs: dict[str, tuple[Trace, FarTrace]], name: str, kind: str
) -> None:
    """To the nanosecond, with the same types and in the same order; and no columns travel."""
    here, far_away = jobs[name]
    analysis = ANALYSES[kind]
    everything, *parts = scopes(here)
    turn = [*ANALYSES].index(kind)
    asked = [everything, *(parts[:1] if kind in ("overview", "slowdown") else parts)]
    if not EVERY_CASE:
        asked = [everything, asked[1 + (turn + JOBS.index(name)) % (len(asked) - 1)]][
            name != "unlike ranks" :
        ]
    for scope in asked:
        ask = answer(lambda scope=scope: analysis.function(here, scope))
        assert_same(ask, answer(lambda scope=scope: analysis.answer(far_away, scope)))
    for option in analysis.options if EVERY_CASE or (name == "unlike ranks") == turn % 2 else ():
        for choice in option.choices:
            chosen = {option.name: choice}
            ask = answer(lambda chosen=chosen: analysis.function(here, **chosen))
            assert_same(ask, answer(lambda chosen=chosen: analysis.answer(far_away, **chosen)))
    assert far_away.pulled == set()


def test_the_job_is_the_same(jobs: dict[str, tuple[Trace, FarTrace]]) -> None:
    for here, far_away in jobs.values():
        assert far_away.ranks == here.ranks
        pd.testing.assert_frame_equal(far_away.health, here.health)
        pd.testing.assert_frame_equal(far_away.iterations, here.iterations)
        assert (far_away.summary, far_away.extent_ns, far_away.job_size, far_away.several_jobs) == (
            here.summary, here.extent_ns, here.job_size, here.several_jobs,
        )  # fmt: skip
        assert far_away.metadata(here.ranks[0]) == here.metadata(here.ranks[0])
        assert [far_away.rank(rank).recording for rank in here.ranks] == [
            here.rank(rank).recording for rank in here.ranks
        ]
        assert far_away.pulled == set()


def test_other_clocks_and_classes_of_the_same_job(jobs: dict[str, tuple[Trace, FarTrace]]) -> None:
    here, far_away = jobs["inference_cuda_graphs"]
    rules = {"gemm": "communication"}
    for change in (lambda trace: trace.timed_by("device"), lambda trace: trace.with_classes(rules)):
        near, changed = change(here), change(far_away)
        assert isinstance(changed, FarTrace)
        for kind in ("temporal_breakdown", "kernel_durations"):
            assert_same(ANALYSES[kind].function(near), ANALYSES[kind].answer(changed))
        assert (
            not ANALYSES["kernel_durations"]
            .function(near)
            .equals(ANALYSES["kernel_durations"].function(here))
            or near.iteration_clock == "device"
        )
        assert changed.pulled == set()


def test_columns_come_for_one_rank_and_once(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here = examples.load("gpt2_ddp")
    far_away = Trace.open(examples.path("gpt2_ddp"), client=client)
    assert isinstance(far_away, FarTrace)
    assert (far_away.rank(1).label, far_away.rank(1).n) == ("1", here.rank(1).n)
    assert far_away.pulled == set()
    assert np.array_equal(far_away.rank(1).launch, here.rank(1).launch)
    assert far_away.pulled == {1}
    wire = Wire(client, monkeypatch)
    scope = Scope(ranks=(1,))
    pd.testing.assert_frame_equal(far_away.events(scope), here.events(scope))
    assert wire.received == 0
    pd.testing.assert_frame_equal(far_away.events(), here.events())
    assert far_away.pulled == {0, 1}
    select = lambda rank: rank.is_device  # noqa: E731
    pd.testing.assert_frame_equal(far_away.keep(select).events(), here.keep(select).events())


def test_columns_that_memory_has_no_room_for_come_again(client: Any) -> None:
    here = examples.load("ddp_4ranks")
    far_away = Trace.open(examples.path("ddp_4ranks"), client=client)
    assert isinstance(far_away, FarTrace)
    far_away.memory.limit = 1
    for rank in (0, 1, 0):
        assert np.array_equal(far_away.rank(rank).launch, here.rank(rank).launch)
        assert far_away.pulled == {rank}
    assert far_away.memory.dropped == 2
    assert far_away.rank(1).iterations.equals(here.rank(1).iterations)
    assert far_away.pulled == {0}


def test_a_question_that_is_left_leaves_the_ranks_where_they_are(client: Any) -> None:
    trace = Trace.open(examples.path("ddp_4ranks"), client=client)
    assert isinstance(trace, FarTrace)
    for ask in (
        lambda: trace.rank(1).start,
        lambda: ANALYSES["stragglers"].answer(trace),
        lambda: trace.events(),
    ):
        ticket = Ticket()
        ticket.revoke()
        with pytest.raises(Superseded):
            submit(ask, ticket).result()
    assert trace.pulled == set()
    assert len(trace.rank(1).start) == trace.rank(1).n
    assert len(ANALYSES["stragglers"].answer(trace)) > 0
    assert set(trace.events()["rank"]) == set(trace.ranks)


FIRST_PANELS = (
    "overview", "step_times", "temporal_breakdown", "kernel_breakdown", "stragglers", "rank_waits",
    "collectives",
)  # fmt: skip


def noisy_ranks(folder: Path) -> Path:
    """Ranks of 11,000 events with 200 collectives, no two events alike, of which one rank is late."""
    job = write_job(folder, 4, slow=1, steps=5, layers=40, products=8)
    for rank, file in enumerate(sorted(job.iterdir())):
        random = np.random.default_rng(rank)
        content = json.loads(file.read_text())
        events = content["traceEvents"]
        later, shorter = random.integers(0, 400, len(events)), random.integers(400, 800, len(events))
        late = random.integers(0, 15_000, len(events))
        for event, begins, less, waits in zip(
            events, later.tolist(), shorter.tolist(), late.tolist(), strict=True
        ):
            if event["name"].startswith("nccl"):  # which ends with the others', whenever it begins
                begins, less = waits, waits + less % 7
            event["ts"] = round(event["ts"] + begins / 1000, 3)
            event["dur"] = round(event["dur"] - less / 1000, 3)
        file.write_text(json.dumps(content))
    return job


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return noisy_ranks(tmp_path_factory.mktemp("noisy") / "job")


def test_little_travels_for_the_first_view_and_then_for_a_selection(
    client: Any, noisy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes of all results of an opening, the header's data and the first panels; then of a step."""
    here = Trace.open(noisy)
    assert min(here.rank(rank).n for rank in here.ranks) > 10_000
    wire = Wire(client, monkeypatch)
    trace = Trace.open(noisy, client=client)
    assert isinstance(trace, FarTrace)
    _ = trace.health, trace.summary, trace.iterations
    for kind in FIRST_PANELS:
        assert_same(ANALYSES[kind].function(here), ANALYSES[kind].answer(trace))
    assert 0 < wire.received < FIRST_VIEW * len(trace.ranks)

    scopes = (Scope(iterations=(2,)), Scope(ranks=(0, 2)), Scope(window_ns=(3_000_000, 8_000_000)))
    for scope, kind in crossed(scopes, FIRST_PANELS[1:]):
        before = wire.received
        assert_same(
            answer(lambda kind=kind, scope=scope: ANALYSES[kind].function(here, scope)),
            answer(lambda kind=kind, scope=scope: ANALYSES[kind].answer(trace, scope)),
        )
        assert wire.received - before < SELECTION * len(trace.ranks), (kind, scope)
    assert not trace.pulled


def test_collectives_are_matched_without_columns(
    client: Any, noisy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 20 bytes of each kernel, and what the culprits' devices did; workers send no columns either."""
    here = Trace.open(noisy)
    trace = Trace.open(noisy, client=client)
    assert isinstance(trace, FarTrace)
    wire = Wire(client, monkeypatch)
    found = ANALYSES["collectives"].answer(trace)
    assert len(found) == 4 * 200
    assert 0 < wire.received < 20 * len(found)
    for kind in ("stragglers", "rank_waits", "alpha_beta"):
        assert_same(answer(lambda kind=kind: ANALYSES[kind].function(here)), ANALYSES[kind].answer(trace))
    late = ANALYSES["stragglers"].answer(trace)
    assert late["counted"].sum() > 400 and late.groupby("rank")["blamed_ns"].sum().idxmax() == 1
    assert not trace.pulled and "_whole" not in vars(trace)
    assert wire.received < 40 * len(found)


@pytest.mark.parametrize(
    ("kind", "scope"),
    crossed(["slowdown", "step_times"], (Scope(), Scope(iterations=(1, 2)), Scope(ranks=(2, 3)))),
)
def test_no_columns_come_where_no_worker_can_hold_all_ranks(
    kind: str, scope: Scope, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What these ask of each rank alone is asked where it lies, all at once."""
    job = write_job(tmp_path / "job", 4, slow=3)
    here, trace = Trace.open(job), Trace.open(job, client=client)
    assert isinstance(trace, FarTrace)
    monkeypatch.setattr(FarTrace, "fits_a_worker", False)
    assert_same(ANALYSES[kind].function(here, scope), ANALYSES[kind].answer(trace, scope))
    assert trace.pulled == set()


def test_what_would_not_come_back_as_it_is_is_sent_as_it_is() -> None:
    """Arrow has no column of mixed objects; all else comes back in every bit, in fewer bytes."""
    mixed = pd.DataFrame({"a": [1, "x"]}, dtype=object)
    assert there._packed(mixed) is mixed
    names = ["ampere_sgemm_128x64_tn<float, float, 4>"] * 100
    frame = pd.DataFrame(
        {"name": pd.Categorical(names), "ns": np.arange(100), "rank": pd.array([None] * 100, "Int64")}
    )
    sent = there._packed(frame)
    assert isinstance(sent, bytes) and len(cluster.packed(sent)) < len(pickle.dumps(frame)) / 2
    pd.testing.assert_frame_equal(cluster.unpacked(cluster.packed(frame)), frame)
    pd.testing.assert_frame_equal(there._unpacked(sent), frame)
    pd.testing.assert_frame_equal(there._unpacked(mixed), mixed)


@pytest.mark.parametrize("kind", sorted(ANALYSES.keys() - PER_EVENT))
def test_little_travels_for_a_selection(
    jobs: dict[str, tuple[Trace, FarTrace]], kind: str, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, far_away = jobs["ddp_4ranks"]
    wire = Wire(client, monkeypatch)
    last = int(far_away.iterations["iteration"].max())
    answer(lambda: ANALYSES[kind].answer(far_away, Scope(iterations=(last,))))
    assert wire.received < SELECTION * len(far_away.ranks)
    assert wire.received or ANALYSES[kind].asks_little  # what that asks is asked once


def test_what_only_this_process_knows_is_computed_here(
    jobs: dict[str, tuple[Trace, FarTrace]], monkeypatch: pytest.MonkeyPatch, client: Any
) -> None:
    far_away = Trace.open(examples.path("gpt2_fsdp_full_shard"), client=client)
    assert isinstance(far_away, FarTrace)
    monkeypatch.setattr(there, "stated_by_user", lambda: True)
    assert_same(
        ANALYSES["roofline"].function(jobs["gpt2_fsdp_full_shard"][0]), ANALYSES["roofline"].answer(far_away)
    )
    assert far_away.pulled == {0, 1}


def test_mistakes_in_options_are_those_of_a_local_trace(jobs: dict[str, tuple[Trace, FarTrace]]) -> None:
    here, far_away = jobs["ddp_4ranks"]
    for kind in ("rank_waits", "temporal_breakdown"):
        with pytest.raises(ValueError) as expected:
            ANALYSES[kind].function(here, by="nothing")
        with pytest.raises(ValueError) as found:
            ANALYSES[kind].answer(far_away, by="nothing")
        assert str(found.value) == str(expected.value)


# -- opening -----------------------------------------------------------------------------------------------


def test_one_bad_file_costs_one_rank_and_progress_is_told(client: Any, tmp_path: Path) -> None:
    for rank in (0, 1):
        info = {"rank": rank, "world_size": 2}
        write(tmp_path / f"rank{rank}.json", [kernel("k", 1.001, 2.5)], distributedInfo=info)
    (tmp_path / "rank2.json").write_text('{"nodes": []}')
    seen: list[tuple[float, int]] = []
    trace = Trace.open(tmp_path, client=client, progress=lambda done, total, _: seen.append((done, total)))
    here = Trace.open(tmp_path)
    assert (trace.ranks, list(trace.failed)) == ([0, 1], ["rank2.json"])
    assert seen == [(1, 3), (2, 3), (3, 3)]
    pd.testing.assert_frame_equal(trace.health, here.health)
    pd.testing.assert_frame_equal(trace.events(), here.events())


def test_merged_files_and_recordings(client: Any, tmp_path: Path) -> None:
    for step in (1, 2):
        events = [{**kernel(f"k{step}", 1, 2), "pid": f"rank{rank} gpu"} for rank in (0, 1)]
        write(tmp_path / f"iteration_{step}" / "merged.json", events)
    here, trace = Trace.open(tmp_path), Trace.open(tmp_path, client=client)
    assert trace.ranks == here.ranks == [0, 1]
    assert (trace.recordings, trace.recording) == (here.recordings, "iteration_2")
    assert_same(ANALYSES["kernel_breakdown"].function(here), ANALYSES["kernel_breakdown"].answer(trace))
    first = Trace.open(tmp_path, client=client, recording="iteration_1")
    assert set(first.events()["name"]) == {"k1"}


def test_a_rank_that_seems_several_is_told_once(client: Any, tmp_path: Path) -> None:
    """Its events travel and become a rank again and again, on workers and here."""
    args = [{"Process Group Ranks": "[0, 1]", "Rank": rank} for rank in (0, 1)]
    events = [kernel(f"ncclDevKernel_{rank}", 1 + rank, 0.5) for rank in (0, 1)]
    events = [{**event, "args": {**event["args"], **each}} for event, each in zip(events, args, strict=True)]
    write(tmp_path / "merged.json", events)
    here = Trace.open(tmp_path)
    assert list(here.health["check"]).count("merged_ranks") == 1
    trace = Trace.open(tmp_path, client=client)
    pd.testing.assert_frame_equal(trace.health, here.health)
    for clock in ("device", "host"):
        pd.testing.assert_frame_equal(trace.timed_by(clock).health, here.timed_by(clock).health)
    assert len(trace.events()) == 2
    assert [problem.check for problem in trace.rank(trace.ranks[0]).table.problems] == ["merged_ranks"]


def test_workers_without_the_files_are_told(client: Any) -> None:
    """The memory file system of this process is not that of the workers."""
    with fsspec.open("memory://only_here/rank0.json", "wb") as file:
        file.write(b'{"traceEvents": []}')
    with pytest.raises(ClusterError, match=r"the workers cannot find the files.*every worker can read"):
        Trace.open("memory://only_here/", client=client)
    with pytest.raises(ClusterError, match="an open file of this process"):
        Trace.open(
            (
                Path(examples.path("ddp_4ranks"))
                / next(
                    path.name for path in Path(examples.path("ddp_4ranks")).iterdir() if path.suffix == ".gz"
                )
            ).open("rb"),
            client=client,
        )


def test_a_job_that_no_worker_can_hold_is_answered_here(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a rank's columns at a time; what follows from each rank alone still comes from the workers."""
    here = examples.load("ddp_4ranks")
    monkeypatch.setattr(far, "_PART_OF_WORKER", 1e-9)
    monkeypatch.setattr(far, "default_limit", lambda: 1)
    trace = Trace.open(examples.path("ddp_4ranks"), client=client)
    for kind in ("temporal_breakdown", "collectives", "stragglers", "rank_waits"):
        assert_same(ANALYSES[kind].function(here), ANALYSES[kind].answer(trace))
    assert not trace.pulled
    assert_same(ANALYSES["slowdown"].function(here), ANALYSES["slowdown"].answer(trace))
    # where time is lost is not collected over ranks that do not fit in memory
    found, expected = ANALYSES["overview"].answer(trace), ANALYSES["overview"].function(here)
    assert_same(expected.assign(places=""), found)
    assert trace.memory.dropped >= 3 and len(trace.pulled) <= 1


# -- failures ----------------------------------------------------------------------------------------------


def slow_down(seconds: float, released: Path) -> None:
    """Make a worker read slowly, until a file is there."""
    from hta_widgets.trace import far

    read = far.read_file

    def slowly(*args: Any) -> Any:
        until = time.monotonic() + seconds
        while time.monotonic() < until and not released.exists():
            time.sleep(0.02)
        return read(*args)

    far.read_file = slowly  # type: ignore[assignment]


def files_of(tmp_path: Path, count: int) -> Path:
    tmp_path.mkdir(exist_ok=True)
    for rank in range(count):
        info = {"rank": rank, "world_size": count}
        write(tmp_path / f"rank{rank}.json", [kernel("k", 1 + rank, 2)], distributedInfo=info)
    return tmp_path


def test_a_lost_scheduler_is_told(tmp_path: Path) -> None:
    running = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, processes=False, protocol="tcp://"
    )
    client = distributed.Client(running, timeout=2)
    trace = Trace.open(files_of(tmp_path, 2), client=client)
    running.close()
    with pytest.raises(ClusterError, match=r"Start the cluster again"):
        ANALYSES["temporal_breakdown"].answer(trace)
    client.close()
    with pytest.raises(ClusterError, match=r"Start the cluster again"):
        trace.events()


def test_a_slow_worker_is_waited_for_and_can_be_left(client: Any, tmp_path: Path) -> None:
    """The others' files are told as read meanwhile; cancelling takes less than a second."""
    folder, released = files_of(tmp_path / "job", 4), tmp_path / "released"
    slow = next(iter(client.scheduler_info()["workers"]))
    client.run(slow_down, 1.5, released, workers=[slow])
    seen: list[float] = []
    trace = Trace.open(folder, client=client, cache=False, progress=lambda *_: seen.append(time.monotonic()))
    assert trace.ranks == [0, 1, 2, 3]
    assert seen[-1] - seen[0] > 0.75

    client.run(slow_down, 60.0, released)
    ticket = Ticket()
    opening = submit(lambda: Trace.open(folder, client=client, cache=False), ticket)
    time.sleep(0.5)
    ticket.revoke()
    with pytest.raises(Superseded):
        opening.result(5.0)
    released.touch()


# What breaks workers comes last: they are those of all tests.


def test_a_killed_worker_costs_time_alone(client: Any) -> None:
    here = examples.load("ddp_4ranks")
    trace = Trace.open(examples.path("ddp_4ranks"), client=client)
    assert len(ANALYSES["stragglers"].answer(trace))
    pids = client.run(os.getpid)
    os.kill(next(iter(pids.values())), signal.SIGKILL)
    for kind in ("temporal_breakdown", "stragglers"):
        assert_same(ANALYSES[kind].function(here), ANALYSES[kind].answer(trace))


def dies(*_: Any) -> None:
    os._exit(1)


def test_workers_that_die_over_the_same_work_are_told(client: Any, tmp_path: Path) -> None:
    client.cluster.scheduler.allowed_failures = 0
    trace = Trace.open(files_of(tmp_path, 1), client=client)
    with pytest.raises(ClusterError, match=r"workers died again and again.*more memory"):
        trace.each(dies)
