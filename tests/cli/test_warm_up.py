"""After a warm-up nothing that an ordinary recording needs is left to compile."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

import pytest

import hta_widgets
from hta_widgets.cli import warm_up
from hta_widgets.jit import Kernel
from tests.cli.conftest import Run

# Pairs of begin and end events, more texts than the examples have, a trace that is written again, and the
# shapes of operators, which the examples lack.
RARE = (
    "hta_widgets.analysis.operators.",
    "hta_widgets.trace.slices._match",
    "hta_widgets.trace.reader.dictionary.fill_slots",
    "hta_widgets.trace.reader.raw_scan.",
)


def called_from_python() -> dict[str, Kernel]:
    """The compiled functions that no other compiled function names."""
    found: dict[str, Kernel] = {}
    for package in ("analysis", "timeline", "trace"):
        for module in walk_packages([f"{hta_widgets.__path__[0]}/{package}"], f"hta_widgets.{package}."):
            for value in vars(import_module(module.name)).values():
                if isinstance(value, Kernel) and value._function.__module__ == module.name:
                    found[value.name] = value
    named = {name for kernel in found.values() for name in kernel._function.__code__.co_names}
    return {name: kernel for name, kernel in found.items() if name.rpartition(".")[2] not in named}


def test_every_kernel_is_compiled(run: Run) -> None:
    done = run("warm-up")
    assert done.code == 0
    assert done.out.startswith("Compiled in ")
    assert done.err.count("compiling: ") == 6
    kernels = called_from_python()
    assert len(kernels) > 20
    left = [name for name, kernel in kernels.items() if not kernel.is_compiled]
    assert [name for name in left if not name.startswith(RARE)] == []


def test_it_can_be_quiet(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "STEPS", {"nothing": lambda: None})
    assert run("warm-up").err == "compiling: nothing\n"
    assert run("warm-up", "--quiet").err == ""
