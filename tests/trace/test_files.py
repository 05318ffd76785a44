"""What each file of a folder is: which rank of which recording, or why it is none."""

from __future__ import annotations

import json
import pickle
import sqlite3
import tarfile
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pytest

from hta_widgets import analysis
from hta_widgets.cli.run import main
from hta_widgets.errors import TraceFormatError, TraceNotFoundError
from hta_widgets.trace import Trace
from tests.support import EVERY_CASE, shared_input
from tests.trace.helpers import kernel, slice_, write
from tests.trace.layouts import CONVENTIONS, Layout, document, events, layouts, strays


def opened(path: Any, **options: Any) -> Trace:
    return Trace.open(path, cache=False, **options)


def taken(trace: Trace) -> dict[str, dict[str, int | None]]:
    """Of each sort of file the names, with their ranks."""
    frame = trace.files
    assert (frame["reason"] != "").all(), "every file has a reason"
    assert not frame["file"].duplicated().any() or "merged" in " ".join(frame["file"])
    sorts: dict[str, dict[str, int | None]] = {}
    for row in frame.itertuples():
        sorts.setdefault(row.taken_as, {})[row.file] = None if row.rank is None else row.rank
    return sorts


# -- the inputs with known answers -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "ranks", "left_out", "others"),
    [
        ("cases/i05_vllm_dp2_tp2_noasync", [0, 1, 2, 3], 0, 0),
        ("cases/k03_vllm_dp2_tp2_global_ranks", [0, 1, 2, 3], 0, 0),
        ("cases/d04_vllm_async", [0, 1], 1, 0),
        ("cases/d14_dynolog_pid", [0, 1], 0, 0),
        ("cases/i12_dynolog_with_rank", [0, 1], 0, 0),
        ("cases/d05_sglang_merged", [0, 1], 1, 0),
        ("cases/d06_sglang_merged_alone", [0, 1], 0, 0),
        ("cases/d15_with_et", [0, 1], 2, 0),
        ("cases/i07_vllm_tp2_two_rounds", [0, 1], 0, 2),
        ("cases/d13_restart_iters", [0, 1], 0, 2),
        ("cases/d08_trtllm", [0, 1], 0, 0),
        ("cases/d11_plain_named_gz", [0, 1], 0, 0),
        ("cases/h08_tb_names_no_dist", [0, 1], 0, 0),
        ("cases/h33_gz_two_members", [0], 0, 0),
        ("cases/b06_npu_trace_view_str", [0], 0, 0),
        ("recordings/three_experiments", [0], 0, 2),
        ("recordings/moe_log_before", [0, 1], 0, 2),
        ("traces/hta/trace_diff", [1], 0, 1),
        ("traces/tracelens/mi300", [0], 0, 2),
        ("recordings/moe_compile_after_B", [0, 1], 0, 0),
        ("recordings/cpu_ddp_slow_rank2", [0, 1, 2, 3], 0, 0),
    ],
)
def test_the_files_of_known_inputs(case: str, ranks: list[int], left_out: int, others: int) -> None:
    trace = opened(shared_input(case))
    sorts = taken(trace)
    assert trace.ranks == ranks
    assert len(sorts.get("left out", ())) == left_out
    assert len(sorts.get("another recording", ())) == others
    assert "unreadable" not in sorts and not trace.several_jobs
    severe = trace.health.loc[trace.health["severity"] == "error"]
    assert severe.empty
    world = trace.summary["world_size"]
    assert world is None or len(ranks) <= world
    assert bool(trace.file_notes) >= bool(left_out or others)


def test_replicas_that_number_their_ranks_anew_follow_each_other() -> None:
    trace = opened(shared_input("cases/i05_vllm_dp2_tp2_noasync"))
    texts = [trace.rank(rank).table.dictionary("process_group_ranks") for rank in trace.ranks]
    assert [json.loads(text) for (text,) in texts] == ["[0, 1]", "[0, 1]", "[2, 3]", "[2, 3]"]
    assert (trace.summary["world_size"], trace.absent.count) == (4, 0)
    assert "replica dp1" in trace.files["reason"].iloc[2]


