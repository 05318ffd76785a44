"""`Scope`: the part of a trace that an analysis looks at."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Scope:
    """A part of a trace. ``None`` and ``()`` both mean "all", everywhere.

    Args:
        ranks: rank numbers.
        iterations: iteration numbers, as in the ``iteration`` column of ``Trace.iterations``.
        window_ns: (start, end) in ns relative to the job's start; swapped if given in the wrong order.
        streams: device stream numbers; rows without a stream (host calls) are then left out.
        names: event names, exactly as in the trace.

    Raises:
        ValueError: the window is empty (start == end) or is not a pair.
    """

    ranks: tuple[int, ...] | None = None
    iterations: tuple[int, ...] | None = None
    window_ns: tuple[int, int] | None = None
    streams: tuple[int, ...] | None = None
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        # Equal scopes must be equal values, whatever the caller's container or order: they are cache keys.
        for field in ("ranks", "iterations", "streams"):
            object.__setattr__(self, field, _numbers(getattr(self, field)))
        names = self.names
        if names is not None:
            object.__setattr__(self, "names", tuple(sorted(set(names))) or None)
        if self.window_ns is not None:
            object.__setattr__(self, "window_ns", _window(self.window_ns))


def _numbers(values: Iterable[int] | int | None) -> tuple[int, ...] | None:
    if values is None:
        return None
    if isinstance(values, int):
        return (values,)
    return tuple(sorted({int(value) for value in values})) or None


def _window(window: Iterable[int]) -> tuple[int, int]:
    bounds = sorted(int(bound) for bound in window)
    if len(bounds) != 2:
        raise ValueError(f"window_ns must be a (start, end) pair of ns, not {len(bounds)} numbers")
    if bounds[0] == bounds[1]:
        raise ValueError(f"window_ns is empty: start and end are both {bounds[0]} ns")
    return bounds[0], bounds[1]
