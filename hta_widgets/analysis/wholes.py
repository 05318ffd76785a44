"""The time that a panel is about, and its words: by default that of the findings beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hta_widgets.formatting import counted, duration

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.scope import Scope

# Analyses that answer about the time that findings judge, as the bar and the findings beside them do.
_OF_JUDGED = frozenset(
    {
        "temporal_breakdown", "comm_comp_overlap", "idle_breakdown", "idle_gaps", "stream_idle_breakdown",
        "kernel_type_breakdown", "kernel_breakdown", "kernel_durations", "kernel_classes", "occupancy",
        "gpu_utilization",
        "operators", "roofline", "formula_coverage", "op_kernels", "fusion_candidates", "launch_stats",
        "launch_summary", "stragglers", "rank_waits", "slowdown", "collectives", "bandwidth_summary",
        "fsdp_units", "expert_balance",
    }
)  # fmt: skip
# Those that answer about the whole program, of which what lies outside of the steps is a part.
_OF_PROGRAM = frozenset(
    {
        "user_annotations", "annotation_totals", "op_counts", "call_stacks", "module_stacks",
        "kernel_sequences", "cupti_counters", "queue_length", "queue_summary", "blocked_on_full_queue",
    }
)  # fmt: skip
# All others are about every step, about memory, or about the job, and say so themselves.


def shown_scope(trace: Trace, kind: str, scope: Scope) -> Scope:
    """The scope that a panel of analysis `kind` answers about when a selection has this one.

    Figures are of the steps that findings judge, unless iterations or a time window are selected; a window of
    the whole recording shows all recorded device work.
    """
    chosen = scope.iterations is not None or scope.window_ns is not None
    if kind not in _OF_JUDGED or chosen:
        return scope
    from hta_widgets.analysis.findings import judged_scope  # with all rules: only where it is needed
    from hta_widgets.analysis.findings.recording_rules import recording_verdict

    if recording_verdict(trace, scope):
        return scope
    return judged_scope(trace, scope)


def whole_of(trace: Trace, kind: str, scope: Scope) -> str:
    """`over 5 steps, 402 ms`, `over all recorded device work, 812 ms`; "" where it is about no time.

    Args:
        scope: what it was asked about, of a panel `shown_scope`.

    Of a job of which ranks are missing, or files could not be read, it says so: no answer holds them.
    """
    return ", ".join(filter(None, (_time_of(trace, kind, scope), trace.without)))


def coverage_of(trace: Trace, scope: Scope) -> str:
    """How much of the recording the findings about a scope judge: `4 steps, 76.0 ms of 89.0 ms recorded`.

    The rest lies before the first of these steps or after the last, or in steps that are cut, hold start-up,
    or whose records are not whole. "" where nothing can be judged.
    """
    judged = _judged(trace, scope)
    lengths = [] if judged is None else _lengths(trace, judged, trace.ranks_of(judged))
    if judged is None or not lengths:
        return ""
    recorded = duration(trace.summary["duration_ns"])
    each = ", on each rank" * (len(trace.ranks_of(judged)) > 1)
    return f"{_named(trace, judged)}, {_range(lengths)} of {recorded} recorded{each}"


def _time_of(trace: Trace, kind: str, scope: Scope) -> str:
    if kind in _OF_PROGRAM and scope.iterations is None and scope.window_ns is None:
        return f"over the whole recording, {duration(trace.summary['duration_ns'])}"
    about_time = kind in _OF_JUDGED or kind in _OF_PROGRAM
    judged = _judged(trace, scope) if kind == "overview" else scope if about_time else None
    if judged is None:
        return ""
    ranks = [rank for rank in trace.ranks_of(judged) if trace.rank(rank).device_span is not None]
    lengths = _lengths(trace, judged, ranks)
    if not lengths:
        return ""
    named = _named(trace, judged)
    over = "" if named.startswith("within") else "over "
    return f"{over}{named}, {_range(lengths)}{' on each rank' * (len(ranks) > 1)}"


def _judged(trace: Trace, scope: Scope) -> Scope | None:
    """What findings about a scope are about; None of a recording that cannot be judged."""
    from hta_widgets.analysis.findings import judged_scope
    from hta_widgets.analysis.findings.recording_rules import recording_verdict

    return None if recording_verdict(trace, scope) else judged_scope(trace, scope)


def _lengths(trace: Trace, scope: Scope, ranks: list[int]) -> list[int]:
    """The different lengths of a scope on these ranks, in ns, ascending."""
    windows = [trace.rank(rank).windows(scope) for rank in ranks]
    return sorted({int((own[:, 1] - own[:, 0]).sum()) for own in windows} - {0})


def _range(lengths: list[int]) -> str:
    least, most = duration(lengths[0]), duration(lengths[-1])
    return most if least == most else f"{least} to {most}"


def _named(trace: Trace, scope: Scope) -> str:
    if scope.iterations is None:
        return "all recorded device work" if scope.window_ns is None else "within the time window"
    marked = all(trace.rank(rank).is_marked for rank in trace.ranks_of(scope))
    within = " within the time window" * (scope.window_ns is not None)
    return f"{counted(len(scope.iterations), 'step' if marked else 'iteration')}{within}"
