"""The whole job replayed: operations of all ranks, where they meet, and what slow ones cost."""

from hta_widgets.analysis.job.slowdown import slowdown

__all__ = ["slowdown"]
