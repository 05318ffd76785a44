"""Answers about whole recordings and their iterations, kept on disk beside the cached columns.

An answer is kept under a key of all that it depends on: the content of the ranks' files, how they were put
together (`Trace.key`), the code of this library, and the question. So nothing is ever brought up to date:
what changed has another key, and what nobody asks for any more is the first to go when room is needed.

`kept(by_rank=True)` is also the one place that says how an analysis splits: what it says about a rank follows
from that rank alone, and ranks come one after the other. Then the answer about many ranks is that about each,
stacked (`stacked_ranks`), wherever these were computed. Of a job that exceeds memory each rank's part is kept
by itself, so that no rank is read twice for the same question.

What does not split may say less of a job that exceeds memory, such as not where its evidence is. Then the
answer is for the same limit alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, wraps
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar, cast

import pandas as pd
import pyarrow as pa

from hta_widgets.analysis.core.text_columns import stacked
from hta_widgets.analysis.core.there import answer_by_rank, stated_by_user
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.arrow_frames import UNREADABLE, joined_from_arrow, keep_frame, read_frame
from hta_widgets.trace.far import FarTrace
from hta_widgets.trace.model import Trace
from hta_widgets.trace.reader.sealed import read_sealed
from hta_widgets.trace.scope import Scope

Question = TypeVar("Question", bound=Callable[..., pd.DataFrame])

SUFFIX = ".answer.arrow"
# Of the budget of the cache. An answer about 1,000 ranks takes some 100 kB.
_PART_OF_BUDGET = 0.05
# Larger answers are cheaper to compute than to keep for each selection.
_LARGEST = 8 << 20
# Reading an answer takes a millisecond or two; what is computed as soon is not worth a file.
_LEAST_SECONDS = 0.05
_TRIM_EVERY = 256


def kept(*, by_rank: bool = False, unless: Mapping[str, str] | None = None) -> Callable[[Question], Question]:
    """Decorate an analysis `(trace, scope=None, **options)` to keep its answers on disk.

    Kept are answers about whole ranks and iterations, not about a window, streams or names, of which there
    are too many; and only where the answer that is read back is the same in every bit.

    Args:
        by_rank: what the analysis says about a rank follows from that rank alone, in rows rank after rank.
        unless: values of options with which it does not, but speaks of the job.

    Returns:
        A decorator. What it returns has an attribute `splits`: whether it splits by rank with these options.
    """

    def splits(options: Mapping[str, Any]) -> bool:
        return by_rank and not any(options.get(name) == value for name, value in (unless or {}).items())

    def decorate(compute: Question) -> Question:
        parameters = signature(compute)

        @wraps(compute)
        def answer(*args: Any, **named: Any) -> pd.DataFrame:
            bound = parameters.bind(*args, **named)
            bound.apply_defaults()
            options = dict(bound.arguments)
            trace: Trace = options.pop("trace")
            scope = options.pop("scope") or Scope()
            if isinstance(trace, FarTrace) and splits(options) and not stated_by_user():
                return answer_by_rank(answer, trace, scope, options)

            def ask(part: Scope) -> pd.DataFrame:
                return compute(trace, scope=part, **options)

            def place(part: Scope, limit: int | None = None) -> Path | None:
                return _file(trace, compute, part, options, splits(options), limit)

            def ask_rank(part: Scope) -> pd.DataFrame:
                return _kept([place(part)], lambda: ask(part), lambda: True)

            def ask_all() -> pd.DataFrame:
                ranks = trace.ranks_of(scope)
                if not (splits(options) and trace.exceeds_memory and len(ranks) > 1):
                    return ask(scope)
                known = _joined(place(replace(scope, ranks=(rank,))) for rank in ranks)
                return stacked_ranks(trace, scope, ask_rank, ask) if known is None else known

            files = [place(scope)] if splits(options) else [place(scope), place(scope, trace.memory.limit)]
            return _kept(files, ask_all, lambda: trace.exceeds_memory)

        answer.__dict__["splits"] = splits
        return cast(Question, answer)

    return decorate


def _kept(
    files: list[Path | None], ask: Callable[[], pd.DataFrame], is_short: Callable[[], bool]
) -> pd.DataFrame:
    """The answer that is kept in one of the files, or that of `ask`.

    Where memory `is_short` in the end, that is kept in the last file; else in the first one, if it took long.
    """
    for file in files:
        if file is not None and (known := read_frame(file)) is not None:
            return known
    begun = time.perf_counter()
    known = ask()
    short = is_short()
    file = files[-1 if short else 0]
    if file is not None and (short or time.perf_counter() - begun >= _LEAST_SECONDS):
        _write(file, known)
    return known


def _joined(files: Iterable[Path | None]) -> pd.DataFrame | None:
    """The answers that are kept in files, one after the other; None unless all are."""
    contents = []
    try:
        for file in files:
            checkpoint()
            if file is None:
                return None
            contents.append(read_sealed(file))
            os.utime(file)  # marks it as recently used
        return joined_from_arrow(contents)[0]
    except UNREADABLE:
        return None


def stacked_ranks(
    trace: Trace,
    scope: Scope,
    ask_rank: Callable[[Scope], pd.DataFrame],
    ask: Callable[[Scope], pd.DataFrame],
) -> pd.DataFrame:
    """The answer of an analysis that splits by rank, from those about each rank.

    Args:
        ask_rank: the answer about a scope of one rank.
        ask: the same of any scope; it says what is missing where no rank has an answer.

    Raises:
        MissingDataError: no rank has an answer.
    """
    parts = []
    for rank in trace.ranks_of(scope):
        checkpoint()
        with contextlib.suppress(MissingDataError):
            parts.append(ask_rank(replace(scope, ranks=(rank,))))
    return stacked(parts) if parts else ask(scope)


def _file(
    trace: Trace,
    compute: Callable[..., Any],
    scope: Scope,
    options: dict[str, Any],
    by_rank: bool,
    limit: int | None = None,
) -> Path | None:
    """Where the answer to a question is kept, or that of a job that exceeds a limit; None if it is not."""
    if scope.window_ns is not None or scope.streams is not None or scope.names is not None:
        return None
    if trace.answers is None or not trace.key or not (code := _code()) or stated_by_user():
        return None
    ranks = trace.ranks_of(scope)
    # Beside the rank itself it matters only which others time its iterations with it.
    content = trace.rank_keys[ranks[0]] if by_rank and len(ranks) == 1 else trace.key
    parts = [scope.iterations, ranks, sorted(options.items())]
    question = [code, content, f"{compute.__module__}.{compute.__qualname__}", parts, limit]
    try:
        text = json.dumps(question)
    except (TypeError, ValueError):  # an option that is no plain value
        return None
    return trace.answers / f"{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}{SUFFIX}"


@cache
def _code() -> str:
    """Names the code that answers, with the versions of what makes the tables; "" if unknown."""
    digest = hashlib.blake2b(f"{pd.__version__} {pa.__version__}".encode(), digest_size=16)
    root = Path(__file__).parents[2]
    try:
        files = [file for folder in ("analysis", "trace") for file in sorted((root / folder).rglob("*.py"))]
        for file in (*files, root / "formatting.py", root / "kernel_names.py"):
            digest.update(f"{file.relative_to(root)}\n".encode())
            digest.update(file.read_bytes())
    except OSError:  # installed as something else than files
        return ""
    return digest.hexdigest() if files else ""


def _write(file: Path, frame: pd.DataFrame) -> None:
    if frame.memory_usage(deep=False).sum() <= _LARGEST:
        keep_frame(file, frame, _PART_OF_BUDGET, _TRIM_EVERY)
