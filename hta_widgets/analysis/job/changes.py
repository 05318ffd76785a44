"""Changes that concern several ranks: what each operation of a job takes after them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fnmatch import translate

import numpy as np
import pandas as pd

from hta_widgets.analysis.job.ideal import COMMUNICATION
from hta_widgets.analysis.job.model import HOST, JobModel
from hta_widgets.arrays import Bool, Float64, Int64


@dataclass(frozen=True)
class Changed:
    """A job after changes."""

    own: Int64  # ns, what each operation takes but for `share`; without waits for the host
    usual: Bool  # the operations whose wait for the host is as long as is usual
    # float64, of that time what faster links leave. Apart, so that the order of changes is all one.
    share: Float64
    # int64 ns, what merged collectives take whatever `own` says: 0 if another one has their data; -1 for
    # others
    fixed: Int64
    # int64, operations, and those that must wait for them after the changes
    before: Int64
    after: Int64
    # another number of them, and whether they keep their size; None: as recorded. It changes which operations
    # there are, so it is made alone.
    microbatches: tuple[int, bool] | None = None

    @property
    def taken(self) -> Int64:
        """What each operation takes, int64 ns."""
        own = np.where(self.fixed >= 0, self.fixed, self.own)
        return np.rint(own * self.share).astype(np.int64)


def unchanged(model: JobModel) -> Changed:
    """The job as it was recorded."""
    count = int((model.ops["kind"] != HOST).sum())
    nothing = np.empty(0, np.int64)
    return Changed(
        own=model.taken[:count],
        usual=np.zeros(count, np.bool_),
        share=np.ones(count),
        fixed=np.full(count, -1),
        before=nothing,
        after=nothing,
    )


def no_stragglers(model: JobModel, changed: Changed) -> Changed:
    """Everything takes its ideal time."""
    count = len(changed.own)
    return replace(changed, own=model.ideal[:count], usual=np.ones(count, np.bool_))


def even_operations(model: JobModel, changed: Changed, name: str) -> Changed:
    """Operations of a name take their ideal time."""
    rows = named(model, name)[: len(changed.own)]
    return replace(changed, own=np.where(rows, model.ideal[: len(rows)], changed.own))


def faster_links(model: JobModel, changed: Changed, share: float, name: str | None) -> Changed:
    """Transfers of a name take a share of their time."""
    count = len(changed.own)
    rows = model.ops["kind"].isin(COMMUNICATION).to_numpy()[:count]
    if name is not None:
        rows = rows & named(model, name)[:count]
    return replace(changed, share=np.where(rows, changed.share * share, changed.share))


def median_rank(model: JobModel, changed: Changed, rank: int) -> Changed:
    """A rank computes and copies as long as the median of its peers, and waits as usual for its host.

    Its peers are the other ranks of its stage, or of the job where there are none. The time of each kind and
    name in a step is scaled to the median of theirs.

    Raises:
        ValueError: the job has no such rank.
    """
    count = len(changed.own)
    ops = model.ops.iloc[:count]
    alike = model.places.peers
    if rank not in alike:
        raise ValueError(f"the job has no rank {rank}: its ranks are {', '.join(map(str, sorted(alike)))}")
    peers = [r for r in alike if r != rank and alike[r] == alike[rank]] or [r for r in alike if r != rank]
    work = ~ops["kind"].isin(COMMUNICATION).to_numpy()
    keys = [ops[column].to_numpy()[work] for column in ("kind", "name", "rank")]
    spent = pd.Series(changed.own[work]).groupby(keys).sum().unstack(fill_value=0)  # noqa: PD010 - a value each
    usual = spent.reindex(columns=peers, fill_value=0).median(axis=1)
    spends = spent.get(rank, pd.Series(0, spent.index))
    factor = (usual / spends.where(spends > 0)).fillna(1.0)
    mine = work & (ops["rank"] == rank).to_numpy()
    named = pd.MultiIndex.from_frame(ops.loc[mine, ["kind", "name"]])
    own = changed.own.copy()
    own[mine] = np.rint(own[mine] * factor.reindex(named).to_numpy()).astype(np.int64)
    return replace(changed, own=own, usual=changed.usual | (ops["rank"] == rank).to_numpy())


def microbatches(model: JobModel, changed: Changed, count: int, same_size: bool) -> Changed:
    """A step has so many microbatches."""
    return replace(changed, microbatches=(count, same_size))


def named(model: JobModel, name: str) -> Bool:
    """The operations whose kernel or collective has a name that the pattern means."""
    pattern = re.compile(translate(name))
    ops = model.ops
    found = np.zeros(len(ops), np.bool_)
    for column in ("name", "collective"):
        code, names = pd.factorize(ops[column])
        fits = np.array([pattern.match(str(each)) is not None for each in names] + [False], np.bool_)
        found |= fits[code]
    return found
