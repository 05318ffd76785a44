"""The runs of a comparison, by name."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from hta_widgets.trace.model import Trace
from hta_widgets.widgets.part import as_selection, as_trace, variable_name
from hta_widgets.widgets.selection import Selection

Runs = Mapping[str, Trace]
Selections = Mapping[str, "Selection | dict[str, Any]"]


def named(runs: Sequence[Any], names: Sequence[str] | None = None) -> dict[str, Any]:
    """The runs by name: those of one mapping {name: run}, or `runs` with `names` or their own.

    Raises:
        ValueError: fewer than two runs, or names that are not one for each, distinct and not empty.
    """
    if len(runs) == 1 and _has_names(runs[0]):
        if names is not None:
            raise ValueError("the runs of a mapping have their names already")
        names, runs = tuple(runs[0]), tuple(runs[0].values())
    if len(runs) < 2:
        raise ValueError(f"a comparison takes at least 2 runs, not {len(runs)}")
    names = default_names(runs) if names is None else tuple(names)
    if len(names) != len(runs) or len(set(names)) != len(names) or not all(names):
        raise ValueError(f"{len(runs)} runs take as many distinct names, not {names!r}")
    return dict(zip(names, runs, strict=True))


def default_names(runs: Sequence[Any]) -> tuple[str, ...]:
    """For each run the last part of its path, with as many parent folders as make the names distinct.

    An open trace is named after its variable in the notebook; anything else by its number.
    """
    paths = [_path(run) or PurePosixPath(variable_name(run, f"run {at}")) for at, run in enumerate(runs, 1)]
    texts = [_shortest(path, set(paths) - {path}) for path in paths]
    given: Counter[str] = Counter()
    names = []
    for text in texts:  # the same path twice
        given[text] += 1
        names.append(text if given[text] == 1 else f"{text} ({given[text]})")
    return tuple(names)


def _shortest(path: PurePosixPath, others: set[PurePosixPath]) -> str:
    """The last parts of a path, as many as no other one ends with."""
    for depth in range(1, len(path.parts)):
        if all(other.parts[-depth:] != path.parts[-depth:] for other in others):
            return "/".join(path.parts[-depth:])
    return str(path)


def opened(runs: Mapping[str, Any]) -> dict[str, Trace]:
    """The runs as open traces.

    Raises:
        ValueError: fewer than two runs.
    """
    if len(runs) < 2:
        raise ValueError(f"a comparison takes at least 2 runs, not {len(runs)}")
    return {str(name): as_trace(run) for name, run in runs.items()}


def selections_of(names: Sequence[str], given: Selections | None) -> dict[str, Selection]:
    """A selection for each run: the given one, one made of a dict of its traits, or a new one.

    Raises:
        ValueError: a selection is given for a run that does not exist.
    """
    given = given or {}
    if unknown := [name for name in given if name not in names]:
        raise ValueError(f"there is no run {unknown[0]!r}; the runs are {', '.join(names)}")
    return {name: as_selection(given.get(name)) for name in names}


def distinct(selections: Mapping[str, Selection]) -> list[Selection]:
    """The selections, each once: runs may share one."""
    return list({id(selection): selection for selection in selections.values()}.values())


def _has_names(run: Any) -> bool:
    """Whether this is {name: run}, and not {rank: file}."""
    return isinstance(run, Mapping) and all(isinstance(name, str) for name in run)


def _path(run: Any) -> PurePosixPath | None:
    if isinstance(run, str) and "://" in run:
        return PurePosixPath(run.rstrip("/"))
    if isinstance(run, str | os.PathLike):
        return PurePosixPath(Path(run).resolve().as_posix())
    return None
