"""Frames made of rows, typed from the start: to cast a frame of a few rows takes longer than to make it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
import pandas as pd

TEXT: Final = str(pd.Series(dtype="str").dtype)
"""The type of texts of which some may be missing: before pandas 3, "str" makes "None" of those."""

_OF_NUMPY = ("bool", "float64", "int64")


def typed_frame(rows: Sequence[Mapping[str, Any]], dtypes: Mapping[str, str]) -> pd.DataFrame:
    """A frame with these columns; what a row does not hold is missing."""
    return pd.DataFrame(
        {name: typed_array([row.get(name) for row in rows], dtype) for name, dtype in dtypes.items()}
    )


def typed_array(values: list[Any], dtype: str) -> Any:
    """An array as a frame holds it, of numpy where that has the type."""
    if dtype in _OF_NUMPY:
        return np.array(values, dtype)
    return pd.array(values, dtype=cast(Any, TEXT if dtype == "str" else dtype))