def test_experiments_are_opened_one_at_a_time() -> None:
    path = shared_input("recordings/three_experiments")
    names = ("trace_04.json.gz", "trace_05.json.gz", "trace_06.json.gz")
    assert opened(path).recordings == names
    trace = opened(path, recording=names[0])
    assert (trace.recording, trace.rank(0).path.rpartition("/")[2]) == (names[0], names[0])
    assert opened(path, recording=1).recording == names[1]
    with pytest.raises(TraceNotFoundError, match=r"did you mean 'trace_05\.json\.gz'"):
        opened(path, recording="trace_5.json.gz")


@pytest.mark.parametrize("server", ["sglang_decode", "vllm_decode_full"])
def test_a_capture_beside_its_replay_is_one_server(tmp_path: Path, server: str) -> None:
    for folder in ("traces/tracelens/inference", "recordings/captures"):
        for file in shared_input(f"{folder}/{server}").iterdir():
            (tmp_path / file.name).symlink_to(file)
    trace = opened(tmp_path)
    assert (trace.ranks, trace.several_jobs) == ([0], "")
    assert trace.rank(0).recording.kind != "graph capture"
    assert "capture of the graphs" in " ".join(trace.file_notes)


# -- the same kinds, made here -----------------------------------------------------------------------------


def judged(tmp_path: Path, layout: Layout) -> None:
    trace = opened(layout.lay(tmp_path))
    sorts = taken(trace)
    assert sorts.pop("rank") == layout.ranks
    others, left_out = set(sorts.pop("another recording", {})), set(sorts.pop("left out", {}))
    assert others - layout.strays == layout.others, "a front end may be of an earlier recording"
    assert left_out | (others & layout.strays) == layout.strays
    assert not sorts
    assert len(trace.ranks) == len(layout.ranks) == len(set(layout.ranks.values()))


@pytest.mark.parametrize("number", range((5 if EVERY_CASE else 2) * len(CONVENTIONS)))
def test_layouts_of_frameworks(tmp_path: Path, number: int) -> None:
    *_, layout = layouts(number + 1, seed=1)
    judged(tmp_path, layout)


# a thousand layouts with HTA_WIDGETS_EVERY_CASE, else a hundred
@pytest.mark.slow
@pytest.mark.parametrize("part", range(10 if EVERY_CASE else 1))
def test_hundreds_of_layouts(tmp_path: Path, part: int) -> None:
    for number, layout in enumerate(layouts(100, seed=2 + part)):
        judged(tmp_path / str(number), layout)


def test_a_process_id_is_no_rank_and_a_number_from_0_on_may_be_one(tmp_path: Path) -> None:
    for name in ("trace_1700.json", "trace_1701.json"):
        write(tmp_path / "pids" / name, events(100 + int(name[9]), [0, 1]))
    for number in range(3):
        write(tmp_path / "ranks" / f"trace_{number}.json", events(100 + number, [0, 1, 2]))
    assert opened(tmp_path / "pids").ranks == [0, 1]
    frame = opened(tmp_path / "ranks").files
    assert frame["rank"].tolist() == [0, 1, 2] and "number in its name" in frame["reason"].iloc[0]


def test_a_copy_is_no_second_rank(tmp_path: Path) -> None:
    text = document(events(100, [0]))
    Layout("copies", {"trace.json": text, "trace.json.gz": text}).lay(tmp_path)
    trace = opened(tmp_path)
    assert trace.ranks == [0]
    assert "a copy of trace.json" in " ".join(trace.file_notes)


