"""The table of operators: their calls, their time on the host and on the device, and what they cost."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.calls.phases import PHASES
from hta_widgets.analysis.core.entry import Analysis, Option
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.operators.calls import is_module, module_calls, operator_calls
from hta_widgets.analysis.operators.categories import category_of
from hta_widgets.analysis.operators.costs import SUMS, module_costs, operator_costs
from hta_widgets.analysis.operators.groups import BY, OF_MODULES, By, Groups, groups_of
from hta_widgets.analysis.operators.memory import COLUMNS, memory_of
from hta_widgets.analysis.operators.replayed import with_replayed
from hta_widgets.analysis.operators.totals import Totals
from hta_widgets.arrays import Float64
from hta_widgets.charts.spec import Bars
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief, counted, duration, percent
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

OUTSIDE: Final = {by: "(no module)" if by in OF_MODULES else "(no operator)" for by in BY}
"""The name of the row of device work that no operator, or module, launched."""

_FURTHER: Final[dict[str, tuple[str, ...]]] = {
    "shapes": ("input_shapes", "input_types"), "call_path": ("call_path",)
}  # fmt: skip
_COLUMNS: Final = {
    "category": "str", "parent": "str", "calls": "int64", "host_self_ns": "int64", "host_runtime_ns": "int64",
    "host_total_ns": "int64", "mean_host_ns": "float64", "host_self_pct": "float64", "kernels": "int64",
    "device_self_ns": "int64", "device_total_ns": "int64", "mean_device_ns": "float64",
    "device_self_pct": "float64", **{f"{phase}_ns": "int64" for phase in PHASES}, "longest_kernel": "str",
    "flops": "float64", "bytes": "float64", "formula_pct": "float64", "bounded": "bool",
    "tflops_s": "float64", "gb_s": "float64", "flops_per_byte": "float64", "bound": "str",
    "efficiency_pct": "float64",
    **{f"{name}_bytes": "Int64" for name in COLUMNS},
}  # fmt: skip


@kept(by_rank=True)
def operators(trace: Trace, scope: Scope | None = None, by: By = "name") -> pd.DataFrame:
    """What does each operator cost the host and the device, and how fast is its work done?

    The table of `torch.profiler`'s `key_averages`, from the recording. An operator is a call that PyTorch
    recorded as `cpu_op`; one that is all that a caller of its name does is part of that call. Device work
    (kernels, copies, fills, collectives) belongs to the innermost operator open on the launching thread when
    it was launched. Kernels of graphs that a server replays are rows by their part of the model, such as
    "[graph] qkv" (`roles`), or by the module that captured them. What else no operator launched is the row
    "(no operator)", so device_self_ns adds up to the time of all device work of the scope.

    Calls belong to the iteration and the window that they start in, with their whole time on the host;
    device work belongs as in `RankTrace.members`, and streams and names choose among it. Totals count a
    nanosecond once, however deep an operator calls itself; `key_averages` counts it again in each call.

    A formula gives the operations of a call and the memory traffic that it cannot do without, from shapes,
    types and values of its inputs, with all that it calls; an operator without one costs what the operators
    in it cost. Rates are those of the calls with figures and device work, over all of that work.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.
        by: a row for each "name" of an operator; name, "shapes" and types of the inputs; "category"
            (matmul, convolution, attention, norm, elementwise, reduction, embedding, optimizer, copy,
            communication, other); "call_path" of operators and the modules around them; "module": each
            `nn.Module`, with its calls, the operators that ran in them, and the backward operators that
            differentiate those (by sequence number); or "module_class": all modules of a class.

    Returns:
        One row per rank and group, by rank, then most device_self_ns first. Columns: rank int64, name (str),
        [input_shapes, input_types (str, such as "(5185, 64), (64, 64)"; by shapes)], [call_path (str)],
        category, parent (str; the group that calls it most often, "" for none), calls, host_self_ns (without
        inner operators), host_runtime_ns (the part of it in calls of the runtime: launches, copies, waits),
        host_total_ns (int64, ns), mean_host_ns (float64, ns), host_self_pct (float64, % of the rank's),
        kernels (int64, pieces of device work it launched itself), device_self_ns, device_total_ns (int64, ns;
        launched by it, with those in it), mean_device_ns (float64, ns), device_self_pct (float64, % of the
        rank's), forward_ns, backward_ns, optimizer_ns, other_ns (int64, ns; device_self_ns by phase of a
        training step), longest_kernel (str; the name with most device_self_ns), flops, bytes (float64, NaN:
        unknown), formula_pct (float64, % of the time of its calls' device work that a formula describes),
        bounded (bool; shapes only bound some of the figures), tflops_s, gb_s (float64, 1e12 operations and
        1e9 bytes per second), flops_per_byte (float64, of calls with both), bound (str: "compute"
        or "memory", whichever the work would take longer for at the peaks of the device; null where they or
        the unit that multiplies are unknown), efficiency_pct (float64, % of the calls' time that it would
        take then), host_memory_self_bytes,
        host_memory_total_bytes, device_memory_self_bytes, device_memory_total_bytes (Int64, bytes allocated
        less bytes freed in its calls, without and with inner operators; NA without memory events).

    Raises:
        MissingDataError: no selected rank has operators, their shapes (by shapes), or frames of modules (by
            module or module_class).
        ValueError: `by` is none of the above.

    The peaks are those of the device's datasheet and of the unit that the longest kernel of a call uses, as
    its name says; see `kernel_classes`. bytes are the compulsory traffic of the roofline model (Williams,
    Waterman and Patterson, CACM 52(4), 2009). Each formula names its source where it is defined.
    """
    if by not in BY:
        raise ValueError(f"by must be one of {', '.join(BY)}, not {by!r}")
    scope = scope or Scope()
    ranks = trace.ranks_of(scope)
    frames = []
    for rank in ranks:
        checkpoint()
        rank_trace = trace.rank(rank)
        if _answers(rank_trace, by):
            frames.append(_of_rank(rank_trace, trace.clock.offset_ns.get(rank, 0), scope, by))
    if ranks and not frames:
        raise _missing(by)
    frames = [frame for frame in frames if len(frame)] or frames[:1]
    # typed once for all ranks: a job may have a thousand, and casting takes longer than making the rows
    return _typed(pd.concat(frames, ignore_index=True) if frames else None, by)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `operators` in words."""
    inside = frame[~frame["name"].isin([*OUTSIDE.values()])]
    if inside.empty:
        return "No operator in the selection."
    device = int(frame["device_self_ns"].sum())
    if not device:
        name, own = _greatest(inside, "host_self_ns")
        text = f"The host spends most time in {brief(name)} itself: {duration(own)}."
        return f"{text} No operator launched device work."
    name, own = _greatest(inside, "device_self_ns")
    if not own:
        return f"Device work takes {duration(device)}. No operator launched any of it."
    calls = int(inside.loc[inside["name"] == name, "calls"].sum())
    in_calls = f" in {counted(calls, 'call')}" if calls else ""  # replayed graphs call no operator
    return (
        f"Device work takes {duration(device)}. Of all operators, {brief(name)} takes longest: "
        f"{percent(100.0 * own / device)}{in_calls}."
    )


def _greatest(frame: pd.DataFrame, column: str) -> tuple[str, int]:
    total = frame.groupby("name", sort=True)[column].sum()
    return str(total.idxmax()), int(total.max())


@memoize_per_rank(last=len(BY))
def _answers(rank_trace: RankTrace, by: By) -> bool:
    """Whether a rank has what the rows are made of."""
    if by in OF_MODULES:
        return bool(is_module(rank_trace).any())
    operator = rank_trace.event_class == EventClass.HOST_OP
    if by == "shapes":
        operator &= rank_trace.argument_codes("input_dims") >= 0
    return bool(operator.any())


def _missing(by: By) -> MissingDataError:
    profile = "Record with torch.profiler.profile"
    if by in OF_MODULES:
        return MissingDataError("nn.Module frames", f"{profile}(with_stack=True).")
    if by == "shapes":
        return MissingDataError("shapes of operators", f"{profile}(record_shapes=True).")
    return MissingDataError("operators", f"{profile}(activities=[ProfilerActivity.CPU, ...]).")


def _of_rank(rank_trace: RankTrace, offset_ns: int, scope: Scope, by: By) -> pd.DataFrame:
    groups = groups_of(rank_trace, by)
    if by in OF_MODULES:
        calls, costs = module_calls(rank_trace)[0], module_costs(rank_trace)
    else:
        calls, costs = operator_calls(rank_trace), operator_costs(rank_trace)
    totals = Totals(rank_trace, calls, costs, groups.of, len(groups.names), scope)
    memory = memory_of(
        rank_trace, offset_ns, calls.parent, groups.of, len(groups.names), scope, by in OF_MODULES
    )
    shown = (totals.calls > 0) | (totals.kernels > 0)
    if memory is not None:
        shown |= memory.any(axis=1)
    keep = np.flatnonzero(shown)
    names = np.array([*groups.names, OUTSIDE[by]], object)
    order = np.lexsort((keep, -totals.host_self_ns[keep], -totals.device_self_ns[keep]))
    keep = keep[order]
    columns = _columns(rank_trace, groups, totals, names, keep, by)
    for at, name in enumerate(COLUMNS):
        columns[f"{name}_bytes"] = pd.array(
            [pd.NA] * len(keep) if memory is None else memory[keep, at], "Int64"
        )
    frame = pd.DataFrame(columns, index=range(len(keep)))
    return with_replayed(frame, rank_trace, scope, calls, by, OUTSIDE[by])


def _columns(
    rank_trace: RankTrace, groups: Groups, totals: Totals, names: npt.NDArray[Any],
    keep: npt.NDArray[np.int64], by: By,
) -> dict[str, Any]:  # fmt: skip
    calls, total = totals.calls[keep], totals.device_total_ns[keep]
    longest = totals.longest[keep]
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "rank": np.full(len(keep), rank_trace.rank),
            "name": names[keep],
            **{name: np.array([*texts, ""], object)[keep] for name, texts in groups.further.items()},
            "category": [_category(str(name), by) for name in names[keep]],
            "parent": np.append(names, "")[totals.parent[keep]],
            "calls": calls,
            "host_self_ns": totals.host_self_ns[keep],
            "host_runtime_ns": totals.host_runtime_ns[keep],
            "host_total_ns": totals.host_total_ns[keep],
            "mean_host_ns": _ratio(totals.host_total_ns[keep], calls),
            "host_self_pct": _ratio(100.0 * totals.host_self_ns[keep], totals.host_self_ns.sum()),
            "kernels": totals.kernels[keep],
            "device_self_ns": totals.device_self_ns[keep],
            "device_total_ns": total,
            "mean_device_ns": _ratio(total, calls),
            "device_self_pct": _ratio(100.0 * totals.device_self_ns[keep], totals.device_self_ns.sum()),
            **{f"{phase}_ns": totals.phase_ns[keep, at] for at, phase in enumerate(PHASES)},
            "longest_kernel": np.array([*rank_trace.names, ""], object)[longest],
            **figures(totals.costs[keep]),
        }


def figures(costs: Float64) -> dict[str, Any]:
    """The columns of `operators` that formulas give, of rows of sums as in `Totals.costs`."""
    sums = dict(zip(SUMS, costs.T, strict=True))
    return {
        "flops": np.where(sums["counted"] > 0, sums["flops"], np.nan),
        "bytes": np.where(sums["sized"] > 0, sums["bytes"], np.nan),
        "formula_pct": _ratio(100.0 * sums["covered_ns"], sums["device_ns"]),
        "bounded": sums["bounded"] > 0,
        "tflops_s": _ratio(sums["timed_flops"] / 1e3, sums["flops_ns"]),
        "gb_s": _ratio(sums["timed_bytes"], sums["bytes_ns"]),
        "flops_per_byte": _ratio(sums["both_flops"], sums["both_bytes"]),
        "bound": _bound(sums),
        "efficiency_pct": _ratio(100.0 * sums["roof_ns"], sums["roofed_ns"]),
    }


def _category(name: str, by: By) -> str:
    if by in OF_MODULES or name in OUTSIDE.values():
        return ""
    return name if by == "category" else category_of(name)


def _bound(sums: dict[str, Float64]) -> Any:
    """What the calls' work would take longest for at the peaks of their device, null if that is unknown."""
    longer = np.where(sums["compute_roof_ns"] > sums["memory_roof_ns"], "compute", "memory")
    return pd.Series(longer, dtype="str").where(sums["roofed_ns"] > 0)


def _ratio(part: Any, whole: Any) -> Float64:
    """part / whole, NaN where the whole is 0."""
    return np.asarray(part, np.float64) / np.where(np.asarray(whole) > 0, whole, np.nan)


def _typed(frame: pd.DataFrame | None, by: By) -> pd.DataFrame:
    kinds = {"rank": "int64", "name": "str", **dict.fromkeys(_FURTHER.get(by, ()), "str"), **_COLUMNS}
    # Before pandas 3, `astype` makes words of nulls.
    known = {name: kind for name, kind in kinds.items() if name != "bound" or frame is None}
    frame = pd.DataFrame(columns=[*kinds]) if frame is None else frame[[*kinds]]
    return frame.astype(known)


ANALYSIS = Analysis(
    label="Operators",
    group="Kernels",
    title="Which operators keep the host and the device busy",
    function=operators,
    sentence=sentence,
    chart=Bars(
        "device_self_ns", ("name",), "compute", names="name", no_event=OUTSIDE["name"], measure="Device time"
    ),
    requires=("operators",),
    options=(Option("by", "Rows", BY, "name", no_events=("module", "module_class", "category")),),
)
