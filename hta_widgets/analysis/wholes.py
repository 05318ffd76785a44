"""The time that a panel is about, and its words: by default that of the findings beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hta_widgets.formatting import counted, duration

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.scope import Scope

__all__ = ["shown_scope", "whole_of"]

# Analyses of the windows of a scope; all others are about events, or choose their time themselves.
_OF_WINDOWS = (
    "temporal_breakdown",
    "comm_comp_overlap",
    "kernel_type_breakdown",
    "idle_breakdown",
    "idle_gaps",
)


def shown_scope(trace: Trace, kind: str, scope: Scope) -> Scope:
    """The scope that a panel of analysis `kind` answers about when a selection has this one.

    Shares are of the steps that findings judge, unless iterations or a time window are selected; a window of
    the whole recording shows all recorded device work.
    """
    chosen = scope.iterations is not None or scope.window_ns is not None
    if kind not in _OF_WINDOWS or chosen:
        return scope
    from hta_widgets.analysis.findings import judged_scope  # with all rules: only where it is needed
    from hta_widgets.analysis.findings.recording_rules import recording_verdict

    if recording_verdict(trace, scope):
        return scope
    return judged_scope(trace, scope)


def whole_of(trace: Trace, kind: str, scope: Scope) -> str:
    """`over 5 steps, 402 ms` or `over all recorded device work, 812 ms`; "" where it is about no time.

    Args:
        trace: the job.
        kind: the analysis.
        scope: what it was asked about, of a panel `shown_scope`.

    Of a job of which ranks are missing, or files could not be read, it says so: no answer holds them.
    """
    return ", ".join(filter(None, (_time_of(trace, kind, scope), trace.without)))


def _time_of(trace: Trace, kind: str, scope: Scope) -> str:
    if kind == "overview":
        from hta_widgets.analysis.findings import judged_scope
        from hta_widgets.analysis.findings.recording_rules import recording_verdict

        if recording_verdict(trace, scope):
            return ""
        judged = judged_scope(trace, scope)
    elif kind in _OF_WINDOWS:
        judged = scope
    else:
        return ""
    traces = [trace.rank(rank) for rank in trace.ranks_of(judged)]
    windows = [each.windows(judged) for each in traces if each.device_span is not None]
    lengths = sorted({int((own[:, 1] - own[:, 0]).sum()) for own in windows} - {0})
    if not lengths:
        return ""
    least, most = duration(lengths[0]), duration(lengths[-1])
    time = most if least == most else f"{least} to {most}"
    if judged.iterations is None:
        what = "over all recorded device work" if judged.window_ns is None else "within the time window"
    else:
        marked = all(trace.rank(rank).is_marked for rank in trace.ranks_of(judged))
        what = f"over {counted(len(judged.iterations), 'step' if marked else 'iteration')}"
        what += " within the time window" * (judged.window_ns is not None)
    return f"{what}, {time}{' on each rank' * (len(windows) > 1)}"
