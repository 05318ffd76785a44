"""Which file is which rank, and that none is lost."""

import io
import json

import fsspec
import pytest

from hta_widgets.errors import TraceFormatError, TraceNotFoundError
from hta_widgets.trace import Trace
from hta_widgets.trace.reader.file_names import TraceFile, natural, rank_in_name
from tests.trace.helpers import kernel, slice_, write

EVENTS = [slice_("aten::add", "cpu_op", 0, 5), kernel("add_kernel", 2, 1)]


def opened(path, **options):
    return Trace.open(path, cache=False, **options)


def test_a_trace_has_the_name_of_what_was_opened(tmp_path):
    folder = tmp_path / "run_17"
    folder.mkdir()
    files = [write(folder / f"rank{rank}.json", EVENTS) for rank in range(2)]
    assert opened(folder).name == opened(f"{folder}/").name == opened(f"file://{folder}/").name == "run_17"
    assert opened(files[0]).name == "rank0.json"
    assert opened(files).name == opened(files[0].open("rb")).name == ""


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 34),
        ("rank_3_trace.json", 3),
        ("rank3.json", 3),
        ("dp0_pp0_tp1_dcp0_ep0_rank5.1764.pt.trace.json.gz", 5),
        ("worker0.pt.trace.json.gz", 0),
        ("primus-exp-rank[3].1764000000000.pt.trace.json.gz", 3),
        ("1764000000-TP-2.trace.json.gz", None),  # a place in a grid
        ("trace_7.json", None),  # an experiment, a process id, a step ...
        ("host_12345.1718000000000.pt.trace.json", None),
        ("gaunernst_bert-small-uncased__1016001.json.gz", None),
        ("profile.json", None),
    ],
)
def test_rank_from_file_name(name, rank):
    assert rank_in_name(TraceFile(None, name)) == rank


def test_names_sort_by_number():
    assert sorted(["rank10.json", "rank2.json", "a.json"], key=natural) == [
        "a.json",
        "rank2.json",
        "rank10.json",
    ]


def test_files_own_rank_wins_over_name_and_order(tmp_path):
    write(tmp_path / "rank_1.json", EVENTS, distributedInfo={"rank": 6})
    write(tmp_path / "x.json", [*EVENTS, {**kernel("ncclDevKernel_AllReduce", 4, 1), "args": {"Rank": 2}}])
    write(tmp_path / "rank_4.json", EVENTS)
    write(tmp_path / "y.json", EVENTS)
    assert opened(tmp_path).ranks == [0, 2, 4, 6]


@pytest.mark.parametrize(("stated", "rank"), [(2**31 - 1, 2**31 - 1), (2**31, 0)])
def test_a_rank_has_at_most_31_bits(tmp_path, stated, rank):
    exchange = {**kernel("ncclDevKernel_AllReduce", 4, 1), "args": {"Rank": stated}}
    write(tmp_path / "x.json", [*EVENTS, exchange])
    assert opened(tmp_path).ranks == [rank]


def test_two_files_without_rank_make_two_ranks(tmp_path):
    write(tmp_path / "a.json", EVENTS)
    write(tmp_path / "b.json", EVENTS)
    trace = opened(tmp_path)
    assert trace.ranks == [0, 1]
    assert trace.rank(1).path.endswith("b.json")
    assert "rank_guessed" in set(trace.health["check"])


def test_files_without_a_rank_are_numbered_in_the_order_of_the_numbers_in_their_names(tmp_path):
    for name in ("part2.json", "part10.json"):
        write(tmp_path / name, EVENTS)
    trace = opened(tmp_path)
    assert [trace.rank(rank).path.rpartition("/")[2] for rank in trace.ranks] == ["part2.json", "part10.json"]


def test_unreadable_files_of_one_name_are_told_apart(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "trace.json").write_text("not json")
    trace = opened([tmp_path / "a/trace.json", write(tmp_path / "c.json", EVENTS), tmp_path / "b/trace.json"])
    assert set(trace.failed) == {"trace.json (1 of 2)", "trace.json (2 of 2)"}


