"""What runs must have in common to be compared: each check looks at all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from hta_widgets.analysis.compare.sampling import OUTLIER, Steps
from hta_widgets.formatting import counted, in_words, percent
from hta_widgets.trace.classify import EventClass

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

Severity = Literal["ok", "doubt", "refuse"]
Runs = Mapping[str, "Trace"]
Samples = Mapping[str, Steps]

_FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
_VERSIONS = (
    "cuda_runtime_version", "cuda_driver_version", "cupti_version", "hip_runtime_version",
    "hip_driver_version", "roctracer_version", "nccl_version",
)  # fmt: skip
# The source of a step's marks decides what a step is.
_WHAT_STEPS = {"serving step": "serving", "whole trace": "the whole recording"}
_ENOUGH_STEPS = 3
_MANY_OUTLIERS = 0.1  # of all steps: so many belong to the job, and may be what has changed
_SHAPES_ALIKE = 0.9
_NOT_RECORDED = "not recorded"

Check = Callable[[Runs, Samples], tuple[dict[str, str], Severity, str]]


def _steps(runs: Runs, samples: Samples) -> tuple[dict[str, str], Severity, str]:
    values = {}
    for run, steps in samples.items():
        left_out = Counter(steps.excluded.values())
        details = "".join(f", {number} left out: {why}" for why, number in sorted(left_out.items()))
        values[run] = f"{len(steps)} by the {steps.clock}'s clock{details}"
    none = [run for run, steps in samples.items() if not len(steps)]
    if none:
        return values, "refuse", f"no step of {in_words(none)} is complete on all its ranks"
    few = [run for run, steps in samples.items() if len(steps) < _ENOUGH_STEPS]
    if few:
        return values, "doubt", f"too few steps in {in_words(few)} to separate a change from noise"
    for run, steps in samples.items():
        outliers = sum(why == OUTLIER for why in steps.excluded.values())
        if outliers > 1 and outliers >= _MANY_OUTLIERS * (len(steps) + outliers):
            return values, "doubt", f"{outliers} steps of {run} are outliers and do not count: see them alone"
    return values, "ok", ""


def _kind_of_steps(runs: Runs, samples: Samples) -> tuple[dict[str, str], Severity, str]:
    values = {run: steps.source or "none" for run, steps in samples.items()}
    kinds = {_WHAT_STEPS.get(source, "steps") for source in values.values() if source != "none"}
    if len(kinds) > 1:
        return values, "refuse", f"a step is not the same in all: {in_words(sorted(set(values.values())))}"
    if len(set(values.values())) > 1:
        return values, "doubt", f"steps are marked differently: {in_words(sorted(set(values.values())))}"
    return values, "ok", ""


def _device_work(runs: Runs, samples: Samples) -> tuple[dict[str, str], Severity, str]:
    found = {
        run: any(trace.rank(rank).device_span is not None for rank in samples[run].ranks)
        for run, trace in runs.items()
    }
    values = {run: "recorded" if has else _NOT_RECORDED for run, has in found.items()}
    if len(set(found.values())) > 1:
        lack = [run for run, has in found.items() if not has]
        return values, "refuse", f"{in_words(lack)} has no device events, the others have"
    return values, "ok", ""


def _server(runs: Runs, samples: Samples) -> tuple[dict[str, str], Severity, str]:
    mixes = {run: Counter(steps.kinds.tolist()) for run, steps in samples.items()}
    values = {
        run: ", ".join(f"{kind or 'step'} x {number}" for kind, number in sorted(mix.items()))
        for run, mix in mixes.items()
    }
    shares = {
        tuple((kind, round(number / mix.total(), 3)) for kind, number in sorted(mix.items()))
        for mix in mixes.values()
    }
    if len(shares) > 1:
        return values, "doubt", "the server did not do the same in its steps"
    return values, "ok", ""


def _shapes(runs: Runs, samples: Samples) -> tuple[dict[str, str], Severity, str]:
    per_step = {run: _shape_counts(trace, samples[run]) for run, trace in runs.items()}
    first = next(iter(per_step))
    values, unlike = {}, []
    for run, counts in per_step.items():
        if counts.empty or per_step[first].empty:
            values[run] = _NOT_RECORDED if counts.empty else "recorded"
            continue
        both = pd.concat([per_step[first], counts], axis=1).fillna(0.0)
        similarity = float(both.min(axis=1).sum() / max(both.max(axis=1).sum(), 1e-9))
        values[run] = f"{percent(100 * similarity)} of calls as in {first}"
        if similarity < _SHAPES_ALIKE:
            unlike.append(run)
    if unlike:
        return values, "doubt", f"operators and input shapes of {in_words(unlike)} differ from {first}"
    return values, "ok", ""


def _shape_counts(trace: Trace, steps: Steps) -> pd.Series:
    """Calls per step and rank of each operator and input shapes."""
    parts = []
    for rank in steps.ranks:
        rank_trace = trace.rank(rank)
        if not rank_trace.table.has("input_dims"):
            continue
        dims = rank_trace.argument_codes("input_dims").astype(np.int64)
        rows = np.flatnonzero((rank_trace.event_class == EventClass.HOST_OP) & (dims >= 0))
        rows = rows[steps.position(rank_trace.iteration[rows]) >= 0]
        texts = rank_trace.table.dictionary("input_dims")
        pair, count = np.unique(
            rank_trace.name[rows].astype(np.int64) * max(len(texts), 1) + dims[rows], return_counts=True
        )
        names = [
            f"{rank_trace.names[code // len(texts)]} {texts[code % len(texts)]}" for code in pair.tolist()
        ]
        parts.append(pd.Series(count / (len(steps) * len(steps.ranks)), index=names))
    return pd.concat(parts).groupby(level=0).sum() if parts else pd.Series(dtype=np.float64)


def _equal(read: Callable[[Trace, Steps], str], reason: str) -> Check:
    """The check that a value is the same in all runs that recorded it."""

    def check(runs: Runs, samples: Samples) -> tuple[dict[str, str], Severity, str]:
        values = {run: read(trace, samples[run]) for run, trace in runs.items()}
        known = sorted({value for value in values.values() if value != _NOT_RECORDED})
        if len(known) > 1:
            return values, "doubt", reason
        return values, "ok", ""

    return check


def _devices(trace: Trace, steps: Steps) -> str:
    names = sorted({name for rank in steps.ranks if (name := trace.rank(rank).device_name)})
    return in_words(names) if names else _NOT_RECORDED


def _world_size(trace: Trace, steps: Steps) -> str:
    sizes = {
        info["world_size"]
        for rank in steps.ranks
        if isinstance(info := trace.metadata(rank).get("distributedInfo"), dict) and "world_size" in info
    }
    return in_words(sorted(map(str, sizes))) if sizes else str(len(trace.ranks))


def _recorded_ranks(trace: Trace, steps: Steps) -> str:
    return ", ".join(map(str, steps.ranks)) if len(steps.ranks) <= 8 else counted(len(steps.ranks), "rank")


def _options(trace: Trace, steps: Steps) -> str:
    metadata = [trace.metadata(rank) for rank in steps.ranks]
    known = [flag for flag in _FLAGS if any(flag in one_rank for one_rank in metadata)]
    on = [flag for flag in known if any(one_rank.get(flag) for one_rank in metadata)]
    return (", ".join(on) or "none") if known else _NOT_RECORDED


def _python(trace: Trace, steps: Steps) -> str:
    found = any((trace.rank(rank).event_class == EventClass.PYTHON).any() for rank in steps.ranks)
    return "recorded" if found else "none"


def _versions(runs: Runs, samples: Samples) -> tuple[dict[str, str], Severity, str]:
    """Versions that only one of the runs recorded are not compared."""
    found = {run: _version_texts(trace, samples[run]) for run, trace in runs.items()}
    values = {
        run: ", ".join(f"{name.removesuffix('_version')} {text}" for name, text in texts.items())
        or _NOT_RECORDED
        for run, texts in found.items()
    }
    if any(len({texts[name] for texts in found.values() if name in texts}) > 1 for name in _VERSIONS):
        return values, "doubt", "driver or library versions differ"
    return values, "ok", ""


def _version_texts(trace: Trace, steps: Steps) -> dict[str, str]:
    metadata: list[dict[str, Any]] = [trace.metadata(rank) for rank in steps.ranks]
    metadata += [info for source in metadata if isinstance(info := source.get("distributedInfo"), dict)]
    return {
        name: in_words(sorted({str(source[name]) for source in metadata if name in source}))
        for name in _VERSIONS
        if any(name in source for source in metadata)
    }


REFUSING: tuple[Check, ...] = (_steps, _kind_of_steps, _device_work)
CHECKS: dict[str, Check] = {
    "steps": _steps,
    "kind of steps": _kind_of_steps,
    "device work": _device_work,
    "devices": _equal(_devices, "they ran on different devices"),
    "world size": _equal(
        _world_size, "world sizes differ: times are per rank, but so is the share of the work"
    ),
    "recorded ranks": _equal(_recorded_ranks, "not the same ranks were recorded"),
    "profiler options": _equal(_options, "profiler options differ, and cost the host different time"),
    "python frames": _equal(_python, "Python frames were recorded in some only, and slow the host down"),
    "versions": _versions,
    "served steps": _server,
    "input shapes": _shapes,
}
"""Checks that can refuse come first; they need no pass over the events."""
