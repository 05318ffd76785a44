"""The steps of a run that count in a comparison, and when each begins and ends.

The steps of a run are the sample; how much they vary is the noise that a difference between runs is compared
with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.device_time.step_times import DEVIATIONS, LEAST_EXCESS, LEAST_STEPS
from hta_widgets.arrays import Int64
from hta_widgets.trace.iteration_clock import Clock, retimed
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

Scopes = Scope | Mapping[str, Scope] | None

# The device's marks lose the last step, whose end nothing marks; fewer steps than these show no variation.
LEAST_DEVICE_STEPS: Final = 3

WARM_UP: Final = "warm-up"
OUTLIER: Final = "outlier"
CUT: Final = "cut by the recording"
MISSING: Final = "not on every rank"
UNENDED: Final = "nothing marks its end on the device"

_NO_KINDS: npt.NDArray[np.object_] = np.empty(0, object)


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of a run that count."""

    ranks: tuple[int, ...]  # the ranks of the sample: those with device work; without any, all
    iterations: Int64  # int64[S] their numbers, in order of time; each is complete on every rank
    windows: Int64  # int64[S, R, 2] start and end of each step on each rank, ns
    # "host": from begin to end of the step's mark on the host; "device": by the device work that the step
    # launched (see `sample`)
    clock: str
    source: str  # what marks the steps (see `Trace.iterations`)
    kinds: npt.NDArray[np.object_]  # str[S] what a server did in each, e.g. "decode 32"; "" in training.
    tokens: Int64  # int64[S] and how many tokens that were, -1 where it is not recorded
    excluded: dict[int, str]  # iteration -> why it does not count

    def __len__(self) -> int:
        return len(self.iterations)

    @property
    def units(self) -> int:
        """Steps times ranks: what sums are divided by."""
        return len(self) * len(self.ranks)

    @property
    def durations(self) -> Int64:
        """int64[S] time of each step, summed over the ranks."""
        return (self.windows[:, :, 1] - self.windows[:, :, 0]).sum(axis=1)

    def position(self, iteration: npt.NDArray[np.integer]) -> Int64:
        """int64 place of each iteration number among the steps, -1 for those that do not count."""
        if not len(self):
            return np.full(len(iteration), -1, np.int64)
        order = np.argsort(self.iterations)
        at = np.searchsorted(self.iterations[order], iteration)
        place = order[np.minimum(at, len(order) - 1)]
        return np.where(self.iterations[place] == iteration, place, -1)

    def of_rank(self, rank: int) -> Steps:
        """The same steps on one rank alone."""
        at = self.ranks.index(rank)
        return replace(self, ranks=(rank,), windows=self.windows[:, at : at + 1])

    def only(self, kept: npt.NDArray[np.bool_], why: Mapping[int, str]) -> Steps:
        """The steps that the mask `kept` selects; `why` the others do not count."""
        return replace(
            self, iterations=self.iterations[kept], windows=self.windows[kept], kinds=self.kinds[kept],
            tokens=self.tokens[kept], excluded=self.excluded | dict(why),
        )  # fmt: skip


def check_runs(runs: Mapping[str, Trace], least: int = 2) -> None:
    """Raises ValueError if there are fewer runs than `least`."""
    if len(runs) < least:
        raise ValueError(f"a comparison takes at least {least} runs, not {len(runs)}")


def scope_of(scope: Scopes, run: str) -> Scope:
    """The scope that holds for a run: one for all, or one per run."""
    if scope is None or isinstance(scope, Scope):
        return scope or Scope()
    return scope.get(run, Scope())


def sample(runs: Mapping[str, Trace], scope: Scopes = None) -> dict[str, Steps]:
    """The steps of each run that count, all timed by the same clock.

    A step counts if it is complete on every chosen rank, lies in the scope (among its iterations; whole in
    its window), and is usual. Its time is that of all ranks together. With four complete steps or more, a
    step is unusual if it differs from the median of the steps of its kind (of a server: same phase, batch
    size and number of tokens) by more than a tenth and by more than three standard deviations (1.4826 median
    absolute deviations each): as in `step_times`, but in both directions. Unusual steps before the first
    usual one are warm-up, the others outliers.

    The clock is that of the runs' iterations (`RankTrace.iteration_clock`). Runs that differ in it are timed
    on the device, from the first work of each step to that of the next, so that waiting for the host counts
    in all of them; by the host where a run has fewer than three steps on the device.
    """
    steps = {run: _complete(trace, scope_of(scope, run)) for run, trace in runs.items()}
    if len({found.clock for found in steps.values()}) > 1:
        host = {run: _complete(trace, scope_of(scope, run), "host") for run, trace in runs.items()}
        device = {run: _complete(trace, scope_of(scope, run), "device") for run, trace in runs.items()}
        enough = all(len(found) >= LEAST_DEVICE_STEPS for found in device.values())
        steps = device if enough else host
    return {run: _usual(found) for run, found in steps.items()}


