"""What tests of comparisons as widgets share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from hta_widgets.analysis import COMPARISONS
from hta_widgets.widgets import answer_cache

SETUPS = ("gpt2_baseline", "gpt2_ddp", "gpt2_fsdp_full_shard", "gpt2_fsdp_shard_grad_op")
Until = Callable[[Callable[[], bool]], None]


def texts(table: dict[str, Any], name: str) -> list[str]:
    return next(column for column in table["columns"] if column["name"] == name)["values"]


def counted(monkeypatch: pytest.MonkeyPatch, kind: str) -> list[str]:
    """Each computation of comparison `kind` adds to the list."""
    found: list[str] = []
    entry = COMPARISONS[kind]

    def counting(*args: Any, **options: Any) -> pd.DataFrame:
        found.append(kind)
        return entry.function(*args, **options)

    patched = {**COMPARISONS, kind: replace(entry, function=counting)}
    monkeypatch.setattr(answer_cache, "COMPARISONS", patched)
    return found