def test_duplicate_ranks_are_both_kept_and_reported(tmp_path):
    for name, rank in (("a.json", 0), ("b.json", 0), ("c.json", 5)):
        write(tmp_path / name, EVENTS, distributedInfo={"rank": rank})
    trace = opened(tmp_path)
    assert trace.ranks == [0, 5, 6]
    assert trace.rank(6).label == "0 (b.json)"
    row = trace.health[trace.health["check"] == "duplicate_rank"].iloc[0]
    assert (row["rank"], row["severity"]) == (6, "warning")


def test_foreign_and_broken_files_do_not_sink_the_others(tmp_path):
    write(tmp_path / "rank0.json", EVENTS)
    (tmp_path / "settings.json").write_text('{"lr": 0.1}')
    (tmp_path / "rank1.json").write_text("not json")
    (tmp_path / "run_et.json").write_text(json.dumps({"schema": "1.0", "nodes": []}))
    (tmp_path / "notes.txt").write_text("ignored")
    trace = opened(tmp_path)
    assert trace.ranks == [0]
    assert set(trace.failed) == {"rank1.json"}
    assert trace.files.set_index("file").loc["settings.json", "taken_as"] == "left out"
    assert set(trace.health["check"]) >= {"unreadable", "skipped"}


def test_only_foreign_files_name_each_reason(tmp_path):
    (tmp_path / "a.json").write_text('{"lr": 0.1}')
    (tmp_path / "b.json").write_text('{"nodes": []}')
    with pytest.raises(TraceFormatError, match=r"(?s)a\.json.*b\.json"):
        opened(tmp_path)


def test_nothing_to_read(tmp_path):
    for missing in (tmp_path / "absent", tmp_path):
        with pytest.raises(TraceNotFoundError):
            opened(missing)
    with pytest.raises(TraceNotFoundError):
        opened([])
    there = write(tmp_path / "rank0.json", EVENTS)
    for missing in (tmp_path / "absent", str(tmp_path / "absent")):  # no machine is out of reach
        for among in ([there, missing], {0: there, 1: missing}):
            with pytest.raises(TraceNotFoundError):
                opened(among)
    with pytest.raises(TypeError):
        opened(3)


def test_one_level_down_only_if_the_folder_has_none(tmp_path):
    write(tmp_path / "rank_1" / "trace.json", EVENTS)
    write(tmp_path / "rank_0" / "trace.json", EVENTS)
    trace = opened(tmp_path)
    assert trace.ranks == [0, 1]
    assert "discovery" in set(trace.health["check"])
    write(tmp_path / "rank9.json", EVENTS)
    assert opened(tmp_path).ranks == [9]


def test_every_kind_of_source(tmp_path):
    a, b = write(tmp_path / "a.json", EVENTS), write(tmp_path / "b.json", EVENTS)
    assert opened([a, str(b)]).ranks == [0, 1]
    assert opened({3: a, 8: str(b)}).ranks == [3, 8]
    assert opened(io.BytesIO(a.read_bytes())).ranks == [0]
    assert opened(fsspec.open(str(a))).ranks == [0]


def test_remote_folder_and_file():
    system = fsspec.filesystem("memory")
    for rank in (0, 1):
        with system.open(f"/job/rank{rank}.json", "wb") as file:
            file.write(json.dumps({"traceEvents": EVENTS}).encode())
    assert opened("memory://job").ranks == [0, 1]
    assert opened("memory://job/rank1.json").ranks == [1]
    with pytest.raises(TraceNotFoundError):
        opened("memory://nowhere")


def test_progress_reports_files_and_may_cancel(tmp_path):
    write(tmp_path / "rank0.json", EVENTS)
    write(tmp_path / "rank1.json", EVENTS)
    seen = []
    opened(tmp_path, progress=lambda done, total, text: seen.append((done, total)))
    assert seen[-1] == (2, 2)

    def cancel(done, total, text):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        opened(tmp_path, progress=cancel)
