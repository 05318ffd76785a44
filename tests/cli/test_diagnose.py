"""`diagnose`, `event`, `what-if --finding` and `check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hta_widgets import TraceExplorer, examples
from tests.cli.conftest import Run
from tests.loops.program import Loop, simulated, write

pytestmark = pytest.mark.usefixtures("opened_once")

DDP = examples.path("ddp_4ranks")
GPT2 = examples.path("gpt2_ddp")


def test_markdown_by_default_json_on_request_or_by_the_ending(run: Run, tmp_path: Path) -> None:
    page = run("diagnose", DDP)
    assert page.code == 0 and page.out.startswith(
        "**19.0 ms per step; it could be 16.7 ms without rank 2's slow"
    )
    written = run("diagnose", DDP, "--json")
    for argv in (["-o", tmp_path / "d.json"], ["--json", "-o", tmp_path / "d.txt"]):
        assert run("diagnose", DDP, *argv).out == ""
        assert Path(argv[-1]).read_text() == written.out
    for argv in (["-o", tmp_path / "d.md"], ["--markdown", "-o", tmp_path / "e.json"]):
        assert run("diagnose", DDP, *argv).out == ""
        assert Path(argv[-1]).read_text() == page.out
    assert run("diagnose", DDP, "--json", "--markdown").code == 2


def test_markdown_holds_what_the_document_does(run: Run) -> None:
    page, document = run("diagnose", DDP).out, run("diagnose", DDP, "--json").json
    assert document["verdict"] in page and document["recording"]["id"] in page
    for finding in document["findings"]:
        assert f"`{finding['id']}`" in page
        assert " ".join(finding["runs"][0]["argv"]) in page
    assert f"{len(document['checked'])} other causes checked" in page


def test_an_explorer_has_the_page_of_its_selection(run: Run) -> None:
    explorer = TraceExplorer(DDP, panels=[])
    assert explorer.wait().to_markdown() == run("diagnose", DDP).out
    explorer.selection.ranks = (0, 2)
    assert explorer.to_markdown() == run("diagnose", DDP, "--ranks", "0,2").out


def test_the_selected_part_is_what_commands_repeat(run: Run) -> None:
    document = run("diagnose", DDP, "--json", "--ranks", "0,2", "--iterations", "11-12").json
    assert document["scope"]["ranks"] == "0,2" and document["scope"]["iterations"] == "11-12"
    assert 0 < document["scope"]["share_of_recording_pct"] < 60
    for run_ in document["findings"][0]["runs"]:
        if run_["verb"] != "event":
            assert run_["argv"][-8:-2].count("11-12") + run_["argv"].count("0,2") >= 1
            assert "--ranks" in run_["argv"] and "--iterations" in run_["argv"]


def test_the_identifier_is_that_of_the_content(run: Run, tmp_path: Path) -> None:
    import gzip

    for packed in GPT2.glob("*.gz"):
        (tmp_path / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    one, other = run("diagnose", GPT2, "--json").json, run("diagnose", tmp_path, "--json").json
    assert one == other
    assert one["recording"]["id"] != run("diagnose", DDP, "--json").json["recording"]["id"]


def test_one_rank_of_several_says_nothing_of_ranks(run: Run) -> None:
    path = sorted(DDP.iterdir())[0]
    document = run("diagnose", path, "--json").json
    assert {veto["forbids"] for veto in document["trust"]["vetoes"]} == {"ranks"}
    assert not {"straggler", "slow_kernels", "imbalance"} & {each["id"] for each in document["findings"]}


def test_an_event_and_what_is_left_out_of_it(run: Run) -> None:
    (event,) = run("event", DDP, "2:1755", "--json", "--budget", "100000").json["events"]
    assert event["ref"] == "2:1755" and "left_out" not in event
    assert event["event"]["name"].startswith("ncclDevKernel_AllReduce") and event["launch"]["latency_ns"] > 0
    done = run("event", DDP, "2:1755", "0:1", "--json")
    first, second = done.json["events"]
    assert len(json.dumps(first)) / 4 <= 600 >= len(json.dumps(second)) / 4
    assert first["left_out"] and not set(first["left_out"]) & set(first)
    lines = run("event", DDP, "0:1").out.splitlines()
    assert lines[0] == "ref: 0:1" and "event.dur_ns: 1350357" in lines


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        ((DDP,), "RANK:ID"),
        (("0:1",), "name a recording"),
        ((DDP, "9:1"), "9:1"),
        ((DDP, "0:99999999"), "0:99999999"),
        ((DDP, *["0:1"] * 21), "at most 20"),
    ],
)
def test_events_that_are_none(run: Run, argv: tuple[object, ...], word: str) -> None:
    done = run("event", *argv, "--json")
    assert (done.code, done.out) == (2, "") and word in done.err


def test_the_change_against_a_finding_is_the_one_that_was_replayed(run: Run) -> None:
    path = examples.path("single_gpu_dataloader_stall")
    (finding,) = run("diagnose", path, "--json").json["findings"]
    rows = run("what-if", path, "--finding", finding["id"], "--format", "json").json["rows"]
    steps = [row for row in rows if row["iteration"] is not None]
    saved = 100 * (1 - sum(row["after_ns"] for row in steps) / sum(row["before_ns"] for row in steps))
    assert saved == pytest.approx(finding["saving"]["mid"]["value"], abs=0.5)
    done = run("what-if", path, "--finding", "moon")
    assert done.code == 2 and "there is data_stall" in done.err
    assert run("what-if", DDP, "--finding", "straggler").code == 2  # a replay of all ranks, not of one
    assert run("what-if", DDP).code == 2


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A loop that waits for its loader; without that; and half as slow again."""
    slow = Loop(between="loader", steps=6)
    found = {}
    for name, loop in {"slow": slow, "fixed": slow.without(), "same": slow}.items():
        folder = tmp_path_factory.mktemp(name)
        found[name] = write(loop, simulated(loop), folder)
    return found


def test_a_change_that_does_what_was_predicted(run: Run, loops: dict[str, Path]) -> None:
    done = run("check", loops["slow"], loops["fixed"], "--finding", "data_stall", "--json")
    document = done.json
    assert (done.code, document["outcome"]) == (0, "as predicted")
    assert document["predicted"]["low"] <= document["measured"]["mid"] <= document["predicted"]["high"] + 0.5
    assert document["cost_pct"]["after"] is None
    assert run("check", loops["slow"], loops["fixed"], "--finding", "data_stall").out == (
        document["sentence"] + "\n"
    )


def test_changes_that_do_not(run: Run, loops: dict[str, Path]) -> None:
    done = run("check", loops["slow"], loops["same"], "--finding", "data_stall", "--json")
    assert (done.code, done.json["outcome"]) == (1, "no change")
    assert run("check", loops["slow"], loops["fixed"], "--finding", "straggler").code == 2
    assert run("check", loops["slow"], "--finding", "data_stall").code == 2
    assert run("check", GPT2, examples.path("inference_cuda_graphs"), "--finding", "moon").code == 2


def test_a_bound_is_no_promise(run: Run) -> None:
    done = run(
        "check", GPT2, examples.path("gpt2_fsdp_full_shard"), "--finding", "exposed_communication", "--json"
    )
    assert (done.code, done.json["outcome"]) == (0, "within the bound")
    back = run(
        "check", examples.path("gpt2_fsdp_full_shard"), GPT2, "--finding", "exposed_communication", "--json"
    )
    assert (back.code, back.json["outcome"]) == (1, "slower")
