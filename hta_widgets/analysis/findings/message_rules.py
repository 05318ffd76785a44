"""A rule about many small collectives: their time is latency, which one collective would take once."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.alpha_beta import alpha_beta
from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Text, say
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.device_time.busy import busy
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.in_passes import in_passes
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Rule
from hta_widgets.analysis.findings.serving_ranks import is_serving
from hta_widgets.analysis.findings.waiting import exposed_runs
from hta_widgets.arrays import Bool
from hta_widgets.trace.ordering import numbered

LEAST_PER_STEP: Final = 10
"""Fewer small collectives in a step are not many."""

_SMALL: Final = 1 << 16
"""Bytes that a network of 10 Gbit/s carries in about the time in which a collective begins."""
_LATENCY: Final = 0.75
"""The part of a transfer that is latency, by the fit, from which on a message is small."""
_ERROR_PCT: Final = 25.0
"""A fit that is off by more does not tell latency from transfer."""
_KEYS: Final = ["process_group", "group_size", "collective"]
_ADVICE: Final = {
    "allreduce": (
        "Flatten them into one tensor and reduce that",
        "larger gradient buckets (bucket_cap_mb)",
        "",
    ),
    "allgather": ("Gather one flattened tensor instead", "", "larger FSDP units"),
    "reduce_scatter": ("Reduce one flattened tensor instead", "", "larger FSDP units"),
    "broadcast": (
        "Broadcast one flattened tensor",
        "for buffers of modules, DistributedDataParallel(broadcast_buffers=False) broadcasts none",
        "",
    ),
    "all_to_all": (
        "Exchange one tensor that holds all of it, such as the counts of all layers or of all experts",
        "",
        "",
    ),
}
"""By operation; then what DDP has for it, and what FSDP has."""
_IN_PASSES: Final = (
    "They run in the forward pass, between layers that need their results, so they cannot be joined: "
    "let fewer ranks share a layer, or use all-reduces made for small messages, such as those of symmetric "
    "memory."
)
_OTHERWISE: Final = "Send one larger message instead, or several in one call (batch_isend_irecv)."


def tells_latency(inputs: Inputs) -> bool:
    """Whether it is known that there are no such messages, or which of them are latency."""
    if not inputs.communicates or not inputs.judged or not inputs.collectives["algbw_gbps"].notna().any():
        return False
    return _many(inputs).empty or not _fits(inputs).empty


def tiny_collectives(inputs: Inputs) -> Finding | None:
    """Many messages of one operation and group in each step that take latency, not bandwidth, unhidden.

    The latency is that of `alpha_beta`. What counts is how long each of them is
    exposed, at most its transfer: waiting for other ranks has another cause.
    """
    if not inputs.judged or not inputs.communicates or _many(inputs).empty:  # how many is by step
        return None
    window = inputs.temporal.set_index("rank")["window_ns"]
    found: tuple[int, pd.DataFrame, pd.Series] | None = None
    for _, fit in _fits(inputs).iterrows():
        small = _small(inputs, fit)
        lost = int(small["lost_ns"].sum())
        if lost and (found is None or lost > found[0]):
            found = lost, small, fit
    if found is None:
        return None
    lost, small, fit = found
    ranks = small["rank"].nunique()
    whole = int(window[window.index.isin(small["rank"])].sum())
    share, cost = 100.0 * lost / whole, lost // ranks
    number = round(len(small) / ranks / inputs.judged)
    latency = 100.0 * min(1.0, int(fit["alpha_ns"]) * len(small) / int(small["transfer_ns"].sum()))
    worst = small.iloc[int(small["lost_ns"].to_numpy(np.int64).argmax())]
    operation, own = str(fit["collective"]), tuple(sorted(small["rank"].unique().tolist()))
    most = int(small["bytes"].max())
    about = {"operation": operation, "group_size": int(fit["group_size"]), "most_bytes": most}
    return Finding(
        cost,
        share,
        say(
            "{number} {operation}s a step among {size} ranks send at most {most} each. No compute hides "
            "{lost} of that. {latency} of their transfer is latency ({alpha} each).",
            number=Claim("small_messages", number, "count", ranks=own, about=about),
            operation=Claim("small_operation", operation, "name", ranks=own),
            size=Claim("group_size", int(fit["group_size"]), "count", about={"operation": operation}),
            most=Claim("largest_small_message", most, "B", ranks=own, about=about),
            lost=inputs.time_lost("exposed_small_messages", share, cost, own, **about),
            latency=Claim("latency", latency, "%", "transfer of small messages", own, about),
            alpha=Claim("latency_of_each", int(fit["alpha_low_ns"]), "ns", ranks=own, about=about),
        ),
        advice_for_small(inputs, small, operation),
        "alpha_beta",
        Evidence(
            name=str(worst["name"]),
            event_rank=int(worst["rank"]),
            event_id=int(worst["event_id"]),
            span=(int(worst["start_ns"]), int(worst["end_ns"])),
        ),
        lost={} if inputs.trace.exceeds_memory else exposed_runs(inputs, small),
    )


def small_messages(inputs: Inputs) -> tuple[Text, pd.DataFrame]:
    """Of an operation and group with many messages in each step those that no network carries at full speed.

    And a sentence about them; nothing where how long they take by latency is known: that is a finding.
    """
    frame = _many(inputs) if inputs.judged and inputs.communicates else inputs.collectives.iloc[:0]
    frame = _where(frame, (frame["bytes"] <= _SMALL).fillna(False))
    if frame.empty or not _fits(inputs).empty:
        return NOTHING_SAID, frame.iloc[:0]
    groups = frame.groupby(_KEYS, dropna=False)["dur_ns"].transform("sum")
    small = frame[groups == groups.max()]
    ranks = tuple(sorted(small["rank"].unique().tolist()))
    number, most = round(len(small) / len(ranks) / inputs.judged), int(small["bytes"].max())
    size, operation = small["group_size"].iloc[0], str(small["collective"].iloc[0])
    if number < LEAST_PER_STEP or pd.isna(size):
        return NOTHING_SAID, small.iloc[:0]
    about = {"operation": operation, "group_size": int(size), "most_bytes": most}
    text = say(
        " {number} {operation}s a step send at most {most} each.",
        number=Claim("small_messages", number, "count", ranks=ranks, about=about),
        operation=Claim("small_operation", operation, "name", ranks=ranks),
        most=Claim("largest_small_message", most, "B", ranks=ranks, about=about),
    )
    return text, small


def advice_for_small(inputs: Inputs, small: pd.DataFrame, collective: str = "") -> str:
    """What to do about many small messages of an operation."""
    collective = collective or str(small["collective"].iloc[0])
    of_server = is_serving(inputs) and collective == "allreduce"  # whose launches graphs hide
    if of_server or 2 * int(small.index.isin(in_passes(inputs)).sum()) > len(small):
        return _IN_PASSES
    if collective not in _ADVICE:
        return _OTHERWISE
    advice, of_ddp, of_fsdp = _ADVICE[collective]
    ways = [way for way, there in ((of_ddp, inputs.has_ddp), (of_fsdp, inputs.has_fsdp)) if way and there]
    return f"{'; '.join([advice, *ways])}."


@memoize_per_rank()
def _many(inputs: Inputs) -> pd.DataFrame:
    """Collectives of known size of which there are many in a step, where enough time is exposed at all."""
    frame, temporal = inputs.collectives, inputs.temporal
    if temporal.empty or frame.empty:
        return frame.iloc[:0]
    if severity_of(float(temporal["exposed_communication_pct"].max())) is None:
        return frame.iloc[:0]
    frame = _where(frame, frame["algbw_gbps"].notna() & frame["iteration"].notna())
    keys = (pd.factorize(frame[name])[0] for name in ("rank", "iteration", *_KEYS))
    number = numbered(*keys)
    return _where(frame, np.bincount(number)[number] >= LEAST_PER_STEP)


def _where(frame: pd.DataFrame, rows: pd.Series | Bool) -> pd.DataFrame:
    """These rows; the frame itself if they are all: those of a thousand ranks take much memory."""
    return frame if rows.all() else frame[rows]


@memoize_per_rank()
def _fits(inputs: Inputs) -> pd.DataFrame:
    """Operations of groups whose latency is known."""
    frame = alpha_beta(inputs.trace, inputs.scope)
    known = (frame["why"] == "") & (frame["error_pct"] <= _ERROR_PCT) & (frame["bandwidth_is"] == "exact")
    return frame[known & (frame["alpha_low_ns"] > 0).fillna(False)]


def _small(inputs: Inputs, fit: pd.Series) -> pd.DataFrame:
    """The small messages of a group's operation, where they are many in a step, with what each loses."""
    frame = _many(inputs)
    same = pd.Series(True, frame.index)
    for key in _KEYS:
        same &= frame[key].isna() if pd.isna(fit[key]) else (frame[key] == fit[key]).fillna(False)
    # of half_bytes half of the time is latency
    most = int(fit["half_bytes"]) * (1 - _LATENCY) / _LATENCY
    small = frame[same & (frame["bytes"] <= most).fillna(False)]
    count = small.groupby(["rank", "iteration"])["event_id"].transform("size")
    small = small[count >= LEAST_PER_STEP]
    parts = []
    for rank, rows in small.groupby("rank"):
        exposed = busy(inputs.trace.rank(int(str(rank))), inputs.scope).exposed_communication
        alone = exposed.within_each(rows[["start_ns", "end_ns"]].to_numpy(np.int64))
        parts.append(rows.assign(lost_ns=np.minimum(alone, rows["transfer_ns"].to_numpy(np.int64))))
    return pd.concat(parts) if parts else small.assign(lost_ns=np.int64(0))


RULE = Rule(
    topic="tiny_collectives",
    question="what communication costs",
    title="Communicating in many small collectives",
    label="Small collectives",
    cause="many small collectives",
    lost_as="communication",
    judge=tiny_collectives,
    applies=tells_latency,
    no_change="no edit joins messages, and whether they can wait for each other is not known",
    risk="The first message waits for the last; joining them copies.",
    needs="Messages that are ready together.",
    wrong_if="each message is needed before the next one is ready.",
)
