"""Remembering what was worked out for a rank, as long as the rank is there.

Most analyses begin with the same few pictures of a rank (its device work by name, its call tree, when it was
busy), which no selection changes. They are built on first use and go with the rank.
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
Answer = TypeVar("Answer")


def memoize_per_rank(
    last: int = 1,
) -> Callable[[Callable[Concatenate[Owner, P], Answer]], Callable[Concatenate[Owner, P], Answer]]:
    """Decorate a function to remember its `last` answers for each first argument, as long as that lives.

    The other arguments are hashable. Answers are shared: nobody may change one, and none may
    hold on to the first argument, which would then never go. Safe in threads: two that ask the same at once
    may both compute, and get the same object.
    """

    def decorate(
        compute: Callable[Concatenate[Owner, P], Answer],
    ) -> Callable[Concatenate[Owner, P], Answer]:
        answers: WeakKeyDictionary[Owner, OrderedDict[tuple[object, ...], Answer]] = WeakKeyDictionary()
        lock = Lock()
        parameters = signature(compute)

        def remembered(owner: Owner, /, *args: P.args, **named: P.kwargs) -> Answer:
            given = parameters.bind(owner, *args, **named)
            given.apply_defaults()
            question = tuple(given.arguments.values())[1:]
            with lock:
                own = answers.setdefault(owner, OrderedDict())
                if question in own:
                    own.move_to_end(question)
                    return own[question]
            answer = compute(owner, *args, **named)
            with lock:
                answer = own.setdefault(question, answer)
                while len(own) > last:
                    own.popitem(last=False)
            return answer

        return wraps(compute)(remembered)

    return decorate
