"""All that is public in HTA is here and is called as there, but for what docs/hta.md lists."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import subprocess
from typing import Any

import pytest

from hta_widgets.hta import version
from tests.parity import public_api
from tests.parity.hta_side import interpreter
from tests.parity.public_api import Parameters
from tests.support import ROOT

Offered = dict[str, dict[str, Parameters | None]]

ROW = re.compile(r"^\| `([\w.]+)` \| (.+?) \|$")


@pytest.fixture(scope="module")
def theirs() -> Offered:
    """Module -> name -> parameters, of HTA."""
    python = interpreter()
    if python is None:
        pytest.skip("HTA is not installed: make parity")
    command = [str(python), public_api.__file__, "hta"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    offered: Offered = json.loads(done.stdout.rpartition("RESULT ")[2])
    return offered


def test_what_is_not_here_is_listed_with_its_replacement(theirs: Offered) -> None:
    gaps = {gap for module, names in theirs.items() for gap in gaps_of(module, names)}
    assert gaps == left_out().keys()


def test_the_replacements_exist() -> None:
    for instead in left_out().values():
        for name in re.findall(r"`(\w+\.[\w.]+)", instead):
            pkgutil.resolve_name(name if name.startswith("hta_widgets.") else f"hta_widgets.hta.{name}")


def test_the_search_for_gaps_finds_hta_as_a_whole(theirs: Offered) -> None:
    """That nothing is missing means nothing if nothing was asked."""
    assert len(theirs) > 30 and sum(map(len, theirs.values())) > 500
    assert theirs["trace_analysis"]["TraceAnalysis.get_profiler_steps"] == [["self", *SELF]]
    assert "trace_analysis.TraceAnalysis.no_such" in gaps_of("trace_analysis", {"TraceAnalysis.no_such": []})
    wrong: Parameters = [("trace_dir", SELF[0], None)]
    assert "trace_diff.LabeledTrace" in gaps_of("trace_diff", {"LabeledTrace": wrong})


def test_the_version_is_htas() -> None:
    python = interpreter()
    if python is None:
        pytest.skip("HTA is not installed: make parity")
    told = subprocess.run(
        [str(python), "-c", "import hta.version; print(hta.version.__version__)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.strip() == version.__version__


SELF = ("POSITIONAL_OR_KEYWORD", None)


def gaps_of(module: str, names: dict[str, Parameters | None]) -> list[str]:
    """What a module of ours lacks of HTA's; of a missing class only its name."""
    try:
        ours = importlib.import_module(f"hta_widgets.hta.{module}")
    except ModuleNotFoundError:
        return [module]
    gaps: list[str] = []
    for name, wanted in names.items():
        owner, _, member = name.rpartition(".")
        if owner and not hasattr(ours, owner):
            continue
        holder: Any = getattr(ours, owner) if owner else ours
        if not hasattr(holder, member) or not accepts(public_api.parameters(getattr(holder, member)), wanted):
            gaps.append(f"{module}.{name}")
    return gaps


def accepts(ours: Parameters | None, theirs: Parameters | None) -> bool:
    """Do we take every call that HTA takes, and mean the same by it?

    Ours has HTA's parameters in their order, with their defaults, and may have more that need not be given.
    """
    if theirs is None or ours is None:
        return theirs is ours is None
    same = all(
        (name, kind) == (their_name, their_kind) and their_default in (None, default)
        for (name, kind, default), (their_name, their_kind, their_default) in zip(ours, theirs, strict=False)
    )
    more = ours[len(theirs) :]
    return same and len(ours) >= len(theirs) and all(default is not None for _, _, default in more)


def left_out() -> dict[str, str]:
    """The table of docs/hta.md: HTA's name -> what to use instead."""
    text = (ROOT / "docs" / "hta.md").read_text(encoding="utf-8").partition("## Left out")[2]
    rows = [ROW.match(line) for line in text.partition("\n## ")[0].splitlines()]
    return {row.group(1): row.group(2) for row in rows if row}
