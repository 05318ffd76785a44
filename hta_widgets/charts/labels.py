"""The names of marks: what the columns that tell them apart hold."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from hta_widgets.kernel_names import short_kernel_names


def labels(frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """A text per row: what the columns hold, with the column's name before a number."""
    return _joined(frame, columns, short=False)


def short_labels(frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """The same with long names cut to what tells them apart."""
    return _joined(frame, columns, short=True)


def _joined(frame: pd.DataFrame, columns: Sequence[str], short: bool) -> list[str]:
    parts = []
    for name in columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            parts.append([f"{name.replace('_', ' ')} {value}" for value in column])
        else:
            texts = column.astype("object").where(column.notna(), "").astype("str").tolist()
            cut = short_kernel_names(texts) if short else {}
            parts.append([cut.get(text, text) for text in texts])
    return [" · ".join(filter(None, texts)) or "(none)" for texts in zip(*parts, strict=True)]


def telling(frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """The columns that tell rows apart: not the only rank of a job, nor the only device of each rank.

    A frame without ranks is of one.
    """
    said = list(columns)
    places = [name for name in ("rank", "device") if name in frame.columns]
    ranks = frame["rank"].nunique() if "rank" in places else 1
    if "device" in said and len(said) > 1 and len(frame[places].drop_duplicates()) == ranks:
        said.remove("device")
    if "rank" in said and len(said) > 1 and len(frame["rank"].unique()) == 1:
        said.remove("rank")
    return said
