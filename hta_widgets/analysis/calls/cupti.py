"""The hardware counters of each kernel, and the operator that launched it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pandas as pd

from hta_widgets.analysis.calls.stacks import stacks
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.charts.spec import Bars
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import counted, flop_count, none_of, percent
from hta_widgets.trace.classify import COUNTER_RANGE, EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.raw import RawTrace
from hta_widgets.trace.scope import Scope

_LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel")

CUDA_SASS_INSTRUCTION_COUNTER_FLOPS: dict[str, float] = {
    f"smsp__sass_thread_inst_executed_op_{precision}{operation}_pred_on.sum": 2 if operation == "fma" else 1
    for precision in "fhd"
    for operation in ("fma", "mul", "add")
}
"""Counter -> floating-point operations of one counted instruction: a fused multiply-add makes two."""

_COLUMNS = {
    "rank": np.int64,
    "event_id": np.int64,
    "launch_event_id": np.int64,
    "start_ns": np.int64,
    "dur_ns": np.int64,
    "name": object,
    "op_stack": object,
    "top_level_op": object,
    "bottom_level_op": object,
    "flops": np.float64,
}


def cupti_counters(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """Pair each range that CUPTI's profiler measured with the call that launched its kernel.

    With counters on, kernels run one by one, each in a range of its own, and CUPTI records no link between
    the two. They are paired by order: the i-th range belongs to the i-th kernel launch of the rank. That
    holds only if there are as many launches as ranges; otherwise no range of the rank is paired, rather than
    some wrongly.

    Args:
        trace: the job.
        scope: ranks; iterations and time window choose ranges by the start of their launch (unpaired ones by
            their own), names by the kernel's name.

    Returns:
        One row per range, by rank and start. Columns: rank, event_id, launch_event_id (-1: not paired),
        start_ns, dur_ns (int64; CUPTI spreads its ranges evenly, so their times give the order only), name
        (str, the kernel's, as CUPTI writes it), op_stack (list of str, the operators that were open at the
        launch, outermost first), top_level_op, bottom_level_op (str, its first and last entry, "" without
        any), flops (float64, sum of counter times `CUDA_SASS_INSTRUCTION_COUNTER_FLOPS`, NaN without such a
        counter), then the counters under their own names (int64, or float64 where a value has a fraction or
        is absent).

    Raises:
        MissingDataError: no selected rank has such ranges.
    """
    scope = scope or Scope()
    ranks = trace.ranks_of(scope)
    parts, measured = [], 0
    for rank in ranks:
        checkpoint()
        rank_trace = trace.rank(rank)
        ranges = _in_category(rank_trace, (COUNTER_RANGE,))
        if not len(ranges):
            continue
        measured += 1
        parts.append(_of_rank(rank_trace, ranges, scope))
    if ranks and not measured:
        raise MissingDataError(
            "CUPTI counter ranges",
            "Record with torch.profiler.profile(experimental_config=torch._C._profiler._ExperimentalConfig("
            "profiler_metrics=[...], profiler_measure_per_kernel=True)).",
            f"{none_of(ranks)} of category {COUNTER_RANGE}",
        )
    if not parts:
        return pd.DataFrame({name: np.empty(0, kind) for name, kind in _COLUMNS.items()})
    return pd.concat(parts, ignore_index=True).astype(_COLUMNS)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `cupti_counters` in words."""
    if frame.empty:
        return "No measured kernel lies in the selection."
    unpaired = int((frame["launch_event_id"] < 0).sum())
    text = f"{counted(len(frame), 'kernel')} {'was' if len(frame) == 1 else 'were'} measured"
    if unpaired:
        number = "" if unpaired == len(frame) else f"{unpaired:,} of them "
        text += f", {number}not paired with a launch, as the counts differ"
    by_operator = frame.loc[frame["top_level_op"] != ""].groupby("top_level_op", sort=True)["flops"].sum()
    total = float(frame["flops"].sum())
    if by_operator.empty or not total > 0:
        return text + "."
    at = int(by_operator.to_numpy().argmax())
    most, share = by_operator.index[at], 100.0 * by_operator.iloc[at] / total
    made = "It made" if len(frame) == 1 else "They made"
    return f"{text}. {made} {flop_count(total)}, {percent(share)} of that in {most}."


def _in_category(rank_trace: RankTrace, categories: tuple[str, ...]) -> npt.NDArray[np.int64]:
    """Rows of these categories by start, then file order."""
    wanted = np.array([text in categories for text in rank_trace.categories], np.bool_)
    return rank_trace.by_start[wanted[rank_trace.category[rank_trace.by_start]]]


