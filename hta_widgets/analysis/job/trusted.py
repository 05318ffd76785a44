"""The model of a job, if it explains the recording."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.job.model import JobModel, job_model
from hta_widgets.analysis.job.operations import operations
from hta_widgets.analysis.parallelism.coordinates import coordinates
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import percent, signed
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

# A replay that is further from the recording, or in which more meetings are forced, explains nothing.
_TRUSTED = 0.05
_FORCED = 0.01


@memoize_per_rank(last=2)
def trusted_model(
    trace: Trace, ranks: tuple[int, ...] | None, iterations: tuple[int, ...] | None
) -> JobModel:
    """The model of these ranks and iterations.

    Raises:
        MissingDataError: there is nothing to compare, or the replay does not reproduce the recording.
    """
    if len(trace.ranks_of(Scope(ranks=ranks))) < 2:
        raise MissingDataError(
            "second rank",
            "Record every rank of the job with its own torch.profiler.profile and open their folder.",
            "a straggler shows only between ranks",
        )
    ops = operations(trace, ranks, iterations)
    model = job_model(ops, trace.job_size, coordinates(trace, ranks))
    if not (np.bincount(model.meeting[model.meeting >= 0]) > 1).any():
        raise MissingDataError(
            "collective that is recorded on two ranks",
            "Record the same steps on every rank; torch.profiler numbers collectives from PyTorch 2.4 on.",
            "the kernels' numbers, order or times do not fit together",
        )
    error = model.total / model.measured - 1
    meetings = int(model.meeting.max()) + 1
    if abs(error) > _TRUSTED or model.net.forced > _FORCED * meetings or model.net.unreached:
        raise MissingDataError(
            "order of operations that explains the recording",
            "Record launches as well (ProfilerActivity.CPU), and use a stream for each partner of a send.",
            f"the best one takes {signed(error, percent(100 * error))}, and ranks disagree on "
            f"{model.net.forced} of {meetings} meetings",
        )
    return model