def test_the_root_of_a_broadcast_is_not_the_rank_of_its_file(tmp_path: Path) -> None:
    def collective(name: str, rank: int, at: float) -> dict[str, Any]:
        args = {"Collective name": name, "Rank": rank, "Process Group Ranks": "[2, 5]"}
        return {**kernel(name, at, 1), "args": {**kernel(name, at, 1)["args"], **args}}

    write(tmp_path / "a.json", [collective("broadcast", 0, 1), collective("allreduce", 1, 3)])
    trace = opened(tmp_path)
    assert trace.ranks == [5], "its place in the group is 1, which is rank 5"
    assert "merged_ranks" not in set(trace.health["check"])


def test_instant_events_on_processes_of_their_own_do_not_keep_a_merged_file_together(tmp_path: Path) -> None:
    marks = [
        {"ph": "i", "s": "g", "name": "Iteration Start", "pid": "Traces", "tid": "Trace", "ts": 1},
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 900},
        {**slice_("PyTorch Profiler (0)", "Trace", 0, 900), "pid": "Spans"},
    ]
    ranks = [
        {**event, "pid": f"[TP{rank:02d}] {event['pid']}"} for rank in (0, 1) for event in events(100, [0, 1])
    ]
    assert opened(write(tmp_path / "merged.json", [*ranks, *marks])).ranks == [0, 1]


def test_a_front_end_is_left_out_beside_ranks_and_opened_alone(tmp_path: Path) -> None:
    front = write(tmp_path / "host_9.async_llm.1780000009.pt.trace.json", [slice_("poll", "cpu_op", 0, 5)])
    assert opened(tmp_path).ranks == [0]
    for rank in (0, 1):
        text = document(events(100 + rank, [0, 1]), rank, 2)
        (tmp_path / f"rank{rank}.json").write_bytes(text)
    trace = opened(tmp_path)
    assert trace.ranks == [0, 1] and front.name in " ".join(trace.file_notes)


def test_more_files_than_ranks_are_said(tmp_path: Path) -> None:
    for rank in (0, 1, 5):
        write(tmp_path / f"rank{rank}.json", events(100 + rank, [0, 1]), distributedInfo={"world_size": 2})
    assert "3 files for a job of 2 ranks" in " ".join(opened(tmp_path).file_notes)


