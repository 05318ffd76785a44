"""Rules about idle devices, one per cause of `idle_breakdown`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.formatting import duration

__all__ = ["IDLE_RULES", "concerned"]

# A rank is reported by itself if it loses this many times as much as the ranks do on average.
ALONE = 2.0


@dataclass(frozen=True)
class _Cause:
    topic: str
    causes: tuple[str, ...]
    reason: str
    suggestion: str


_CAUSES = (
    _Cause(
        "data_stall",
        ("data_stall",),
        "while the host waits for the data loader",
        "Raise num_workers or prefetch_factor of the DataLoader, set pin_memory=True, or move costly "
        "transforms out of the loop.",
    ),
    _Cause(
        "sync_calls",
        ("host_sync",),
        "while the host is blocked in a synchronising call",
        "Look for .item(), .cpu(), print of a tensor and torch.cuda.synchronize() in the loop; read values "
        "back once in many steps.",
    ),
    _Cause(
        "idle_host",
        ("host_busy",),
        "because the host launches too late",
        "Cut the host's work per step: torch.compile, CUDA graphs, fewer and larger operations, or work of "
        "Python in another process.",
    ),
    _Cause(
        "launch_bound",
        ("launch_latency",),
        "until a launch arrives, with nothing queued",
        "Let the host run ahead of the device (fewer synchronising calls), or launch many kernels at once "
        "with CUDA graphs.",
    ),
    _Cause(
        "tiny_kernels",
        ("kernel_wait",),
        "between one queued kernel and the next",
        "Run fewer, larger kernels: torch.compile fuses small ones; a larger batch gives each more to do.",
    ),
    _Cause(
        "device_wait",
        ("device_wait",),
        "although work is launched, as if it waited for an event or another stream",
        "Look at the stream that the waiting work depends on; events and stream.wait_stream() may order more "
        "than they must.",
    ),
)


def concerned(frame: pd.DataFrame, lost: pd.Series) -> pd.DataFrame:
    """The ranks that a loss is about: the one that stands out, else all."""
    share = lost / frame["window_ns"]
    worst = share.to_numpy().argmax()
    if len(frame) > 1 and share.iloc[worst] >= ALONE * share.mean():
        return frame.iloc[[int(worst)]]
    return frame


def _rule(cause: _Cause) -> Callable[[Inputs], Finding | None]:
    def judge(inputs: Inputs) -> Finding | None:
        frame = inputs.idle
        if frame.empty:
            return None
        lost = frame[[f"{part}_ns" for part in cause.causes]].sum(axis=1)
        about = concerned(frame, lost)
        lost = lost[about.index]
        cost = int(lost.sum()) // len(about)
        share = 100.0 * int(lost.sum()) / int(about["window_ns"].sum())
        worst = int(about["rank"].iloc[int(lost.to_numpy().argmax())])
        alone = len(about) < len(frame)
        if len(frame) == 1:
            who = "The device is idle"
        elif alone:
            who = f"The device of rank {worst} is idle"
        else:
            who = "The devices are idle"
        example, event = "", None
        if severity_of(share) and (longest := inputs.longest_gap(worst, cause.causes)):
            event, lasts = longest
            example = f", up to {duration(lasts)} at a time"
        return Finding(
            cause.topic,
            cost,
            share,
            f"{who} {inputs.share(share)}{inputs.per_step(cost)} {cause.reason}{example}.",
            cause.suggestion,
            "idle_breakdown",
            Evidence(
                rank=worst if alone else None, event_rank=None if event is None else worst, event_id=event
            ),
        )

    return judge


IDLE_RULES = {cause.topic: _rule(cause) for cause in _CAUSES}
