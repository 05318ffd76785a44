"""Kinds: what slices have in common that is sent once and not for each of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hta_widgets.arrays import Int32
from hta_widgets.trace.ordering import distinct
from hta_widgets.trace.rank_trace import RankTrace


@dataclass(frozen=True)
class Kinds:
    """The distinct (name, category, class) triples: what a slice's `kind` number stands for."""

    names: list[str]
    categories: list[str]
    classes: NDArray[np.uint8]


class KindTable:
    """Numbers the distinct (name, category, class) triples over all ranks."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str, int], int] = {}

    def encode(self, rank: RankTrace) -> Int32:
        names, categories = rank.names, rank.categories
        width = len(categories)
        key = rank.name.astype(np.int64)
        key *= width
        key += rank.category
        key *= 256
        key += rank.event_class
        unique, which = distinct(key)
        codes = np.empty(len(unique), np.int32)
        for i, value in enumerate(unique.tolist()):
            rest, event_class = divmod(value, 256)
            name, category = divmod(rest, width)
            triple = (names[name], categories[category], event_class)
            codes[i] = self._numbers.setdefault(triple, len(self._numbers))
        return codes[which]

    def result(self) -> Kinds:
        return Kinds(
            names=[k[0] for k in self._numbers],
            categories=[k[1] for k in self._numbers],
            classes=np.array([k[2] for k in self._numbers], np.uint8),
        )
