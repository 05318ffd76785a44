"""What the time of the devices is when little of it is lost, and idle time whose cause was not recorded."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.claim import Claim, Text, say
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.idle_time import apart_ns, idle_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import Loss, lost_on
from hta_widgets.analysis.findings.rule import Rule, idle_rule, never
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.suspects import suspects

_suspects = memoize_per_rank()(suspects)


def maybe_communication(inputs: Inputs) -> Finding | None:
    """Device work that counts as compute or copies, but is surrounded by signs of exchange between ranks."""
    longest, window, where = 0, 1, None
    for rank, time in zip(inputs.temporal["rank"], inputs.temporal["window_ns"], strict=True):
        found = inputs.of(rank, _first_suspect)
        if found is not None and int(found["dur_ns"]) > longest:
            longest, window, where = int(found["dur_ns"]), int(time), (int(rank), found)
    if where is None:
        return None
    rank, suspect = where
    share, name = 100.0 * min(longest, window) / window, str(suspect["name"])
    text = say(
        "{time} on stream {stream} of {rank} may be communication: {name}, {why}. It does not count as "
        "communication here.",
        time=Claim("longest_suspect", longest, "ns", ranks=(rank,), about={"name": name}),
        stream=Claim(
            "stream_of_suspect", str(suspect["stream"]), "name", ranks=(rank,), about={"name": name}
        ),
        rank=Claim("rank_of_suspect", (rank,), "ranks", about={"name": name}),
        name=Claim("suspect", name, "name", ranks=(rank,), shown=short_kernel_name(name)),
        why=Claim("why_suspect", str(suspect["why"]), "name", ranks=(rank,), shown=str(suspect["why"])),
    )
    return Finding(
        longest,
        share,
        text,
        "If it is, count it as such: in the list of the trace's health, by classify.register, or in a file "
        "hta_widgets.toml beside the traces.",
        "kernel_breakdown",
        Evidence(rank=rank if len(inputs.temporal) > 1 else None, name=name),
        severity="note" if severity_of(share) else None,
    )


def _first_suspect(inputs: Inputs, rank: int) -> pd.Series | None:
    """The longest work of a rank that may be communication."""
    found = _suspects(inputs.trace.rank(rank), inputs.trace.job_size)
    return found.iloc[0] if len(found) else None


def unrecorded_idle(inputs: Inputs) -> Finding | None:
    """Idle time before device work whose launch was not recorded: its cause cannot be known."""
    loss = lost_on(inputs.idle_at_all, "unknown_ns")
    if loss is None:
        return None
    ranks, idle = loss.ranks, loss.share_of(int(loss.rows["idle_ns"].sum()))
    missing = _share_without_launch(inputs, ranks)
    text = say(
        "The device is idle {idle}. For {lost} the cause was not recorded. {missing} of the device work has "
        "no launch in the recording.",
        idle=inputs.share_of_time("idle", idle, ranks),
        lost=_time_lost(inputs, "unknown", loss),
        missing=Claim("without_launch", missing, "%", "device_work", tuple(ranks)),
    )
    return _of_idle(inputs, "unknown", loss, text, _record_launches(inputs, ranks))


def _record_launches(inputs: Inputs, ranks: list[int]) -> str:
    if any(inputs.recorded(rank, _only_queues) for rank in ranks):
        return (
            "Record the calls of CANN: experimental_config=_ExperimentalConfig(profiler_level="
            "ProfilerLevel.Level1) of torch_npu.profiler."
        )
    return "Record with ProfilerActivity.CPU, from before the first step that matters, and drop no events."


def _only_queues(rank_trace: RankTrace) -> bool:
    """Whether all that is known of the launch of some work is that the host queued it, as on Ascend."""
    rows = np.flatnonzero(rank_trace.launch >= 0)
    return bool((rank_trace.launched_at(rows) == NULL).any())


def no_work_due(inputs: Inputs) -> Finding | None:
    """Time before the first or after the last device work of the recording, inside the steps."""
    loss = lost_on(inputs.idle_at_all, "edge_ns")
    if loss is None:
        return None
    text = say(
        "For {lost} the device has no work yet, or no more. That is start-up, the end of the program, or the "
        "edge of the recording.",
        lost=_time_lost(inputs, "edge", loss),
    )
    advice = "Record steps after the warm-up: torch.profiler.schedule(wait=1, warmup=3, active=5)."
    return _of_idle(inputs, "edge", loss, text, advice)


def _of_idle(inputs: Inputs, cause: str, loss: Loss, text: Text, suggestion: str) -> Finding:
    return loss.finding(
        text,
        suggestion,
        "idle_breakdown",
        Evidence(loss.alone, event_rank=loss.worst, span=idle_of(inputs, loss.worst, cause).longest),
        share_of=loss.shares,
        lost=inputs.when(loss.ranks, lambda rank: idle_of(inputs, rank, cause)),
    )


def _time_lost(inputs: Inputs, cause: str, loss: Loss) -> Text:
    apart = apart_ns(inputs, loss.ranks, cause)
    measured = {"cause": cause, "apart_ns": apart}
    return inputs.time_lost("idle_by_cause", loss.share_pct, loss.cost_ns, loss.ranks, **measured)


def _share_without_launch(inputs: Inputs, ranks: list[int]) -> float:
    """Share (%) of the device work in the scope, by count, that no recorded call launched."""
    missing = total = 0
    for rank in ranks:
        of_rank, all_of_it = inputs.of(rank, _without_launch)
        missing, total = missing + of_rank, total + all_of_it
    return 100.0 * missing / total if total else 0.0


def _without_launch(inputs: Inputs, rank: int) -> tuple[int, int]:
    """How much device work of the judged time no recorded call launched, and how much there is."""
    rank_trace = inputs.trace.rank(rank)
    rows = rank_trace.rows(inputs.scope)
    rows = rows[rank_trace.is_device[rows]]
    return int(np.count_nonzero(rank_trace.launched_at(rows) == NULL)), len(rows)


RULES = (
    Rule(
        topic="maybe_communication",
        question="what communication costs",
        title="Work that may be communication",
        judge=maybe_communication,
        role="doubt",
        applies=never,
        no_change="whether it is communication is not known",
        headline="may be communication that does not count as such",
        wrong_if="The kernel computes, and its name only looks like that of a collective.",
    ),
    idle_rule(
        topic="unrecorded_idle",
        title="Idle time without a recorded cause",
        label="Unrecorded cause",
        cause="idle time without a recorded cause",
        judge=unrecorded_idle,
        no_reason=True,
        no_change="no launch is recorded that could come earlier",
        wrong_if="The device had nothing to do then, whatever launched the next work.",
    ),
    idle_rule(
        topic="no_work_due",
        title="Time without any device work, at an end of the recording,",
        label="No work",
        cause="time without any work",
        judge=no_work_due,
        no_reason=True,
        no_change="nothing is recorded that could come earlier",
        wrong_if="The steps are meant to end with work of the host alone.",
    ),
)
