"""What a server's time is spent on per phase: how long steps take, and how many tokens they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis, Option
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.serving.steps import serving_steps
from hta_widgets.analysis.serving.used import USED, used
from hta_widgets.charts.spec import Bars
from hta_widgets.formatting import duration, percent, plain
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

METRICS: Final = {
    "time to first token": "vllm:time_to_first_token_seconds, sglang:time_to_first_token_seconds",
    "queueing time": "vllm:request_queue_time_seconds, sglang:queue_time_seconds",
    "acceptance rate of drafts": "vllm:spec_decode_num_accepted_tokens, sglang:spec_accept_length",
    "hits of the prefix cache": "vllm:prefix_cache_hits, sglang:cache_hit_rate",
}
"""What no recording holds, because it is about requests: the metric in which the server itself reports it."""

TPOT_PHASES: Final = ("decode", "mixed")
"""Phases in whose steps requests decode: such a step is what they wait for a token."""

_COLUMNS = {
    "rank": "int64",
    "phase": "str",
    "steps": "int64",
    "left_out": "int64",
    "requests": "Float64",
    "tokens": "Float64",
    "period_ns": "Int64",
    "mean_ns": "Int64",
    "p95_ns": "Int64",
    "device_ns": "Int64",
    "bubble_ns": "Int64",
    "bubble_pct": "float64",
    "works_pct": "float64",
    "tpot_ns": "Int64",
    "tpot_p95_ns": "Int64",
    "tpot_least_ns": "Int64",
    "tokens_per_s": "float64",
    "follows": "bool",
    "weight_bytes": "Int64",
    "weight_least_bytes": "Int64",
    "kv_bytes": "Int64",
    "kv_least_bytes": "Int64",
    "mbu_pct": "float64",
    "mbu_least_pct": "float64",
    "mfu_pct": "float64",
    "covered_pct": "float64",
    "why": "str",
}


@kept(by_rank=True)
def serving_phases(
    trace: Trace, scope: Scope | None = None, sliding_window: int | str | None = None
) -> pd.DataFrame:
    """How long do steps of each phase of a server take, and how many tokens per second do they make?

    Of the steady steps: those before and after (`ramp`, `drain` in `serving_steps`) are left out. Phases are
    never averaged together.

    Args:
        trace: the job.
        scope: ranks, iterations and time window, as for `serving_steps`; default everything.
        sliding_window: tokens that layers with a window read at most, which no recording holds; those are
            the layers with the faster of two kinds of attention. A number, or its digits.

    Returns:
        One row per rank and phase, the phase with most time first. Columns: rank (int64), phase (str), steps,
        left_out (int64: steady steps, others), requests, tokens (Float64, per step at the median), period_ns,
        mean_ns, p95_ns (Int64, ns: from the begin of a step to that of the next, or of one that verifies
        drafts to the next that is no draft; at the median, on average, and in 95 % of steps), device_ns,
        bubble_ns (Int64, ns at the median: of that the step itself, and nothing), bubble_pct (float64, % of
        all periods), works_pct (float64, % of all periods, or of device_ns where none was recorded, in which
        the device works: less than the rest by the gaps within steps), tpot_ns, tpot_p95_ns (Int64, ns per
        output token of a request: the period where requests decode in it; where drafts are verified, divided
        by the tokens that each request gets if the next step shows them, else NA), tpot_least_ns (Int64, ns:
        where it is NA because of that, the period divided by all tokens that are verified: no less is
        possible), tokens_per_s (float64, all tokens, or those emitted, over all periods; NaN where unknown),
        follows (bool: periods were recorded; if not, all of this is as if the next step followed at once),
        weight_bytes, kv_bytes (Int64, bytes of weights, and of keys and values, that a step reads, at the
        median; NA where unknown),
        weight_least_bytes (Int64: with as few experts as the tokens may choose; weight_bytes is with as
        many), kv_least_bytes (Int64: without layers that may read only a window of them), mbu_pct,
        mbu_least_pct (float64, % of the bandwidth of memory: these bytes in the period, at most and at
        least), mfu_pct (float64, % of the peak of what multiplies: the operations of products in the period;
        NaN where those are unknown in half of the time, as of packed weights), covered_pct (float64, % of
        the device's time of kernels whose traffic is known: what others move comes on top, so that mbu_pct
        and mfu_pct are "at least"), why (str: why they are unknown, "" where they are known: less than half
        of the time is covered, or the peaks of the device are unknown).

    Raises:
        MissingDataError: no selected rank has steps that a server names.
        ValueError: `sliding_window` is no positive integer.
    """
    window = _window(sliding_window)
    steps = serving_steps(trace, scope)
    phases = phases_of(steps)
    ranks = phases["rank"].tolist()
    chosen = [_chosen(steps, row) for _, row in phases.iterrows()]
    found = [used(trace.rank(rank), mine, window) for rank, mine in zip(ranks, chosen, strict=True)]
    return phases.join(pd.DataFrame(found, columns=list(USED), index=phases.index)).astype(_COLUMNS)


def _window(stated: int | str | None) -> int | None:
    text = str(stated or "").replace(",", "")
    if not text:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"sliding_window is a number of tokens above 0, such as 128, not {stated!r}")
    return int(text)


def _chosen(steps: pd.DataFrame, row: pd.Series[Any]) -> pd.DataFrame:
    """The steps that a row of `phases_of` is about."""
    mine = (steps["rank"] == row["rank"]) & (steps["phase"] == row["phase"]) & (steps["state"] == "steady")
    timed = steps["period_ns" if row["follows"] else "device_ns"].notna()
    return steps[mine & timed]


def phases_of(steps: pd.DataFrame) -> pd.DataFrame:
    """The phases of some rows of `serving_steps`."""
    rows = [_row(group) for _, group in in_turns(steps).groupby(["rank", "phase"], sort=True)]
    own = {name: kind for name, kind in _COLUMNS.items() if name not in USED}
    frame = pd.DataFrame(rows, columns=[*own, "whole"])
    frame = frame.sort_values(["rank", "whole"], ascending=[True, False], kind="stable", ignore_index=True)
    return frame[list(own)].astype(own)


def in_turns(steps: pd.DataFrame) -> pd.DataFrame:
    """The steps, those that verify drafts with the period and the bubbles of their whole turn."""
    verifies = steps["phase"].eq("verify")
    if not verifies.any():
        return steps
    turn = steps.groupby(steps["phase"].ne("draft").cumsum())
    whole = {"period_ns": steps["turn_ns"]} | {
        name: turn[name].transform(lambda part: part.sum(skipna=False))
        for name in ("bubble_ns", "busy_ns", "other_ns")
    }
    return steps.assign(**{name: steps[name].where(~verifies, time) for name, time in whole.items()})


def _row(group: pd.DataFrame) -> dict[str, Any]:
    phase = str(group["phase"].iloc[0])
    steady = group[group["state"] == "steady"]
    timed = steady[steady["period_ns"].notna()]
    follows = len(timed) > 0
    period = timed["period_ns"] if follows else steady["device_ns"].dropna()
    chosen = timed if follows else steady[steady["device_ns"].notna()]
    works = chosen["busy_ns"] + chosen["other_ns"] if follows else chosen["busy_ns"]
    tpot, least = _tpot(phase, chosen, period)
    return {
        "rank": group["rank"].iloc[0],
        "phase": phase,
        "steps": len(steady),
        "left_out": len(group) - len(steady),
        "requests": _median(steady["requests"]),
        "tokens": _median(steady["tokens"]),
        "period_ns": _median(period),
        "mean_ns": round(period.mean()) if len(period) else pd.NA,
        "p95_ns": _median(period, 0.95),
        "device_ns": _median(steady["device_ns"]),
        "bubble_ns": _median(timed["bubble_ns"]),
        "bubble_pct": 100.0 * _sum(timed["bubble_ns"]) / _sum(period) if follows else np.nan,
        "works_pct": 100.0 * _sum(works) / _sum(period) if works.notna().any() and _sum(period) else np.nan,
        "tpot_ns": _median(tpot),
        "tpot_p95_ns": _median(tpot, 0.95),
        "tpot_least_ns": _median(least),
        "tokens_per_s": _rate(chosen, period),
        "follows": follows,
        "whole": _sum(period),
    }


def _tpot(phase: str, steps: pd.DataFrame, period: pd.Series[int]) -> tuple[pd.Series[Any], pd.Series[Any]]:
    """ns per output token of a request in each step, and at least."""
    none = period.astype("Float64").iloc[:0]
    if phase in TPOT_PHASES:
        drafted = (steps["tokens"] > steps["requests"]).fillna(False) & (phase == "decode")
    elif phase == "verify":
        drafted = steps["requests"].notna()
    else:
        return none, none
    time, requests = period.astype("Float64"), steps["requests"].astype("Float64")
    if not drafted.any():
        return time, none
    return (time * requests / steps["emitted"]).dropna(), (time * requests / steps["tokens"]).dropna()


def _rate(steps: pd.DataFrame, period: pd.Series[int]) -> float:
    """Tokens per second over all steps whose tokens are known: those processed, or those emitted."""
    drafted = steps["phase"].isin(("decode", "verify")) & (steps["tokens"] > steps["requests"]).fillna(False)
    tokens = steps["tokens"].where(~drafted, steps["emitted"])
    known = tokens.notna() & (period > 0).fillna(False)
    return 1e9 * _sum(tokens[known]) / _sum(period[known]) if known.any() else np.nan


def _median(values: pd.Series[Any], share: float = 0.5) -> Any:
    values = values.dropna()
    if not len(values):
        return pd.NA
    found = float(values.astype("float64").quantile(share))
    return round(found) if values.name not in ("requests", "tokens") else found


def _sum(values: pd.Series[Any]) -> float:
    return float(values.sum())


def sentence(frame: pd.DataFrame) -> str:
    """The answer in words."""
    if frame.empty:
        return "No step of a server lies in the selection."
    row = frame.iloc[0]
    many = f"{plain(row['steps'])} {row['phase']} step{'s' if row['steps'] > 1 else ''}"
    if pd.isna(row["period_ns"]):
        return f"How long {many} take is not recorded."
    takes = "takes" if row["steps"] == 1 else "take"
    said = f"{many} {takes} {duration(row['period_ns'])} at the median"
    said += "." if row["follows"] else ", if the next one follows at once."
    if not np.isnan(row["tokens_per_s"]):
        said += f" That makes {plain(round(row['tokens_per_s']))} tokens per second."
    if "mbu_pct" in row and not np.isnan(row["mbu_pct"]):
        least, most = percent(row["mbu_least_pct"]), percent(row["mbu_pct"])
        said += f" MBU is at least {least}." if least == most else f" MBU is {least} to {most}."
    if row["follows"]:
        said += f" For {percent(row['bubble_pct'])} of the time, the device waits for the next step."
    return said


ANALYSIS = Analysis(
    label="Serving phases",
    group="Serving",
    title="How long steps of each phase take, and the tokens they make",
    function=serving_phases,
    sentence=sentence,
    chart=Bars(
        "period_ns", ("rank", "phase"), "compute", combine="max", measure="Time from step to step, median"
    ),
    requires=("steps of a server",),
    options=(Option("sliding_window", "Sliding window", hint="all layers read whole sequences"),),
)
