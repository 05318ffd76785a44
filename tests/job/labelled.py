"""The slowdowns of jobs whose operations are labelled with type, stage, replica and microbatch.

Definitions of "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025).

A step is replayed alone. Computations ideally take the mean of their type, communication the median; what a
member of a collective transfers is its end less the last start of the group.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd

from hta_widgets.analysis.job.network import Network, network
from tests.support import shared_job

COMPUTE = ("forward-compute", "backward-compute", "optimizer", "gc")
STREAMS = ("forward-send", "forward-recv", "backward-send", "backward-recv")
OF_REPLICAS = ("params-all-gather", "grads-reduce-scatter")
# An end this long before the partner's start is a fault of the clocks, not a transfer.
NO_TRANSFER_NS = -10_000_000


@cache
def labelled(name: str, steps: int | None = None) -> pd.DataFrame:
    """The operations of a job, by step, worker and start: times as int64 ns, ranks counted from 0."""
    frame = pd.read_parquet(shared_job(f"trace-{name}.parquet"))
    if steps:
        frame = frame[frame["step"].isin(sorted(frame["step"].unique())[:steps])]
    frame["optype"] = frame["optype"].astype(str)
    frame = frame.sort_values(["step", "dp_rank", "stage", "start_ts", "seq_id", "optype"], ignore_index=True)
    frame["start"] = (frame["start_ts"].astype(float) * 1e9).round().astype(np.int64)
    ends = frame["start_ts"].astype(float) + frame["duration"].astype(float)
    frame["end"] = (ends * 1e9).round().astype(np.int64)
    frame["worker"] = np.searchsorted(np.sort(frame["rank"].unique()), frame["rank"])
    return frame


def _worker(part: pd.DataFrame, step: int, replica: int, stage: int, edges: list, group: dict) -> None:
    """The edges of one worker in one step, and the groups that its operations belong to."""
    by = {kind: rows.index.to_numpy() for kind, rows in part.groupby("optype")}
    compute = part.index[part["optype"].isin(("forward-compute", "backward-compute"))].to_numpy()

    def chain(rows) -> None:
        edges.extend(pairwise(rows))

    chain(compute)
    for kind in STREAMS:
        chain(by.get(kind, ()))
    for way, back in (("forward", -1), ("backward", 1)):
        of_way = by[f"{way}-compute"]
        for n, row in enumerate(by.get(f"{way}-recv", ())):
            edges.append((row, of_way[n]))
            if n:
                edges.append((of_way[n - 1], row))
            group[row] = (step, replica, way, min(stage, stage + back), n)
        for n, row in enumerate(by.get(f"{way}-send", ())):
            edges.append((of_way[n], row))
            group[row] = (step, replica, way, min(stage, stage - back), n)
    first_backward = int(np.flatnonzero(np.isin(compute, by["backward-compute"]))[0])
    if first_backward >= 2:
        for kind in ("backward-recv", "backward-send"):
            if kind in by:
                edges.append((compute[first_backward - 2], by[kind][0]))
    chain(part.index[part["optype"].isin(OF_REPLICAS)].to_numpy())
    edges.append((by["params-all-gather"][-1], by["forward-compute"][0]))
    last = part.loc[compute, "end"].idxmax()
    embedding = by.get("embedding-grads-all-reduce", np.empty(0, np.int64))
    clip = by["optimizer-clip-main-grad"]
    tail = [
        by["gc"],
        by["layernorm-grads-all-reduce"][:1],
        embedding,
        by["grads-reduce-scatter"],
        clip,
        by["optimizer"],
    ]
    chain([last, *np.concatenate(tail)])
    for kind in OF_REPLICAS:
        group.update({row: (step, kind, stage, n) for n, row in enumerate(by[kind])})
    group.update(dict.fromkeys(embedding, (step, replica, "embedding")))
    group[clip[0]] = (step, "clip")


def joined(frame: pd.DataFrame) -> tuple[Network, np.ndarray]:
    """The network of a labelled job, and the group of each operation."""
    edges: list[tuple[int, int]] = []
    group: dict[int, tuple] = {}
    for (step, replica, stage), part in frame.groupby(["step", "dp_rank", "stage"], sort=False):
        _worker(part, step, replica, stage, edges, group)
    keys = pd.Series([group.get(row) for row in frame.index], dtype=object)
    meeting = np.full(len(frame), -1)
    meeting[keys.notna()] = pd.factorize(keys[keys.notna()])[0]
    before, after = np.array(edges).T
    return network(before, after, meeting, frame["start"].to_numpy(), pd.factorize(frame["step"])[0]), meeting


def taken(frame: pd.DataFrame, meeting: np.ndarray) -> np.ndarray:
    """What each operation takes by itself: its transfer in a group, else its duration."""
    late = frame["start"].groupby(meeting).transform("max").where(meeting >= 0, frame["start"])
    own = (frame["end"] - late).to_numpy()
    return np.where((meeting >= 0) & (own <= NO_TRANSFER_NS), 0, own)


def ideal(frame: pd.DataFrame, own: np.ndarray) -> np.ndarray:
    by_kind = pd.Series(own).groupby(frame["optype"])
    found = np.where(frame["optype"].isin(COMPUTE), by_kind.transform("mean"), by_kind.transform("median"))
    found = np.rint(found).astype(np.int64)
    return np.where(frame["optype"] == "gc", 0, found)


@cache
def answers(name: str, steps: int | None = None) -> dict:
    """All published numbers of a job."""
    frame = labelled(name, steps)
    net, meeting = joined(frame)
    own = taken(frame, meeting)
    best = ideal(frame, own)
    each_step, total = net.step_times(own), net.step_times(own).mean()
    least = net.step_times(best).mean()
    kind = frame["optype"].replace(
        {f"{way}-{side}": f"{way}-pp-comm" for way in ("forward", "backward") for side in ("send", "recv")}
    )
    found = {
        "T": total,
        "T_ideal": least,
        "S": total / least,
        "steps": each_step / least,
        "forced": net.forced,
        "unreached": net.unreached,
    }
    for scope, label in (
        ("optype", kind),
        ("stage", frame["stage"]),
        ("dp_rank", frame["dp_rank"]),
        ("worker", frame["worker"]),
    ):
        code, names = pd.factorize(label, sort=True)
        slow = net.with_other(best, own, code, np.arange(len(names))).mean(axis=1)
        found[scope] = dict(zip(map(str, names), slow / least, strict=True))

    def won(rows: np.ndarray) -> float:
        return (total - net.step_times(np.where(rows, best, own)).mean()) / (total - least)

    place = frame.drop_duplicates("worker").set_index("worker")[["dp_rank", "stage"]].astype(str)
    near = {w: min(found["dp_rank"][at.dp_rank], found["stage"][at.stage]) for w, at in place.iterrows()}
    worst = sorted(near, key=lambda w: (-near[w], w))[: -(-3 * len(near) // 100)]
    found["M_W"] = won(frame["worker"].isin(worst).to_numpy())
    found["M_S"] = won((frame["stage"] == frame["stage"].max()).to_numpy())
    return found
