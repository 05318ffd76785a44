"""Text columns with many repeated values: categoricals instead of objects, also after concatenating ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd


def text_column(codes: npt.NDArray[np.integer[Any]], texts: Sequence[str]) -> pd.Categorical[Any]:
    """The texts of codes; categories are the texts that occur, sorted."""
    used = np.flatnonzero(np.bincount(codes, minlength=len(texts))).tolist()
    categories = sorted({texts[code] for code in used})
    number = {text: place for place, text in enumerate(categories)}
    place = np.zeros(len(texts) + 1, np.int32)
    place[used] = [number[texts[code]] for code in used]
    return pd.Categorical.from_codes(place[codes], categories=pd.Index(categories, dtype="str"))


def stacked(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One frame after the other, of the same columns; the texts of categories are united."""
    if len(frames) == 1:
        return frames[0]
    if not any(isinstance(dtype, pd.CategoricalDtype) for dtype in frames[0].dtypes):
        return pd.concat(frames, ignore_index=True)  # which takes a fifth of what column after column does
    joined: dict[str, Any] = {}
    for column in frames[0]:
        parts = [frame[str(column)] for frame in frames]
        if isinstance(parts[0].dtype, pd.CategoricalDtype):
            joined[str(column)] = _united(parts)
        else:
            joined[str(column)] = pd.concat(parts, ignore_index=True)
    return pd.DataFrame(joined, copy=False)


def _united(parts: Sequence[pd.Series]) -> pd.Categorical[Any]:
    """One column of texts after the other; categories that have an order are the same in all."""
    ordered = bool(parts[0].cat.ordered)
    texts = [part.cat.categories.tolist() for part in parts]
    categories = texts[0] if ordered else sorted(set[str]().union(*texts))
    number = {text: place for place, text in enumerate(categories)}
    codes = [
        np.array([*(number[text] for text in own), -1], np.int32)[part.cat.codes]
        for own, part in zip(texts, parts, strict=True)
    ]
    united = pd.Index(categories, dtype=parts[0].cat.categories.dtype)
    return pd.Categorical.from_codes(np.concatenate(codes), categories=united, ordered=ordered)
