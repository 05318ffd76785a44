"""A bounded, thread-safe cache of what was computed for a rank or a trace; it lives as long as they do.

Most analyses start from the same few structures of a rank (its device work by name, its call tree, when it
was busy), which no selection changes. They are built on first use and freed with the rank, or when the rank's
columns are dropped to make room for others (`trace.memory`): they lie in the rank's own `__dict__`, like what
`functools.cached_property` keeps.

Parts of an explorer ask for the same at once. The first computes it and the others wait, but not for ever:
one that computes may itself wait for what another holds, such as the lock of a `cached_property` in Python
3.11, so that after a while each computes for itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from inspect import signature
from threading import Event, Lock
from time import monotonic
from typing import Concatenate, ParamSpec, TypeVar

from hta_widgets.engine import checkpoint, current_ticket
from hta_widgets.trace.rank_trace import REMEMBERED

P = ParamSpec("P")
Owner = TypeVar("Owner")
Result = TypeVar("Result")

_LONGEST_WAIT_SECONDS = 2.0
_LOOK_EVERY_SECONDS = 0.01


class _Computation:
    """A result that a thread computes."""

    def __init__(self) -> None:
        self._ticket = current_ticket()
        self.ended: Event | None = None  # made by who waits for it: few do

    def wait(self, ended: Event) -> None:
        """Wait for its end, but not for ever; meanwhile it gives way to nobody.

        Raises:
            Superseded: as `checkpoint` does.
        """
        if self._ticket is not None:
            self._ticket.patience = 0.0
        until = monotonic() + _LONGEST_WAIT_SECONDS
        while not ended.wait(_LOOK_EVERY_SECONDS) and monotonic() < until:
            checkpoint()


def memoize_per_rank(
    last: int = 1,
) -> Callable[[Callable[Concatenate[Owner, P], Result]], Callable[Concatenate[Owner, P], Result]]:
    """Decorate a function to remember its `last` results for each first argument, its owner.

    The owner (a rank, a trace, or an object made for them) holds the results. The other arguments must be
    hashable. Results are shared, so callers must not change them. Thread-safe: of threads that call with the
    same arguments at once one computes, for a while, and all get the same object.
    """

    def decorate(
        compute: Callable[Concatenate[Owner, P], Result],
    ) -> Callable[Concatenate[Owner, P], Result]:
        lock = Lock()
        computing: dict[tuple[int, tuple[object, ...]], _Computation] = {}
        parameters = signature(compute)
        others = len(parameters.parameters) - 1

        def key_of(owner: Owner, *args: P.args, **named: P.kwargs) -> tuple[object, ...]:
            """The same for the same arguments, however they are given."""
            if not named and len(args) == others:
                return args  # most calls, and `bind` takes as long as some of what is remembered
            bound = parameters.bind(owner, *args, **named)
            bound.apply_defaults()
            return tuple(bound.arguments.values())[1:]

        def remembered(owner: Owner, /, *args: P.args, **named: P.kwargs) -> Result:
            key = key_of(owner, *args, **named)
            with lock:
                remembers = vars(owner).setdefault(REMEMBERED, {})
                own: OrderedDict[tuple[object, ...], Result] | None = remembers.get(compute)
                if own is None:
                    own = remembers[compute] = OrderedDict()
                if key in own:
                    own.move_to_end(key)
                    return own[key]
                of = id(own), key
                other = computing.get(of)
                if other is None:
                    mine = computing[of] = _Computation()
                else:
                    ended = other.ended = other.ended or Event()
            if other is not None:
                other.wait(ended)
                with lock:
                    if key in own:
                        return own[key]
            try:
                result = compute(owner, *args, **named)
                with lock:
                    result = own.setdefault(key, result)
                    while len(own) > last:
                        own.popitem(last=False)
            finally:
                if other is None:
                    with lock:
                        del computing[of]
                    if mine.ended is not None:
                        mine.ended.set()
            return result

        return wraps(compute)(remembered)

    return decorate