def _launches(rank_trace: RankTrace) -> npt.NDArray[np.int64]:
    """Kernel launches by start. A launch inside a launch (the driver's in the runtime's) is the same one."""
    named = np.array([text.startswith(_LAUNCHES) for text in rank_trace.names], np.bool_)
    launching = named[rank_trace.name] & (rank_trace.event_class == EventClass.RUNTIME)
    inner = (rank_trace.parent >= 0) & launching[rank_trace.parent]
    rows = np.flatnonzero(launching & ~inner)
    return rows[np.lexsort((rows, rank_trace.start[rows]))]


def _of_rank(rank_trace: RankTrace, ranges: npt.NDArray[np.int64], scope: Scope) -> pd.DataFrame:
    launches = _launches(rank_trace)
    paired = len(launches) == len(ranges)
    launch = launches if paired else np.full(len(ranges), -1, np.int64)
    member = np.zeros(rank_trace.n, np.bool_)
    member[rank_trace.members(Scope(iterations=scope.iterations, window_ns=scope.window_ns))] = True
    kept = member[np.where(launch >= 0, launch, ranges)]
    if scope.names is not None:
        kept &= np.isin(np.array(rank_trace.names, object)[rank_trace.name[ranges]], scope.names)
    ranges, launch = ranges[kept], launch[kept]
    open_operators = _operators(rank_trace, launch)
    counters = _counters(rank_trace, ranges)
    factors = {name: CUDA_SASS_INSTRUCTION_COUNTER_FLOPS[name] for name in counters if name in _FLOPS}
    flops = sum((counters[name] * factor for name, factor in factors.items()), start=0.0)
    frame = pd.DataFrame(
        {
            "rank": np.full(len(ranges), rank_trace.rank, np.int64),
            "event_id": rank_trace.event_id[ranges],
            "launch_event_id": np.where(launch >= 0, rank_trace.event_id[launch], -1),
            "start_ns": rank_trace.start[ranges],
            "dur_ns": rank_trace.dur[ranges],
            "name": np.array(rank_trace.names, object)[rank_trace.name[ranges]],
            "op_stack": pd.Series(open_operators, dtype=object),
            "top_level_op": pd.Series([names[0] if names else "" for names in open_operators], dtype=object),
            "bottom_level_op": pd.Series(
                [names[-1] if names else "" for names in open_operators], dtype=object
            ),
            "flops": flops if factors else np.nan,
        }
    )
    return pd.concat([frame, counters], axis=1)


_FLOPS = frozenset(CUDA_SASS_INSTRUCTION_COUNTER_FLOPS)


def _operators(rank_trace: RankTrace, launch: npt.NDArray[np.int64]) -> list[list[str]]:
    """Names of the operators open at each launch, outermost first."""
    parent = stacks(rank_trace).parent
    # All launches climb one caller at a time.
    levels: list[npt.NDArray[np.int64]] = []
    at = launch.copy()
    while (at >= 0).any():
        levels.append(
            np.where((at >= 0) & (rank_trace.event_class[at] == EventClass.HOST_OP), rank_trace.name[at], -1)
        )
        at = np.where(at >= 0, parent[at], -1)
    if not levels:
        return [[] for _ in launch]
    return [
        [rank_trace.names[code] for code in codes if code >= 0]
        for codes in np.stack(levels[::-1], axis=1).tolist()
    ]


def _counters(rank_trace: RankTrace, ranges: npt.NDArray[np.int64]) -> pd.DataFrame:
    """The numbers among the arguments of each range; their names are free, so they are read from the file."""
    raw = RawTrace.read(rank_trace.path)
    found: list[dict[str, Any]] = []
    for event in rank_trace.event_id[ranges].tolist():
        # Written and read again: `RawTrace` keeps fractions as text.
        args = orjson.loads(orjson.dumps(raw.event(event).get("args")))
        found.append(
            {key: value for key, value in args.items() if isinstance(value, int | float)}
            if isinstance(args, dict)
            else {}
        )
    return pd.DataFrame(found, index=range(len(found)))


ANALYSIS = Analysis(
    label="Counters",
    group="Kernels",
    title="How many floating-point operations each operator takes",
    function=cupti_counters,
    sentence=sentence,
    chart=Bars("flops", ("top_level_op",), "compute", names="name", measure="Operations"),
    requires=("CUPTI counter ranges",),
)
