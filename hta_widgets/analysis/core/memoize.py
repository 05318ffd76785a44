"""A bounded, thread-safe cache of what was computed for a rank or a trace; it lives as long as they do.

Most analyses start from the same few structures of a rank (its device work by name, its call tree, when it
was busy), which no selection changes. They are built on first use and freed with the rank, or when the rank's
columns are dropped to make room for others (`trace.memory`): they lie in the rank's own `__dict__`, like what
`functools.cached_property` keeps.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from inspect import signature
from threading import Lock
from typing import Concatenate, ParamSpec, TypeVar

from hta_widgets.trace.rank_trace import REMEMBERED

P = ParamSpec("P")
Owner = TypeVar("Owner")
Result = TypeVar("Result")


def memoize_per_rank(
    last: int = 1,
) -> Callable[[Callable[Concatenate[Owner, P], Result]], Callable[Concatenate[Owner, P], Result]]:
    """Decorate a function to remember its `last` results for each first argument, its owner.

    The owner (a rank, a trace, or an object made for them) holds the results. The other arguments must be
    hashable. Results are shared, so callers must not change them. Thread-safe: threads that call with the
    same arguments at once may all compute, and get the same object.
    """

    def decorate(
        compute: Callable[Concatenate[Owner, P], Result],
    ) -> Callable[Concatenate[Owner, P], Result]:
        lock = Lock()
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
            result = compute(owner, *args, **named)
            with lock:
                result = own.setdefault(key, result)
                while len(own) > last:
                    own.popitem(last=False)
            return result

        return wraps(compute)(remembered)

    return decorate
