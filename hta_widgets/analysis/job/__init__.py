"""The whole job replayed: operations of all ranks, where they meet, and what slow ones cost."""

from hta_widgets.analysis.job.parts import job_iterations
from hta_widgets.analysis.job.ranks import job_ranks
from hta_widgets.analysis.job.slowdown import slowdown

__all__ = ["job_iterations", "job_ranks", "slowdown"]