def _complete(trace: Trace, scope: Scope, clock: Clock | None = None) -> Steps:
    """The steps that are complete on every chosen rank, by the clock of the iterations or the one given."""
    ranks = trace.ranks_of(scope)
    ranks = [rank for rank in ranks if trace.rank(rank).device_span is not None] or ranks
    clocks = {trace.rank(rank).iteration_clock for rank in ranks}
    clock = clock or (clocks.pop() if len(clocks) == 1 else "host")
    edges = ["start_ns", "end_ns"]
    frames = [_inside(retimed(trace.rank(rank).iterations, clock), scope, edges) for rank in ranks]
    present = [set(frame["iteration"].tolist()) for frame in frames]
    cut = {number for frame in frames for number in frame.loc[frame["partial"], "iteration"].tolist()}
    common = set.intersection(*present) if present else set()
    excluded = dict.fromkeys(sorted(set().union(*present) - common), MISSING) | dict.fromkeys(
        sorted(cut), CUT
    )
    unended = {number for frame in frames for number in frame.loc[frame["open"], "iteration"].tolist()} - cut
    if common - cut - unended:
        excluded |= dict.fromkeys(sorted(unended & common), UNENDED)
        cut |= unended
    rows = [frame[frame["iteration"].isin(common - cut)].set_index("iteration") for frame in frames]
    if not rows:
        none = np.empty(0, np.int64)
        return Steps((), none, np.empty((0, 0, 2), np.int64), clock, "", _NO_KINDS, none, {})
    numbers = rows[0].index.to_numpy(np.int64)
    windows = [frame.loc[numbers, edges].to_numpy(np.int64) for frame in rows]
    source = " + ".join(sorted({text for frame in frames for text in frame["source"].unique()}))
    tokens = rows[0]["tokens"].to_numpy(np.int64, na_value=-1)
    return Steps(
        tuple(ranks), numbers, np.stack(windows, 1), clock, source, _kinds(rows[0]), tokens, excluded
    )


def _usual(steps: Steps) -> Steps:
    time, alike = pd.Series(steps.durations), [steps.kinds, steps.tokens]
    of_kind = time.groupby(alike)
    usual = of_kind.transform("median")
    apart = (time - usual).abs()
    spread = apart.groupby(alike).transform("median")
    limit = np.maximum(DEVIATIONS * spread, LEAST_EXCESS * usual)
    unusual = ((apart > limit) & (of_kind.transform("count") >= LEAST_STEPS)).to_numpy(np.bool_)
    if not unusual.any():
        return steps
    first = int(np.argmin(unusual))
    why = {
        int(steps.iterations[at]): WARM_UP if at < first else OUTLIER
        for at in np.flatnonzero(unusual).tolist()
    }
    return steps.only(~unusual, why)


def _inside(iterations: pd.DataFrame, scope: Scope, edges: list[str]) -> pd.DataFrame:
    chosen = np.ones(len(iterations), np.bool_)
    if scope.iterations is not None:
        chosen &= iterations["iteration"].isin(scope.iterations).to_numpy()
    if scope.window_ns is not None:
        first, last = scope.window_ns
        chosen &= ((iterations[edges[0]] >= first) & (iterations[edges[1]] <= last)).to_numpy()
    return iterations[chosen]


def _kinds(frame: pd.DataFrame) -> npt.NDArray[np.object_]:
    """What a server did in each step: phase and batch size, as far as they were recorded."""
    details = zip(frame["phase"].tolist(), frame["batch_size"].tolist(), strict=True)
    kinds = [" ".join(str(part) for part in parts if not pd.isna(part)) for parts in details]
    return np.array(kinds, object)
