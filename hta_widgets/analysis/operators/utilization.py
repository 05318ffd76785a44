"""How much of what the device could do does a training or inference step use? MFU, HFU and MBU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis, Option
from hta_widgets.analysis.device_time.step_times import step_times
from hta_widgets.analysis.kernels.peaks import Peaks
from hta_widgets.analysis.operators.utilization_rows import SHAPES, has_shapes, rows_of
from hta_widgets.charts.spec import Bars
from hta_widgets.engine import checkpoint
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.formatting import duration, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_COLUMNS: Final = {
    "rank": "int64", "iteration": "Int64", "steps": "int64", "known": "str", "open": "bool",
    "step_ns": "int64", "work_ns": "int64", "formula_pct": "float64",
    "model_flops": "Int64", "hardware_flops": "Int64", "moved_bytes": "Int64",
    "mfu_pct": "float64", "hfu_pct": "float64", "mbu_pct": "float64",
    "mfu_reading": "str", "hfu_reading": "str", "mbu_reading": "str",
    "mfu_reason": "str", "hfu_reason": "str", "mbu_reason": "str",
    "flops_from": "str", "parameters": "Int64", "parameters_from": "str",
    "unit": "str", "peak_tflops_s": "float64", "peak_gb_s": "float64", "device": "str", "source": "str",
}  # fmt: skip


def utilization(
    trace: Trace,
    scope: Scope | None = None,
    tokens_per_step: int | str | None = None,
    peaks: Peaks | None = None,
) -> pd.DataFrame:
    """How much of what the device could do does each step use?

    Model FLOPs utilization (MFU) compares the operations that the model needs with what the device could do
    in the time of the step: once for the forward pass, and those of the backward pass, but nothing that is
    computed a second time. Hardware FLOPs utilization (HFU) counts all that was executed (Chowdhery et al.,
    "PaLM", arXiv 2204.02311, appendix B; Korthikanti et al., "Reducing Activation Recomputation in Large
    Transformer Models", arXiv 2205.05198, section 6). Repeated are operators of activation checkpoints
    (`torch.utils.checkpoint`), and the scores that the backward pass of fused attention computes once more.
    As in both papers only matrix products count, here with convolutions, attention (of a causal mask only the
    pairs that it leaves, which the papers count in full) and your own formulas.
    Model bandwidth utilization (MBU) compares the memory traffic that operators cannot do without, each input
    read and each output written once, with the bandwidth of memory.

    Operations and traffic are those of operators with device work; see `operators` for the formulas. Where
    not all device work has one, a value is "at least"; where shapes only bound a figure, "at most". With
    `tokens_per_step`, the model FLOPs are 6 P T instead, for P parameters and T tokens (Kaplan et al.,
    arXiv 2001.08361, section 2.1: forward 2, backward 4; attention's scores are not counted). P is what
    collectives send, as `training_strategy` reads it: of DDP what gets gradients, of FSDP and ZeRO the
    gathered model. HFU and MBU come from operators in any case.

    The peak is that of the unit that does most of the operations, as the kernels' names say, dense.

    Args:
        trace: the job.
        scope: ranks, iterations, and a time window that steps must lie in; default everything. Streams and
            names choose nothing: a step is what it is.
        tokens_per_step: tokens that the whole job, all ranks together, takes in one iteration; a number, or
            its digits, as a panel passes them.
        peaks: of the device, instead of its datasheet's or registered ones.

    Returns:
        One row per rank and complete iteration, and before them one with iteration NA for all of them
        together. Where there are others, iterations are left out whose end is not recorded, and those that
        hold start-up (`step_times`). Columns: rank int64, iteration Int64, steps (int64, iterations in the
        row), known (str, how, as in `step_times`: "guessed" ones repeat the same work and may be less than a
        step), open (bool, their end is not recorded), step_ns (int64, ns, their time), work_ns (int64, ns of
        device work without communication), formula_pct (float64, % of work_ns with a formula), model_flops,
        hardware_flops (Int64, floating-point operations of the rank),
        moved_bytes (Int64, bytes; all three NA where unknown), mfu_pct, hfu_pct, mbu_pct (float64, % of the
        peak), mfu_reading, hfu_reading, mbu_reading (str: "exact", "at least", "at most", "about"; null where
        unknown), mfu_reason, hfu_reason, mbu_reason (str, why a value is unknown, and what would show it; ""
        where it is known), flops_from (str: "operators" or "6 P T"), parameters (Int64), parameters_from
        (str: the strategy whose collectives show them; "" without), unit (str), peak_tflops_s, peak_gb_s
        (float64, 1e12 operations and 1e9 bytes per second), device, source (str, whose peaks, and who states
        them; these five null where unknown).

    Raises:
        MissingDataError: no selected rank has device events, or shapes (without tokens_per_step).
        ValueError: tokens_per_step is no positive integer.
    """
    tokens = _tokens(tokens_per_step)
    scope = scope or Scope()
    ranks = trace.ranks_of(scope)
    steps = step_times(trace, scope)
    steps = steps[~steps["partial"]]
    if scope.window_ns is not None:
        steps = steps[(steps["start_ns"] >= scope.window_ns[0]) & (steps["end_ns"] <= scope.window_ns[1])]
    _check(trace, ranks, tokens)
    frames = []
    for rank in ranks:
        checkpoint()
        mine = _whole(steps[steps["rank"] == rank])
        if len(mine) and trace.rank(rank).device_span is not None:
            frames.append(rows_of(trace, rank, mine, tokens, peaks))
    found = [_typed(columns) for columns in frames] or [_typed({})]
    return pd.concat(found, ignore_index=True) if len(found) > 1 else found[0]


def _whole(steps: pd.DataFrame) -> pd.DataFrame:
    """Those that ended and hold no start-up, as far as there are any: others tell little of a step."""
    for lacking in ("open", "start_up"):
        steps = steps if steps[lacking].all() else steps[~steps[lacking]]
    return steps


def _typed(columns: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(
        {name: pd.Series(columns.get(name, []), dtype=kind) for name, kind in _COLUMNS.items()}
    )


def _tokens(stated: int | str | None) -> int | None:
    if stated is None or stated == "":
        return None
    text = str(stated).replace(",", "")  # as it is read out of a log
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"tokens_per_step is a whole number above 0, such as 65,536, not {stated!r}")
    return int(text)


def _check(trace: Trace, ranks: Sequence[int], tokens: int | None) -> None:
    chosen = [trace.rank(rank) for rank in ranks]
    if not chosen:
        return
    if all(rank_trace.device_span is None for rank_trace in chosen):
        raise MissingDataError("device events", RECORD_DEVICE)
    if tokens is None and not any(has_shapes(rank_trace) for rank_trace in chosen):
        raise MissingDataError("shapes of operators", SHAPES)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `utilization` in words."""
    whole = frame[frame["iteration"].isna()]
    if whole.empty:
        return "No complete step lies in the selection."
    row = whole.iloc[int(whole["mfu_pct"].fillna(np.inf).to_numpy().argmin())]
    parts = [
        f"{'' if row[f'{name}_reading'] == 'exact' else row[f'{name}_reading'] + ' '}"
        f"{percent(row[f'{name}_pct'])} {name.upper()}"
        for name in ("mfu", "hfu", "mbu")
        if not row[f"{name}_reason"]
    ]
    where = f"Rank {row['rank']}" if len(whole) > 1 else "The job"
    if not parts:
        return f"Utilization is unknown: {row['mfu_reason'].split('. ')[0].rstrip('.')}."
    step = "a step"
    if row["known"] == "guessed":
        step = "a repeat of the same work" if row["steps"] > 1 else "the selected work"
    step = f"The recorded part of {step}" if row["open"] else f"{step[0].upper()}{step[1:]}"
    least = ", the least of all ranks" if len(whole) > 1 and not row["mfu_reason"] else ""
    reached = [f"{where} reaches {parts[0]} on {row['device']}{least}."]
    if rest := parts[1:]:
        reached.append(f"It reaches {' and '.join(rest)}.")
    return " ".join(
        [
            *reached,
            f"{step} takes {duration(row['step_ns'] / row['steps'])}, and {percent(row['formula_pct'])} of "
            "its device work, communication aside, has a formula.",
        ]
    )


ANALYSIS = Analysis(
    label="MFU and MBU",
    group="Kernels",
    title="How much of what the device could do each step uses",
    function=utilization,
    sentence=sentence,
    chart=Bars(
        "mfu_pct",
        ("rank",),
        "compute",
        note="mfu_reading",
        combine="mean",
        weight="step_ns",
        limit=100.0,
        measure="Model FLOPs utilization",
    ),
    requires=("device events", "shapes of operators"),
    options=(Option("tokens_per_step", "Tokens per step", hint="model FLOPs from operators"),),
)
