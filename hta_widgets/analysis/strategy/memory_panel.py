"""Who holds memory: the owners at the peak if it was recorded, else what the model needs, computed."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis, Option
from hta_widgets.analysis.memory.owners import BEFORE_RECORDING, By, OwnersBy, memory_owners
from hta_widgets.analysis.memory.usage import NO_OPERATOR, who_needs_most
from hta_widgets.analysis.strategy.model_states import strategy_memory
from hta_widgets.charts.spec import Bars
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import byte_size, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

COMPUTED: Final = "computed, not measured"
"""The device of what was computed."""

_OPTIMIZERS: Final = {"adam": "Adam", "adamw": "AdamW", "sgd": "SGD", "sgd_momentum": "SGD with momentum"}
_STATES: Final = ("parameters", "gradients", "optimizer state", "master weights")


def owners_or_model(trace: Trace, scope: Scope | None = None, by: By = "lifetime") -> pd.DataFrame:
    """`memory_owners`; without memory events what the model needs, if its strategy tells (`strategy_memory`).

    Returns:
        Of what is computed: rank int64, device (str, "computed, not measured"), name (str, the component),
        bytes int64, share_pct float64 (% of the model states), operator (str, "(no operator)"), basis (str).

    Raises:
        MissingDataError: no selected rank has memory events, and the size of the model is not known.
    """
    try:
        return memory_owners(trace, scope, by)
    except MissingDataError as missing:
        if missing.field != "memory events":
            raise
        try:
            model = strategy_memory(trace, scope)
        except MissingDataError:
            raise missing from None
    rows = model[model["component"].isin(_STATES) & (model["computed_bytes"].fillna(0) > 0)]
    rows = rows.assign(device=COMPUTED, bytes=rows["computed_bytes"].astype(np.int64))
    rows["share_pct"] = 100.0 * rows["bytes"] / rows.groupby("rank")["bytes"].transform("sum")
    rows = rows.assign(operator=NO_OPERATOR).rename(columns={"component": "name"}).reset_index(drop=True)
    return rows[["rank", "device", "name", "bytes", "share_pct", "operator", "basis"]]


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `owners_or_model` in words."""
    if frame.empty:
        return "No memory was allocated in the selection."
    if "peak_ns" not in frame:
        of_ranks = frame.groupby("rank", sort=True)["bytes"].sum()
        rank = int(of_ranks.index[int(of_ranks.to_numpy(np.int64).argmax())])
        parts = frame[frame["rank"] == rank]
        columns = (parts[name] for name in ("name", "bytes", "basis"))
        said = ", ".join(
            f"{name}{_of_optimizer(name, basis)} {byte_size(size)}"
            for name, size, basis in zip(*columns, strict=True)
        )
        needed = byte_size(int(of_ranks.max()))
        return f"Computed, not measured: the model needs {needed} on rank {rank} ({said})."
    frame = frame[frame["device"] != "cpu"] if (frame["device"] != "cpu").any() else frame
    fullest = frame[frame["peak_bytes"] == frame["peak_bytes"].max()]
    rank, device = fullest.iloc[0][["rank", "device"]]
    most = fullest[(fullest["rank"] == rank) & (fullest["device"] == device)].iloc[0]
    special = {BEFORE_RECORDING: f"is from {BEFORE_RECORDING}", "unknown": "is of unknown use"}
    owner = special.get(most["name"], f"belongs to {most['name']}")
    peak = int(most["peak_bytes"])
    share = percent(100.0 * most["bytes"] / peak if peak else 0.0)
    return f"{who_needs_most(frame)}; {share} of it {owner}."


def _of_optimizer(name: str, basis: str) -> str:
    """Which optimizer its state is that of."""
    if name != "optimizer state":
        return ""
    optimizer, _, assumed = basis.partition(":")[0].partition(", ")
    return f" if it is {_OPTIMIZERS[optimizer]}'s" if assumed else f" of {_OPTIMIZERS[optimizer]}"


ANALYSIS = Analysis(
    kind="memory_owners",
    label="Memory owners",
    group="Memory",
    title="What memory is used for at the peak",
    function=owners_or_model,
    sentence=sentence,
    chart=Bars(
        "bytes",
        ("rank", "device", "name"),
        "memory",
        names="operator",
        no_event=NO_OPERATOR,
        measure="Memory",
    ),
    requires=("memory events", "nn.Module frames"),
    options=(Option("by", "Owners", OwnersBy, "lifetime"),),
)
