"""Time by `nn.Module`: the call trees reduced to the frames of modules."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.calls.call_stacks import HOST_TIME, KERNEL_TIME, call_stacks
from hta_widgets.analysis.calls.stacks import PREFIX
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.sums import exact_sums
from hta_widgets.charts.spec import Treemap
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief, duration, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

OUTSIDE = "(outside modules)"

_SUMS = ("count", "host_ns", "host_self_ns", "kernels", "device_ns")


def module_stacks(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """Sum the time of hosts and devices over the modules of the model, nested as they call each other.

    These are the call trees of `call_stacks`, reduced to frames of modules: an operator, a Python function or
    a kernel counts for the innermost module that it runs, or was launched, in. Backward passes run outside
    modules, since no module's frame is open then.

    Args:
        trace: the job.
        scope: as for `call_stacks`.

    Returns:
        One row per rank and path of modules, callers before what they call, and last what ran outside any.
        Columns (int64 unless said): rank, node, parent_node (-1 at the top), name (str: class and number of
        the instance), depth, count, host_ns (with the modules called), host_self_ns (without), kernels,
        device_ns (launched by the module and those below).
        The host_self_ns of a rank, and the device_ns of its top rows, add up to those of `call_stacks`.

    Raises:
        MissingDataError: no selected rank has frames of modules.
    """
    missing = MissingDataError(
        "nn.Module frames",
        "Record with torch.profiler.profile(with_stack=True) and call the model while it records.",
        f'no Python frame is named "{PREFIX}..."',
    )
    if trace.ranks_of(scope) and not any(trace.each(_names_modules)):  # then no call tree is built in vain
        raise missing
    frame = call_stacks(trace, scope)
    parts = [_of_rank(paths) for _, paths in frame.groupby("rank", sort=True)]
    found = [part for part in parts if (part["name"] != OUTSIDE).any()]
    if len(frame) and not found:
        raise missing
    return pd.concat(found, ignore_index=True) if found else frame


def _names_modules(rank: RankTrace) -> bool:
    return any(name.startswith(PREFIX) for name in rank.names)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `module_stacks` in words."""
    if frame.empty or not frame["host_self_ns"].sum():
        return "No host call lies in the selection."
    modules = frame[frame["name"] != OUTSIDE]
    own = modules.groupby("name", sort=True)["host_self_ns"].sum()
    share = 100.0 * own.max() / int(frame["host_self_ns"].sum())
    text = (
        f"Of all modules, {brief(str(own.idxmax()))} itself takes the most host time: {duration(own.max())}, "
        f"{percent(share)} of the time of all calls."
    )
    if not modules["device_ns"].any():
        return f"{text} No module launches device work."
    top = frame[frame["depth"] == 0]
    inside = int(top.loc[top["name"] != OUTSIDE, "device_ns"].sum())
    return (
        f"{text} Modules launch {percent(100.0 * inside / int(top['device_ns'].sum()))} of the device work."
    )


def _of_rank(paths: pd.DataFrame) -> pd.DataFrame:
    """The paths of one rank with only modules left; paths stand before those they call."""
    names = paths["name"].astype("object").to_numpy()
    is_module = np.array([str(name).startswith(PREFIX) for name in names], np.bool_)
    row = pd.Series(np.arange(len(paths)), index=paths["node"])
    caller = row.reindex(paths["parent_node"]).fillna(-1).to_numpy(np.int64)
    module = np.full(len(paths) + 1, -1, np.int64)  # the innermost module of each path; last: of no path
    parents: list[int] = []
    labels: list[str] = []
    known: dict[tuple[int, str], int] = {}
    for at in range(len(paths)):  # distinct paths, thousands at most, not events
        above = int(module[caller[at]])
        if not is_module[at]:
            module[at] = above
            continue
        key = (above, str(names[at]))
        if key not in known:
            known[key] = len(parents)
            parents.append(above)
            labels.append(key[1].removeprefix(PREFIX))
        module[at] = known[key]
    of = module[:-1]
    inside = {column: is_module if column != "host_self_ns" else of >= 0 for column in _SUMS}
    sums = {
        column: exact_sums(of[rows], paths[column].to_numpy(np.int64)[rows], len(parents))
        for column, rows in inside.items()
    }
    outside = paths[of < 0]
    tops = np.array(parents, np.int64) < 0
    rest = {
        "count": 0,
        "host_ns": int(outside["host_self_ns"].sum()),
        "host_self_ns": int(outside["host_self_ns"].sum()),
        **{
            column: int(paths.loc[caller < 0, column].sum() - sums[column][tops].sum())
            for column in ("kernels", "device_ns")
        },
    }
    depth: list[int] = []
    for above in parents:
        depth.append(0 if above < 0 else depth[above] + 1)
    table = {
        "rank": np.full(len(parents) + 1, int(paths["rank"].iloc[0]), np.int64),
        "node": np.arange(len(parents) + 1),
        "parent_node": np.array([*parents, -1], np.int64),
        "name": pd.Series([*labels, OUTSIDE], dtype="str"),
        "depth": np.array([*depth, 0], np.int64),
    }
    return pd.DataFrame({**table, **{column: np.append(sums[column], rest[column]) for column in _SUMS}})


ANALYSIS = Analysis(
    label="Modules",
    group="Host",
    title="Which modules of the model the time goes to",
    function=module_stacks,
    sentence=sentence,
    chart=Treemap("node", "parent_node", "name", (KERNEL_TIME, HOST_TIME), prefix=PREFIX, rest=OUTSIDE),
    requires=("nn.Module frames",),
    ignores=("names",),
)
