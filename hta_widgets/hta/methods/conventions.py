"""Conventions of all HTA-compatible methods: units, rounding, default ranks, missing data, figures."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from hta_widgets.errors import MissingDataError, MissingDataWarning
from hta_widgets.trace.model import Trace

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from hta_widgets.hta.common.trace import Trace as HtaTrace

P = ParamSpec("P")
T = TypeVar("T")


def microseconds(ns: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """ns as float64 us, HTA's unit; nothing is rounded to whole us."""
    return np.asarray(ns, np.float64) / 1000.0


def chosen_ranks(job: Trace, ranks: Iterable[int] | None) -> list[int]:
    """The ranks that an argument `ranks` selects; None and empty mean rank 0.

    If the job has no rank 0, its first rank (HTA raises).

    Raises:
        ValueError: the job has no such rank.
    """
    chosen = [int(rank) for rank in ranks or ()] or [0 if 0 in job.ranks else job.ranks[0]]
    unknown = [rank for rank in chosen if rank not in job.ranks]
    if unknown:
        raise ValueError(f"no rank {unknown[0]}: this trace has {job.ranks}")
    return chosen


def warn(message: object, category: type[Warning] = MissingDataWarning) -> None:
    """Warn about the line that called a method of HTA's, however many of our own calls lie between."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("hta_widgets."):
        level, frame = level + 1, frame.f_back
    warnings.warn(str(message), category, stacklevel=level)


def or_else(otherwise: Callable[[], T]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Replace a `MissingDataError` with what HTA returns for "nothing" and a warning with the reason."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def answer(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return function(*args, **kwargs)
            except MissingDataError as missing:
                warn(missing)
                return otherwise()

        return answer

    return decorate


def or_none(function: Callable[P, T | None]) -> Callable[P, T | None]:
    """`or_else` for methods that return None for "nothing"."""
    nothing: Callable[[], T | None] = lambda: None  # noqa: E731 - the type is what it is for
    return or_else(nothing)(function)


def of_trace(function: Callable[Concatenate[Trace, P], T]) -> Callable[Concatenate[HtaTrace, P], T]:
    """A method of HTA's classes, which takes HTA's trace as `t`, from a function of the job."""
    return _taking("t", lambda t: t.job, function)


class Door(Generic[P, T]):
    """A method of `TraceAnalysis`: a function of HTA's trace, imported when it is first asked for.

    The function's arguments and docstring are those of the method.
    """

    def __init__(self, function: Callable[[], Callable[Concatenate[HtaTrace, P], T]]) -> None:
        self._function = function

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, analyzer: object, owner: type) -> Callable[P, T]:
        method = _taking("self", lambda analyzer: analyzer.t, self._function())
        method.__name__ = self._name
        return method if analyzer is None else MethodType(method, analyzer)


def _taking(name: str, given: Callable[[Any], Any], function: Callable[..., Any]) -> Any:
    """The function with another first argument, called `name`, of which `given` makes its own."""

    @functools.wraps(function)
    def method(first: Any, *args: Any, **kwargs: Any) -> Any:
        return function(given(first), *args, **kwargs)

    signature = inspect.signature(function)
    own, *others = signature.parameters.values()
    parameters = [inspect.Parameter(name, own.kind), *others]
    method.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return method


def show(figures: Iterable[go.Figure], renderer: str | None = None) -> None:
    """Show figures one after the other, as HTA's `visualize=True` does."""
    for figure in figures:
        figure.show(renderer=renderer or None)
