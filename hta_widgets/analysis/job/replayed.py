"""How long the iterations of a job would take after changes between ranks: the rows of `what_if`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.device_time.busy import Busy
from hta_widgets.analysis.job.changes import Changed, unchanged
from hta_widgets.analysis.job.ideal import COMMUNICATION
from hta_widgets.analysis.job.model import HOST, JobModel
from hta_widgets.analysis.job.network import Network
from hta_widgets.analysis.job.trusted import trusted_model
from hta_widgets.analysis.parallelism.rescheduled import rescheduled
from hta_widgets.arrays import Bool, Int64
from hta_widgets.engine import checkpoint
from hta_widgets.trace.model import Trace

Change = Callable[[JobModel, Changed], Changed]


def replayed_job_rows(
    trace: Trace, changes: Iterable[Change], ranks: list[int], iterations: list[int] | None
) -> pd.DataFrame:
    """One row per rank and complete iteration that all ranks have in common, with the columns of `what_if`.

    All ranks of the trace are replayed together; the choice is of rows. A rank's iteration begins with that
    of the job, and ends with the rank's last device work.

    Raises:
        MissingDataError: as `slowdown`.
        ValueError: a change names what the job does not have.
    """
    model = trusted_model(trace, None, None)
    changed, changes_made = unchanged(model), 0
    for changes_made, change in enumerate(changes, 1):  # noqa: B007 - their number
        changed = change(model, changed)
    own = changed.taken
    hosts, count = _hosts(model), len(own)
    taken = np.append(own, np.where(changed.usual[hosts], model.ideal[count:], model.taken[count:]))
    changed_net = model.net.with_edges(changed.before, changed.after)
    ends = changed_net.ends(taken)
    last = _last_ends(model, model.net, ends)
    afters = [last]
    for net, before, ideal, late in model.others:
        checkpoint()
        other = np.append(own, np.where(changed.usual[late], ideal[count:], before[count:]))
        ends_then = net.with_edges(changed.before, changed.after).ends(other)
        afters.append(_last_ends(model, net, ends_then))
    table = model.ops[["rank", "step", "iteration"]].drop_duplicates(["rank", "step"])
    table = table.sort_values(["rank", "step"], ignore_index=True)
    place = table["rank"].rank(method="dense").astype(int).to_numpy() - 1, table["step"].to_numpy(np.int64)
    rows = pd.DataFrame(
        {
            "rank": table["rank"],
            "iteration": table["iteration"].astype("Int64"),
            "clock": "device",
            "before_ns": _last_ends(model, model.net, model.net.ends(model.taken))[place],
            "low_ns": np.min(afters, axis=0)[place],
            "after_ns": last[place],
            "high_ns": np.max(afters, axis=0)[place],
        }
    )
    parts = _parts(model, taken, ends, last, changed.fixed == 0)
    for name, values in parts.items():
        rows[name] = values[place]
    rows["model_error_pct"] = [100.0 * model.model_error[rank] for rank in rows["rank"].tolist()]
    rows["inferred"] = _inferred(model)[place[0]]
    if changed.microbatches is not None:
        if changes_made > 1:
            raise ValueError("another number of microbatches is replayed alone, without other changes")
        rows = _rescheduled(rows, rescheduled(trace, *changed.microbatches))
    chosen = rows["rank"].isin(ranks)
    chosen &= True if iterations is None else rows["iteration"].isin(iterations)
    return rows[chosen].reset_index(drop=True)


def _rescheduled(rows: pd.DataFrame, shifts: pd.DataFrame) -> pd.DataFrame:
    """The rows with what each rank gains or loses in the pipeline; ranks of no pipeline as the slowest one.

    What is not computing is waiting for other stages, as far as there is any, and else idle.
    """
    found = rows.merge(shifts, "left", on=["rank", "iteration"])
    last = found.groupby("iteration")[["shift_ns", "shift_low_ns", "shift_high_ns"]].transform("max")
    for name, shift in (("after_ns", "shift_ns"), ("low_ns", "shift_low_ns"), ("high_ns", "shift_high_ns")):
        later = found[shift].fillna(last[shift]).fillna(0).astype("int64")
        found[name] = (found["before_ns"] + later).clip(lower=0)
    found["compute_ns"] = (found["compute_ns"] + found["computing_ns"].fillna(0).astype("int64")).clip(
        lower=0
    )
    left = found["after_ns"]
    for name in ("compute_ns", "exposed_memory_ns", "idle_ns"):
        found[name] = found[name].clip(upper=left)
        left = left - found[name]
    return found.assign(exposed_communication_ns=left)[rows.columns]


def _hosts(model: JobModel) -> Int64:
    """The operation that each wait for the host precedes."""
    waits = np.flatnonzero((model.ops["kind"] == HOST).to_numpy())
    precedes = np.full(len(model.ops), -1, np.int64)
    precedes[model.net.before] = model.net.after
    return precedes[waits]


def _rank_codes(model: JobModel) -> tuple[Int64, int]:
    code, ranks = pd.factorize(model.ops["rank"], sort=True)
    return code.astype(np.int64), len(ranks)


def _last_ends(model: JobModel, net: Network, ends: Int64) -> Int64:
    """When each rank ends each step: int64[ranks, steps], from the begin of the step."""
    count = int((model.ops["kind"] != HOST).sum())
    code, ranks = _rank_codes(model)
    found = np.zeros((ranks, net.steps), np.int64)
    np.maximum.at(found, (code[:count], net.step[:count]), ends[:count])
    return found


def _parts(model: JobModel, taken: Int64, ends: Int64, last: Int64, gone: Bool) -> dict[str, Int64]:
    """Where the time of each rank and step goes: compute, exposed communication, exposed memory, idle.

    A collective runs from when it could begin on its rank: it includes waiting for others. Those that others
    take with them are `gone`.
    """
    kind = model.ops["kind"]
    communicates = kind.isin(COMMUNICATION).to_numpy(copy=True)
    communicates[: len(gone)] &= ~gone
    of = {
        "compute": (kind == "compute").to_numpy(),
        "communication": communicates,
        "memory": (kind == "copy").to_numpy(),
    }
    begin = ends - taken
    waits = of["communication"]
    begin[waits] = np.minimum(begin, model.net.ready(ends))[waits]
    code, ranks = _rank_codes(model)
    length = int(last.max(initial=0)) + 1
    # one line for all ranks and steps: each has a stretch of its own
    shift = (code * model.net.steps + model.net.step) * length
    busy = Busy(*(Intervals.union((begin + shift)[rows], (ends + shift)[rows]) for rows in of.values()))
    starts = np.arange(ranks * model.net.steps, dtype=np.int64) * length
    windows = np.stack([starts, starts + last.reshape(-1)], axis=1)
    used = {
        f"{name}_ns": getattr(busy, name).within_each(windows)
        for name in ("compute", "exposed_communication", "exposed_memory")
    }
    idle = last.reshape(-1) - busy.any.within_each(windows)
    return {name: part.reshape(last.shape) for name, part in (used | {"idle_ns": idle}).items()}


def _inferred(model: JobModel) -> Int64:
    """How many dependencies between streams of each rank no event records."""
    code, ranks = _rank_codes(model)
    ops, net = model.ops, model.net
    lane, host = ops["lane"].to_numpy(np.int64), (ops["kind"] == HOST).to_numpy()
    between = (lane[net.before] != lane[net.after]) & ~host[net.before]
    return np.bincount(code[net.after[between]], minlength=ranks).astype(np.int64)
