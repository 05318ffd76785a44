"""notebooks/compare_training_setups.ipynb on recordings that lack what the bundled ones have."""

from __future__ import annotations

import ast
import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_widgets import examples
from tests.support import ROOT

SETUPS = ("gpt2_baseline", "gpt2_ddp", "gpt2_fsdp_full_shard", "gpt2_fsdp_shard_grad_op")


@pytest.fixture
def without_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples as if they had been recorded without `profile_memory`."""
    for setup in SETUPS:
        (tmp_path / setup).mkdir()
        for file in examples.path(setup).iterdir():
            document = json.loads(gzip.decompress(file.read_bytes()))
            events = document["traceEvents"]
            document["traceEvents"] = [event for event in events if event.get("name") != "[memory]"]
            assert len(document["traceEvents"]) < len(events)
            document["profile_memory"] = 0
            (tmp_path / setup / file.name).write_bytes(gzip.compress(json.dumps(document).encode(), 1))
    monkeypatch.setattr(examples, "path", lambda name: tmp_path / name)


def run(notebook: str) -> list[Any]:
    """What each cell of code ends in, as a kernel would show it."""
    namespace: dict[str, Any] = {}
    shown = []
    for cell in json.loads((ROOT / "notebooks" / notebook).read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            code = ast.parse("".join(cell["source"]))
            last = code.body.pop() if isinstance(code.body[-1], ast.Expr) else None
            exec(compile(code, notebook, "exec"), namespace)
            shown.append(
                eval(compile(ast.Expression(last.value), notebook, "eval"), namespace)
                if isinstance(last, ast.Expr)
                else None
            )
    return shown


@pytest.mark.usefixtures("without_memory")
def test_without_memory_it_says_what_to_record() -> None:
    shown = run("compare_training_setups.ipynb")
    assert [answer for answer in shown if isinstance(answer, str) and "profile_memory=True" in answer]
    tables = [answer for answer in shown if isinstance(answer, pd.DataFrame)]
    peaks = [table["peak_mb"] for table in tables if "peak_mb" in table]
    assert len(peaks) == 2 and all(peak.isna().all() for peak in peaks)
    assert "optimizer state" in tables[-2].index and "allocated at the peak" not in tables[-2].index
    assert tables[-1]["efficiency_pct"].tolist() == [79.5, 81.1, 81.3]
