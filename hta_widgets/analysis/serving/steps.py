"""The analysis of a server's steps: what each computes, how long it takes, and what it waits for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.idle.places import short_place
from hta_widgets.analysis.serving.bubbles import Bubble, bubbles_of
from hta_widgets.analysis.serving.padding import computed_requests
from hta_widgets.analysis.serving.table import UNTIL_NEXT, is_server, steps_of
from hta_widgets.charts.spec import Series, Stack
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import counted, duration, percent
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.rank_trace import RankTrace

NOT_RECORDED = "nothing recorded"
"""What the host runs between steps where no call of it is recorded then."""

_COLUMNS = {
    "rank": "int64",
    "iteration": "int64",
    "phase": "str",
    "state": "str",
    "requests": "Int64",
    "tokens": "Int64",
    "padded": "Int64",
    "prompt_tokens": "Int64",
    "kv_tokens": "Int64",
    "emitted": "Int64",
    "start_ns": "Int64",
    "until_ns": "Int64",
    "host_ns": "int64",
    "launch_ns": "Int64",
    "device_ns": "Int64",
    "busy_ns": "Int64",
    "other_ns": "Int64",
    "bubble_ns": "Int64",
    "period_ns": "Int64",
    "absent_ns": "Int64",
    "recorded_ns": "Int64",
    "turn_ns": "Int64",
    "tokens_per_s": "float64",
    "host_frame": "str",
    "host_call": "str",
    **dict.fromkeys(("decoding_ns", "prefilling_ns", "mixing_ns", "doing_ns"), "Int64"),
}
_BY_PHASE = {"decode": "decoding_ns", "prefill": "prefilling_ns", "mixed": "mixing_ns"}


@kept(by_rank=True)
def serving_steps(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """What does each step of a server compute, how long does it take, and why does the device wait after it?

    A step is what the engine's annotation names (vLLM, SGLang, TensorRT-LLM, ATOM, xDiT); its device work is
    what is launched within the annotation. Its period lasts from its first device work to that of the next
    step. In between the device does other work, or nothing: the bubble.

    Args:
        trace: the job.
        scope: ranks, iterations, and a time window that a step's device work must touch; default everything.

    Returns:
        One row per rank and step, in time order. Columns: rank, iteration (int64), phase (str: "prefill",
        "decode", "mixed", "verify", "draft", "diffusion", "idle", or "unknown"), state (str: "steady", or
        "ramp" and "drain" for steps of a decoding phase before and after the longest run whose batch stays
        within a tenth of its largest), requests, tokens (processed; more than requests where drafts are
        verified), padded (requests that are computed, with those that fill up the captured graph, by what the
        engine or the shapes of the capture say), prompt_tokens (of tokens those of prompts), kv_tokens
        (lengths of all sequences, added up), emitted (new tokens of requests that decode) (Int64, NA where
        the engine does not say), start_ns, until_ns (Int64, ns: its first device work and that of the next
        step, of the last one where its own ends), host_ns (int64, ns: the
        annotation), launch_ns (Int64, ns: from its begin to the first device work), device_ns (Int64, ns:
        first to last device work), busy_ns (Int64, ns: of that what the device works), other_ns, bubble_ns
        (Int64, ns: until the next step: other work, and none), period_ns (Int64, ns: device_ns + other_ns +
        bubble_ns; NA for the last step, and where the server has no requests until the next one), absent_ns
        (Int64, ns: how long it has none; 0 where it has), recorded_ns (Int64, ns: of the period what is
        recorded, of the last step device_ns), turn_ns (Int64, ns: until the next step that is no draft; NA
        for drafts), tokens_per_s (float64: tokens, or the emitted ones where drafts are verified, per turn;
        NaN where unknown), host_frame (str: the narrowest Python function that is open in half of the bubble
        or more), host_call (str: the operator or call of the runtime that is open longest in it). Where
        little is recorded then, host_frame says "nothing recorded", and after what. decoding_ns,
        prefilling_ns, mixing_ns, doing_ns (Int64, ns: device_ns of steps that decode, prefill, do both, or
        something else; 0 in others).

    Raises:
        MissingDataError: no selected rank has steps that a server names.
    """
    scope = scope or Scope()
    frames = []
    for rank, rank_trace in server_ranks(trace, scope):
        steps = steps_of(rank_trace)
        ends = steps["start_ns"] + steps["device_ns"]
        recorded = steps["period_ns"].fillna(steps["device_ns"])
        padded = steps["padded"].fillna(computed_requests(rank_trace))
        steps = steps.assign(
            rank=rank,
            padded=padded,
            until_ns=steps["next_ns"].fillna(ends),
            recorded_ns=recorded,
            **_rates(steps),
            **_hosts(rank_trace),
            **_by_phase(steps),
        )
        frames.append(in_scope(steps, scope))
    return pd.concat(frames, ignore_index=True)[list(_COLUMNS)].astype(_COLUMNS)


def in_scope(steps: pd.DataFrame, scope: Scope) -> pd.DataFrame:
    """The rows of a frame like `steps_of` that the iterations and the window of a scope choose."""
    chosen = pd.Series(True, steps.index)
    if scope.iterations is not None:
        chosen &= steps["iteration"].isin(scope.iterations)
    if scope.window_ns is not None:
        first, last = scope.window_ns
        touched = (steps["start_ns"] < last) & (steps["start_ns"] + steps["device_ns"] > first)
        chosen &= touched.fillna(False).astype("bool")
    return steps[chosen]


def without(steps: pd.DataFrame, left_out: Collection[int]) -> pd.DataFrame:
    """The steps that show how long one takes: none of these iterations, nor the wait for them."""
    chosen = steps["iteration"].isin(left_out)
    known = steps.copy()
    known.loc[chosen.shift(-1, fill_value=False), UNTIL_NEXT] = pd.NA
    return known[~chosen]


def server_ranks(trace: Trace, scope: Scope) -> Iterator[tuple[int, RankTrace]]:
    """The ranks of a scope that name steps of a server.

    Raises:
        MissingDataError: there is none.
    """
    found = False
    for rank in trace.ranks_of(scope):
        checkpoint()
        if is_server(rank_trace := trace.rank(rank)):
            found = True
            yield rank, rank_trace
    if not found:
        raise MissingDataError(
            "steps of a server",
            "Profile the engine's own steps: vLLM with --profiler-config or VLLM_TORCH_PROFILER_DIR, SGLang "
            "with /start_profile; they annotate each step.",
        )


def _rates(steps: pd.DataFrame) -> dict[str, pd.Series[float]]:
    """Tokens per second; where drafts are verified, only what is known to be emitted counts."""
    drafted = steps["phase"].isin(("decode", "verify")) & (steps["tokens"] > steps["requests"]).fillna(False)
    tokens = steps["tokens"].where(~drafted, steps["emitted"]).astype("Float64")
    return {"tokens_per_s": (1e9 * tokens / steps["turn_ns"]).astype("float64")}


def _by_phase(steps: pd.DataFrame) -> dict[str, pd.Series[int]]:
    """The time of each step, in the column of its phase."""
    column = steps["phase"].map(_BY_PHASE).fillna("doing_ns")
    return {name: steps["device_ns"].where(column == name, 0) for name in (*_BY_PHASE.values(), "doing_ns")}


def _hosts(rank_trace: RankTrace) -> dict[str, list[str]]:
    bubbles = bubbles_of(rank_trace)
    return {
        "host_frame": [host_frame(rank_trace, each) if each else "" for each in bubbles],
        "host_call": [name_of(rank_trace, each.call) if each else "" for each in bubbles],
    }


def host_frame(rank_trace: RankTrace, bubble: Bubble) -> str:
    """The Python function in which most of a bubble lies; or that nothing is recorded, and after what."""
    if bubble.frame >= 0 or bubble.is_recorded:
        return name_of(rank_trace, bubble.frame)
    last = name_of(rank_trace, bubble.before)
    return f"{NOT_RECORDED} after {last}" if last else NOT_RECORDED


def name_of(rank_trace: RankTrace, row: int) -> str:
    """The name of a call of the host as short as it stays telling, "" for -1."""
    return "" if row < 0 else short_place(rank_trace.names[int(rank_trace.name[row])])


def sentence(frame: pd.DataFrame) -> str:
    """The answer in words."""
    timed = frame[frame["period_ns"].notna()]
    if frame.empty:
        return "No step of a server lies in the selection."
    if timed.empty:
        first = frame["device_ns"].dropna()
        length = f" of {duration(float(first.median()))} on the device" if len(first) else ""
        return f"{counted(len(frame), 'step')}{length}; how soon the next one follows is not recorded."
    phases = timed["phase"].value_counts()
    of_phase = timed[timed["phase"] == phases.index[0]]
    steady = of_phase[of_phase["state"] == "steady"]
    chosen = steady if len(steady) else of_phase  # the steady one may be the last, which none follows
    period, bubble = (float(chosen[name].median()) for name in ("period_ns", "bubble_ns"))
    if np.isnan(bubble):
        return f"A {phases.index[0]} step takes {duration(period)} at the median on the host."
    return (
        f"A {phases.index[0]} step takes {duration(period)} at the median. For {duration(bubble)} "
        f"({percent(100.0 * bubble / period)}) of that, the device waits for the next one."
    )


ANALYSIS = Analysis(
    label="Serving steps",
    group="Serving",
    title="The steps of the server, and the time between them",
    function=serving_steps,
    sentence=sentence,
    chart=Stack(
        (
            Series("decoding_ns", "Decode", "compute"),
            Series("prefilling_ns", "Prefill", "compute", "/"),
            Series("mixing_ns", "Mixed", "compute", "x"),
            Series("doing_ns", "Other steps", "compute", "."),
            Series("other_ns", "Other work", "memory"),
            Series("bubble_ns", "Bubble", "idle"),
        ),
        "recorded_ns",
        label=("rank", "iteration"),
        window=("start_ns", "until_ns"),
    ),
    requires=("steps of a server",),
)
