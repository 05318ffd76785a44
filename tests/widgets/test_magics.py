"""`%load_ext hta_widgets`: the magics, with a profiler that stands in for PyTorch's."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from hta_widgets import TraceExplorer, examples

RECORDED = next(iter(sorted(examples.path("inference_cuda_graphs").glob("*.json.gz"))))


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    made = InteractiveShell()
    made.run_line_magic("load_ext", "hta_widgets")
    yield made
    made.history_manager.end_session()


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the magic uses of torch.profiler; its recording is one that is there already."""
    told = SimpleNamespace(options={}, steps=0, running=False)

    class Profile:
        def __init__(self, **options: Any) -> None:
            told.options = options

        def __enter__(self) -> "Profile":
            told.running = True
            return self

        def __exit__(self, *_error: object) -> None:
            told.running = False

        def step(self) -> None:
            assert told.running
            told.steps += 1

        def export_chrome_trace(self, path: str) -> None:
            assert not told.running
            shutil.copy(RECORDED, path)

    module = ModuleType("torch.profiler")
    vars(module).update(
        profile=Profile,
        supported_activities=lambda: {"CPU", "CUDA"},
        ProfilerAction=SimpleNamespace(RECORD=2),
    )
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    monkeypatch.setitem(sys.modules, "torch.profiler", module)
    return told


def test_a_recording_is_explored_by_its_path(shell: InteractiveShell) -> None:
    explorer = shell.run_line_magic("trace", f'"{RECORDED}"')
    assert isinstance(explorer, TraceExplorer) and len(explorer.trace.ranks) == 1
    explorer.close()
    with pytest.raises(UsageError, match="needs the path"):
        shell.run_line_magic("trace", " ")


def test_a_cell_is_recorded_and_explored(
    shell: InteractiveShell, torch: SimpleNamespace, tmp_path: Path
) -> None:
    shell.user_ns["profiler"] = "mine"
    cell = "for number in range(3):\n    profiler.step()\nlast = number"
    explorer = shell.run_cell_magic("profile_trace", str(tmp_path / "kept"), cell)
    assert (torch.steps, shell.user_ns["last"], shell.user_ns["profiler"]) == (3, 2, "mine")
    (kept,) = (tmp_path / "kept").iterdir()
    assert kept.read_bytes() == RECORDED.read_bytes()
    assert explorer.trace.rank(0).n > 0
    explorer.close()
    told = torch.options
    assert told["activities"] == {"CPU", "CUDA"} and told["schedule"](7) == 2
    assert told["record_shapes"] and told["profile_memory"] and told["with_stack"] and told["with_modules"]


def test_a_cell_that_fails_is_not_explored(
    shell: InteractiveShell, torch: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run_cell_magic("profile_trace", "", "raise ValueError('as planned')") is None
    assert "as planned" in capsys.readouterr().out
    assert not torch.running and "profiler" not in shell.user_ns


def test_without_pytorch_it_says_so(shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.profiler", None)
    with pytest.raises(UsageError, match="needs PyTorch"):
        shell.run_cell_magic("profile_trace", "", "ran = True")
    assert "ran" not in shell.user_ns
