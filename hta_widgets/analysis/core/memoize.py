"""A bounded, thread-safe cache of what was computed for a rank or a trace; it lives as long as they do.

Most analyses start from the same few structures of a rank (its device work by name, its call tree, when it
was busy), which no selection changes. They are built on first use and freed with the rank.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from inspect import signature
from threading import Lock
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

__all__ = ["memoize_per_rank"]

P = ParamSpec("P")
Owner = TypeVar("Owner")
Result = TypeVar("Result")


def memoize_per_rank(
    last: int = 1,
) -> Callable[[Callable[Concatenate[Owner, P], Result]], Callable[Concatenate[Owner, P], Result]]:
    """Decorate a function to remember its `last` results for each first argument, its owner.

    The owner (a rank, a trace, or an object made for them) is referenced weakly: a result must not reference
    it, or neither would ever be freed. The other arguments must be hashable. Results are shared, so callers
    must not change them. Thread-safe: threads that call with the same arguments at once may all compute, and
    get the same object.
    """

    def decorate(
        compute: Callable[Concatenate[Owner, P], Result],
    ) -> Callable[Concatenate[Owner, P], Result]:
        results: WeakKeyDictionary[Owner, OrderedDict[tuple[object, ...], Result]] = WeakKeyDictionary()
        lock = Lock()
        parameters = signature(compute)

        def key_of(owner: Owner, *args: P.args, **named: P.kwargs) -> tuple[object, ...]:
            """The same for the same arguments, however they are given."""
            if not named and len(args) == len(parameters.parameters) - 1:
                return args  # most calls, and `bind` takes as long as some of what is remembered
            bound = parameters.bind(owner, *args, **named)
            bound.apply_defaults()
            return tuple(bound.arguments.values())[1:]

        def remembered(owner: Owner, /, *args: P.args, **named: P.kwargs) -> Result:
            key = key_of(owner, *args, **named)
            with lock:
                own = results.setdefault(owner, OrderedDict())
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
