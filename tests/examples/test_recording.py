"""The recording scripts without PyTorch: their command lines, what the matrix pairs, what is written down."""

import json
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import record
import record_all
from hypothesis import given
from hypothesis import strategies as st
from recorder import manifest
from recorder.matrix import PAIRS, backends, left_out, ranks_of, recordings
from recorder.setup import PROFILER_FLAGS, SHAPES, STRATEGIES, Setup, setup_of

from tests.examples.recording_entry import entry

EVERY_SETUP = [
    pytest.param(device, name, setup, id=f"{device}-{name}")
    for device in ("cuda", "cpu")
    for name, setup in recordings(device).items()
]


def parsed(words: list[str]) -> Setup:
    return setup_of(record.parser().parse_args(words))


# -- setups and the matrix ----------------------------------------------------------------------------


@given(
    st.sampled_from(STRATEGIES),
    st.sampled_from(["bf16", "fp32"]),
    st.sampled_from(sorted(SHAPES)),
    st.integers(1, 64),
    st.integers(1, 8),
    st.booleans(),
    st.integers(0, 100),
    st.sets(st.sampled_from(PROFILER_FLAGS)),
)
def test_arguments_give_the_setup_back(
    strategy: str, precision: str, shape: str, batch: int, micro: int, item: bool, stall: int, flags: set[str]
) -> None:
    setup = Setup(
        "training", strategy, precision, shape, batch, micro, item, stall, profiler_flags=tuple(flags)
    )
    assert parsed(setup.arguments()) == setup


@pytest.mark.parametrize(("device", "name", "setup"), EVERY_SETUP)
def test_listed_commands_are_what_record_takes(device: str, name: str, setup: Setup) -> None:
    arguments = record_all.parser().parse_args(["--device", device, "--steps", "4"])
    words = record_all.attempts(name, setup, 8, arguments)[0]
    parsed = record.parser().parse_args(words[words.index(str(record_all.RECORD)) + 1 :])
    assert (setup_of(parsed), parsed.device, parsed.name, parsed.steps) == (setup, device, name, 4)
    launcher = words[: words.index(str(record_all.RECORD))]
    assert ("--nproc_per_node=2" in launcher) == (setup.strategy != "baseline")


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.first}-{pair.second}")
def test_pairs_differ_in_the_one_thing_they_name(device: str, pair: Any) -> None:
    recorded = recordings(device)
    differing = recorded[pair.second].differs_from(recorded[pair.first])
    assert differing == (() if pair.field is None else (pair.field,))


