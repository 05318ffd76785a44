"""A dict of ranks whose values are made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import TypeVar

T = TypeVar("T")


class Lazy(MutableMapping[int, T]):
    """rank -> something that is made when it is first asked for; ranks ascending."""

    def __init__(self, ranks: Iterable[int], make: Callable[[int], T]) -> None:
        self._make = make
        self._made: dict[int, T] = {}
        self._ranks = set(ranks)

    def __getitem__(self, rank: int) -> T:
        if rank not in self._ranks:
            raise KeyError(rank)
        if rank in self._made:
            return self._made[rank]
        return self._made.setdefault(rank, self._make(rank))  # without a lock: it may read a file in a thread

    def __setitem__(self, rank: int, value: T) -> None:
        self._ranks.add(rank)
        self._made[rank] = value

    def __delitem__(self, rank: int) -> None:
        self._ranks.remove(rank)
        self._made.pop(rank, None)

    def __contains__(self, rank: object) -> bool:
        return rank in self._ranks

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._ranks))

    def __len__(self) -> int:
        return len(self._ranks)

    def __repr__(self) -> str:
        return f"{{ranks {list(self)}}}"