def test_the_summary_begins_with_what_was_not_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for turn in (1, 2):
        text = document(events(4000 + turn, [0], 100 * turn))
        (tmp_path / f"run_{turn}.json").write_bytes(text)
    assert main(["summary", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("  ! 2 recordings") and "--recording run_1.json" in " ".join(lines[1:4])
    assert main(["summary", str(tmp_path), "--recording", "run_1.json", "--json"]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert "run_1.json" in json.dumps(files)


# -- files of other kinds ----------------------------------------------------------------------------------


def _sqlite(path: Path, table: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"create table {table} (start integer)")
    connection.commit()
    connection.close()


def _foreign(folder: Path) -> dict[str, str]:
    """Files of other kinds, and a word by which each is called."""
    texts: dict[str, tuple[bytes, str]] = {
        "a.pftrace": (bytes.fromhex("0a1250015801") + bytes(range(16)), "Perfetto"),
        "b.pickle": (pickle.dumps({"segments": [1], "device_traces": []}), "memory snapshot"),
        "c_trace_rank_0": (
            pickle.dumps({"nccl_version": "2", "pg_status": {}, "entries": []}),
            "flight recorder",
        ),
        "d.nsys-rep": (b"\0\1\2\3", "Nsight Systems"),
        "e.xplane.pb": (b"\n\x20\x08\x01\x12\x09/host:CPU", "XPlane"),
        "f.et": (b"\x07\n\x050.0.4", "Chakra"),
        "g.json": (b'{"schema": "1.1", "pid": 3, "nodes": []}', "execution trace"),
        "h.json": (b"[[1, 2], [[3, 4]]]", "memory timeline"),
        "i.json": (b'{"rocprofiler-sdk-tool": []}', "rocprofv3"),
        "j.json": (b'{"version": "2.1", "pg_config": {}, "entries": []}', "flight recorder"),
        "k.prof": (b"\n\x04\x08\x01\x10\x02", "pprof"),
        "l.pt": (pickle.dumps([1, 2]), "pickle"),
    }
    for name, (text, _) in texts.items():
        (folder / name).write_bytes(text)
    _sqlite(folder / "m.sqlite", "CUPTI_ACTIVITY_KIND_KERNEL")
    _sqlite(folder / "n.db", "rocpd_kernel")
    with zipfile.ZipFile(folder / "o.zip", "w") as archive:
        archive.writestr("rank0.json", "{}")
    with tarfile.open(folder / "p.tar.gz", "w:gz") as tar:
        tar.add(folder / "g.json", "g.json")
    words = {name: word for name, (_, word) in texts.items()}
    return {**words, "m.sqlite": "Nsight Systems", "n.db": "rocprofv3", "o.zip": "zip", "p.tar.gz": "tar"}


def test_files_of_other_kinds_are_named_by_their_content(tmp_path: Path) -> None:
    for name, word in _foreign(tmp_path).items():
        with pytest.raises(TraceFormatError, match=word):
            opened(tmp_path / name)
    (tmp_path / "rank0.json").write_bytes(document(events(100, [0])))
    trace = opened(tmp_path)
    reasons = trace.files.set_index("file")["reason"]
    assert trace.ranks == [0] and not trace.failed
    for name in ("a.pftrace", "b.pickle", "d.nsys-rep", "g.json", "h.json", "m.sqlite"):
        assert reasons[name]
    assert set(trace.health.loc[trace.health["check"] == "skipped", "severity"]) == {"info"}


def test_a_folder_without_a_trace_says_what_lies_there(tmp_path: Path) -> None:
    (tmp_path / "a.nsys-rep").write_bytes(b"\0\1\2\3")
    with pytest.raises(
        TraceNotFoundError, match=r"a\.nsys-rep is a report of Nsight Systems.*export_chrome_trace"
    ):
        opened(tmp_path)


def test_a_damaged_rank_is_an_error_and_not_another_kind_of_file(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").write_bytes(document(events(100, [0, 1]), 0, 2))
    (tmp_path / "rank1.json").write_text("{}")
    (tmp_path / "settings.json").write_text("{}")
    trace = opened(tmp_path)
    assert set(trace.failed) == {"rank1.json"}
    assert set(taken(trace)["left out"]) == {"settings.json"}
    assert set(trace.health.loc[trace.health["severity"] == "error", "check"]) == {"unreadable"}


def test_jobs_of_one_rank_each_are_recordings(tmp_path: Path) -> None:
    for name in ("eager", "compiled"):
        (tmp_path / f"{name}.json").write_bytes(document(events(100, [0], 1.0 + (name == "eager")), 0, 1))
    trace = opened(tmp_path)
    assert (trace.recordings, trace.ranks) == (("compiled.json", "eager.json"), [0])
    for rank in (0, 1):
        name = f"dp{rank}_pp0_tp0_dcp0_ep0_rank0.178000000000000{rank}.pt.trace.json"
        (tmp_path / "server" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "server" / name).write_bytes(document(events(100 + rank, [0]), 0, 1))
    assert opened(tmp_path / "server").ranks == [0, 1]


# -- jobs in one folder --------------------------------------------------------------------------------------


def program(
    model: str, seconds: float = 1.0, pid: int = 100, group: tuple[int, ...] = (0,)
) -> list[dict[str, Any]]:
    """A process with ten kernels of a model."""
    return [
        *events(pid, list(group), seconds),
        *(kernel(f"{model}_{number}", seconds * 1e6 + 300 + 10 * number, 5) for number in range(10)),
    ]


def laid(folder: Path, **files: bytes) -> Trace:
    """A folder with these files, opened."""
    return opened(Layout("jobs", {f"{name}.json": text for name, text in files.items()}).lay(folder))


def unlisted(seconds: float, pid: int) -> list[dict[str, Any]]:
    """A process that communicates, as old versions of PyTorch record it: without the group."""
    return [{**each, "args": {"stream": 7}} for each in events(pid, [0, 1], seconds)]


JOB = [0, 1]  # the ranks of a job of two


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (
            {"a": document(events(1, JOB), 1, 2), "b": document(events(2, JOB, 1), 1, 4)},
            "sizes of their jobs",
        ),
        ({"a": document(events(1, JOB), 0, 2), "b": document(events(2, [0], 90))}, "times"),
        ({"a": document(events(1, JOB), 0, 2), "b": document(events(2, [0], 90), 0, 1)}, "sizes"),
        ({"a": document(program("resnet")), "b": document(program("bert"))}, "their kernels"),
        ({"a_rank0": document(program("resnet")), "b_rank0": document(program("bert"))}, "their names"),
        ({"a": document(program("bert")), "b": document(program("bert", 90))}, "times"),
        ({"late_a": document(events(1, JOB)), "late_b": document(events(2, JOB, 90))}, ""),
        ({"late_a": document(events(1, JOB), 0, 2), "late_b": document(events(2, JOB, 90), 1, 2)}, ""),
        ({"late_a": document(events(1, JOB), 0, 2), "late_b": document(events(2, [0], 90), 1, 2)}, ""),
        ({"late_a": document(events(1, JOB), 0, 2), "late_b": document(events(2, JOB, 90))}, ""),
        ({"late_a": document(unlisted(1, 5)), "late_b": document(unlisted(90, 6))}, ""),
        ({"rank0": document(program("first")), "rank1": document(program("second", 90))}, ""),
        ({"a": document(program("bert")), "b": document(program("bert", pid=200))}, ""),
        ({"a": document(program("bert")), "b": document(events(2, [0]))}, ""),
        (
            {
                "trainer": document(program("bert", group=(0, 1))),
                "sampler": document(program("qwen", group=(0, 1), pid=9)),
            },
            "",
        ),
    ],
)
def test_jobs_are_told_apart_and_the_ranks_of_one_are_not(
    tmp_path: Path, files: dict[str, bytes], why: str
) -> None:
    trace = laid(tmp_path, **files)
    sorts = taken(trace)
    assert len(trace.ranks) == len(sorts["rank"]) == (1 if why else 2)
    assert len(sorts.get("another recording", ())) == (1 if why else 0)
    assert len(trace.recordings) == (2 if why else 0)
    assert (why in trace.file_notes[0] and trace.recordings[0] in trace.file_notes[0]) if why else True
    assert not (why and trace.several_jobs)


def test_a_file_that_may_be_of_two_jobs_leaves_all_together(tmp_path: Path) -> None:
    silent = document(events(3, [0]))
    trace = laid(tmp_path, a=document(events(1, JOB), 0, 2), b=document(events(2, JOB), 1, 4), c=silent)
    assert len(trace.ranks) == 3 and "2 and 4 ranks" in trace.several_jobs


def test_two_jobs_of_several_ranks_each_recorded_twice(tmp_path: Path) -> None:
    for size in (2, 3):
        for turn in (1, 2):
            for rank in range(size):
                own = events(10 * size + rank, list(range(size)), 60 * turn + size)
                (tmp_path / f"{size}{turn}{rank}.json").write_bytes(document(own, rank, size))
    trace = opened(tmp_path)
    assert trace.recordings == ("1", "2", "3", "4")
    for number, (turn, size) in enumerate([(1, 2), (1, 3), (2, 2), (2, 3)]):
        one = opened(tmp_path, recording=number)
        names = {f"{size}{turn}{rank}.json": rank for rank in range(size)}
        assert taken(one)["rank"] == names and len(taken(one)["another recording"]) == 10 - size


def test_two_runs_whose_files_state_no_rank(tmp_path: Path) -> None:
    for pid, second in ((4000, 1), (4007, 1), (5000, 90), (5003, 90)):
        (tmp_path / f"libkineto_trace_{pid}.json").write_bytes(document(events(pid, JOB, second)))
    assert set(taken(opened(tmp_path))["rank"]) == {"libkineto_trace_5000.json", "libkineto_trace_5003.json"}
    (tmp_path / "libkineto_trace_5003.json").unlink()
    assert len(opened(tmp_path).ranks) == 3  # ranks of a host whose clock is behind, or two runs


def test_jobs_in_folders_are_called_like_their_folders(tmp_path: Path) -> None:
    for name, size in (("before", 8), ("after", 2)):
        write(
            tmp_path / name / "x.json", events(1, JOB, size), distributedInfo={"rank": 1, "world_size": size}
        )
    trace = opened(tmp_path)
    assert set(trace.recordings) == {"before", "after"} and trace.recording == "before"


def test_folders_of_experiments_are_recordings_and_what_is_in_one_may_be_several(tmp_path: Path) -> None:
    texts = {
        "alone/trace.json": document(events(1, [0]), 0, 1),
        "pair/rank0.json": document(events(2, JOB), 0, 2),
        "pair/rank1.json": document(events(3, JOB), 1, 2),
        "sweep/x1.json": document(events(4, [0], 50), 0, 1),
        "sweep/x2.json": document(events(5, [0], 90), 0, 1),
    }
    path = Layout("experiments", texts).lay(tmp_path)
    assert opened(path).recordings == ("alone", "pair", "sweep/x1.json", "sweep/x2.json")
    assert taken(opened(path, recording="pair"))["rank"] == {"pair/rank0.json": 0, "pair/rank1.json": 1}
    assert set(taken(opened(path))["rank"]) == {"sweep/x2.json"}


def test_what_lies_deeper_than_the_folders_that_are_read_is_listed(tmp_path: Path) -> None:
    for name in ("rank0/trace.json", "old/rank0/trace.json"):
        write(tmp_path / name, events(100, [0]))
    trace = opened(tmp_path)
    assert taken(trace) == {"rank": {"rank0/trace.json": 0}, "left out": {"old/rank0/trace.json": pd.NA}}
    assert "1 file in subfolders (old/rank0) left out" in " ".join(trace.file_notes)


def test_folders_of_nodes_are_one_job_also_beside_another(tmp_path: Path) -> None:
    texts = {f"node{node}/rank0.json": document(events(10 + node, JOB)) for node in (0, 1)}
    trace = opened(Layout("nodes", texts).lay(tmp_path / "alone"))
    assert len(trace.ranks) == 2
    texts["eval/rank0.json"] = document(events(7, [0], 90), 0, 1)
    trace = opened(Layout("nodes", texts).lay(tmp_path / "beside"))
    assert not {"node0", "node1"} <= set(trace.recordings) or len(trace.ranks) == 3


def test_two_conventions_in_one_folder_lose_no_file_in_silence(tmp_path: Path) -> None:
    for number in range(20):
        random = Random(number)
        one, other = (make(random) for make in random.sample(CONVENTIONS, 2))
        written = {**strays(random, one).texts, **other.texts}
        trace = opened(other.lay(one.lay(tmp_path / str(number))))
        assert set(trace.files["file"]) == {name for name in written if not name.endswith("notes.txt")}
        assert len(set(trace.ranks)) == len(trace.ranks)
        checks = {"duplicate_rank", "several_jobs", "rank_guessed"}
        doubted = checks & set(trace.health["check"])
        apart = len(trace.ranks) in (len(one.ranks), len(other.ranks))
        assert apart or trace.file_notes or doubted, (one.name, other.name)


def test_a_rank_whose_every_step_is_unusual_has_an_overview() -> None:
    folder = shared_input("recordings/three_experiments")
    ranks = {number: folder / f"trace_0{number}.json.gz" for number in (4, 5, 6)}
    assert len(analysis.overview(opened(ranks)))