def test_every_recording_is_in_a_pair_and_every_kind_of_difference_is_there() -> None:
    paired = {name for pair in PAIRS for name in (pair.first, pair.second)}
    assert paired == set(recordings("cuda")) == set(recordings("cpu"))
    assert {setup.strategy for setup in recordings("cuda").values()} == set(STRATEGIES)
    assert recordings("cuda")["detailed"].profiler_flags == PROFILER_FLAGS
    fields_of_pairs = {pair.field for pair in PAIRS} - {None}
    # Micro-batches and the workload are fixed within a pair, and the shape is the device's.
    assert fields_of_pairs == {field.name for field in fields(Setup)} - {"workload", "shape", "micro_batches"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"strategy": "zero"}, "strategy is one of"),
        ({"batch": 0}, "start at 1"),
        ({"data_stall_ms": -1}, "at 0"),
        ({"strategy": "ddp", "compile": True}, "on one rank"),
        ({"cuda_graphs": True, "item": True}, "nothing is read"),
        ({"workload": "serving", "item": True, "compile": True}, "item, compile: of training"),
    ],
)
def test_contradictions_are_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        replace(Setup(), **changes)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--strategy", "ddp"], "torchrun --nproc_per_node=2"),
        (["--name", "../elsewhere"], "--name is a folder's name"),
        (["--steps", "0"], "--steps and --active start at 1"),
        (["--cuda-graphs", "--item"], "the captured step"),
        (["--precision", "fp8"], "invalid choice"),
    ],
)
def test_wrong_options_say_what_is_wrong(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        record.main(words)
    assert why in capsys.readouterr().err


def test_one_rank_is_not_run_on_several(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SystemExit, match="2"):
        record.main(["--device", "cpu"])
    assert "needs one rank" in capsys.readouterr().err


def test_without_pytorch_both_scripts_say_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in [name for name in sys.modules if name.startswith("recorder.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    for main in (record.main, record_all.main):
        with pytest.raises(SystemExit, match="2"):
            main(["--device", "cpu", "--out", str(tmp_path)])
        assert "recording needs PyTorch" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_readme_explains_every_recording_and_pair() -> None:
    text = record_all.RECORD.with_name("README.md").read_text()
    for pair in PAIRS:
        field = f"`{pair.field}`" if pair.field else "nothing"
        assert f"| `{pair.first}` | `{pair.second}` | {field} |" in text
    explained = text[text.index("## The recordings") : text.index("## What each pair")]
    assert all(f"`{name}`" in explained for name in recordings("cuda"))


def test_backends_are_tried_from_the_best() -> None:
    ddp = Setup(strategy="ddp")
    assert backends(Setup(), "cuda", 2, 1) == []
    assert backends(ddp, "cpu", 2, 0) == ["gloo"]
    assert backends(ddp, "cuda", 2, 2) == ["nccl"]
    assert backends(ddp, "cuda", 2, 1) == ["nccl", "gloo"]
    assert (ranks_of(Setup(), 4), ranks_of(ddp, 4)) == (1, 4)


# -- the matrix command, with a runner that only pretends ---------------------------------------------


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[list[str]]]:
    """Commands "run" with `gpus` GPUs: they write their entry, unless their backend fails."""

    def start(gpus: int, failing: tuple[str, ...] = ()) -> list[list[str]]:
        commands: list[list[str]] = []

        class Run:
            def __init__(self, name: str, words: list[str], out: Path) -> None:
                commands.append(words)
                self.parsed = record.parser().parse_args(words[words.index(str(record_all.RECORD)) + 1 :])
                assert (self.parsed.name, self.parsed.out) == (name, out)

            def end(self) -> str:
                parsed = self.parsed
                if parsed.backend in failing:
                    return f"{parsed.backend}Error: no"
                setup = setup_of(parsed)
                manifest.add(parsed.out, parsed.name, entry(setup, ranks_of(setup, 2)))
                return "exit code 1"  # what happens after the entry is written costs nothing

        machine = ModuleType("recorder.machine")
        machine.gpus = lambda: gpus  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "recorder.machine", machine)
        monkeypatch.setattr("recorder.machine", machine, raising=False)
        monkeypatch.setattr(record_all, "Run", Run)
        return commands

    return start


def test_all_recordings_and_pairs_are_written_down(
    tmp_path: Path, pretend: Callable[..., list[list[str]]]
) -> None:
    pretend(gpus=2)
    assert record_all.main(["--out", str(tmp_path)]) == 0
    written = json.loads((tmp_path / "manifest.json").read_text())
    assert list(written["recordings"]) == list(recordings("cuda"))
    assert len(written["pairs"]) == len(PAIRS)
    assert written["left_out"] == {}
    assert manifest.problems(written) == []


def test_the_cpu_leaves_out_what_needs_a_gpu(tmp_path: Path, pretend: Callable[..., list[list[str]]]) -> None:
    pretend(gpus=0)
    assert record_all.main(["--device", "cpu", "--out", str(tmp_path)]) == 0
    written = manifest.load(tmp_path)
    assert written["left_out"] == {
        "small_batch_cuda_graphs": "CUDA graphs need a GPU",
        "serving_cuda_graphs": "CUDA graphs need a GPU",
        "images_pageable": "a CPU copies no batches",
        "tf32": "TF32 needs a GPU",
    }
    missing = written["left_out"].keys()
    assert len(written["pairs"]) == sum(missing.isdisjoint({pair.first, pair.second}) for pair in PAIRS)
    assert left_out(Setup(cuda_graphs=True), "cuda") is None


def test_each_process_waits_while_the_one_before_it_records(
    tmp_path: Path, pretend: Callable[..., list[list[str]]]
) -> None:
    commands = pretend(gpus=2)
    names = ["baseline", "compiled", "ddp", "fp32"]
    assert record_all.main(["--out", str(tmp_path), "--only", *names]) == 0
    # Several ranks do not wait: torchrun hands its input to none of them.
    assert {words[words.index("--name") + 1] for words in commands if "--wait" in words} == {
        "compiled",
        "fp32",
    }
    assert set(manifest.load(tmp_path)["recordings"]) == set(names)


def test_nothing_is_begun_once_the_time_is_over(
    tmp_path: Path, pretend: Callable[..., list[list[str]]]
) -> None:
    commands = pretend(gpus=2)
    record_all.main(["--out", str(tmp_path), "--only", "baseline", "fp32", "--seconds", "-1"])
    reason = "no time left after -1 s"
    assert manifest.load(tmp_path)["left_out"] == {"baseline": reason, "fp32": reason}
    assert not commands


def test_on_one_gpu_gloo_follows_nccl(tmp_path: Path, pretend: Callable[..., list[list[str]]]) -> None:
    commands = pretend(gpus=1, failing=("nccl",))
    assert record_all.main(["--out", str(tmp_path), "--only", "ddp"]) == 0
    assert [words[words.index("--backend") + 1] for words in commands] == ["nccl", "gloo"]
    assert set(manifest.load(tmp_path)["recordings"]) == {"ddp"}


def test_where_nothing_works_the_reasons_are_recorded(
    tmp_path: Path, pretend: Callable[..., list[list[str]]]
) -> None:
    pretend(gpus=1, failing=("nccl", "gloo"))
    assert record_all.main(["--out", str(tmp_path), "--only", "ddp"]) == 0
    reason = manifest.load(tmp_path)["left_out"]["ddp"]
    assert reason == "ncclError: no; glooError: no; several ranks need as many GPUs, here 1"


def test_an_unexpected_failure_is_reported(tmp_path: Path, pretend: Callable[..., list[list[str]]]) -> None:
    pretend(gpus=2, failing=("nccl",))
    assert record_all.main(["--out", str(tmp_path), "--only", "ddp", "baseline"]) == 1
    assert set(manifest.load(tmp_path)["recordings"]) == {"baseline"}


def test_without_a_gpu_nothing_is_begun(tmp_path: Path, pretend: Callable[..., list[list[str]]]) -> None:
    commands = pretend(gpus=0)
    with pytest.raises(SystemExit, match="2"):
        record_all.main(["--out", str(tmp_path / "new")])
    assert not commands and not (tmp_path / "new").exists()


def test_the_last_error_of_a_log_is_the_reason(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()

    def ended(program: str) -> str:
        return record_all.Run("some", [sys.executable, "-c", program], tmp_path).end()

    assert ended("input(); print('fine'); raise ValueError('first')") == "ValueError: first"
    (tmp_path / "logs" / "some.log").unlink()
    assert ended("raise SystemExit(3)") == "exit code 3"
    (tmp_path / "torchrun").write_text("[rank1]: torch.distributed.DistBackendError: NCCL\nother: words\n")
    assert list(record_all._errors(tmp_path / "torchrun")) == ["torch.distributed.DistBackendError: NCCL"]
