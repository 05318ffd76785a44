"""Entries on what ties a job together: communication, memory, and the critical path."""

from __future__ import annotations

from hta_widgets.analysis.catalogue import words
from hta_widgets.analysis.charts import Bars, Heat, Lines, Series, Stack
from hta_widgets.analysis.communication.collectives import collectives
from hta_widgets.analysis.communication.stragglers import sentence as stragglers_in_words
from hta_widgets.analysis.communication.stragglers import stragglers
from hta_widgets.analysis.copies import bandwidth
from hta_widgets.analysis.critical_path.path import critical_path
from hta_widgets.analysis.critical_path.summary import sentence as path_in_words
from hta_widgets.analysis.entry import Analysis
from hta_widgets.analysis.memory import usage
from hta_widgets.analysis.strategy.table import sentence as strategy_in_words
from hta_widgets.analysis.strategy.table import training_strategy

__all__ = ["COMMUNICATION", "CRITICAL_PATH", "MEMORY"]

_COPIES = ("memory bandwidth (GB/s)",)
_MEMORY = ("memory events",)

COMMUNICATION = (
    Analysis(
        kind="stragglers",
        label="Stragglers",
        group="Communication",
        title="Whom the other ranks wait for",
        function=stragglers,
        sentence=stragglers_in_words,
        chart=Heat("iteration", "rank", "caused_wait_ns", "communication"),
        requires=("second rank", "communication kernels"),
        own=("ranks",),
    ),
    Analysis(
        kind="collectives",
        label="Collectives",
        group="Communication",
        title="Which collectives run, and for how long",
        function=collectives,
        sentence=words.collectives,
        chart=Bars("dur_ns", ("collective", "process_group"), "communication", names="name"),
        requires=("communication kernels",),
    ),
    Analysis(
        kind="training_strategy",
        label="Strategy",
        group="Communication",
        title="How the job is parallelised, and what that sends",
        function=training_strategy,
        sentence=strategy_in_words,
        chart=None,
        requires=("device events", "communication kernels", "collective sizes"),
    ),
)

MEMORY = (
    Analysis(
        kind="memory_timeline",
        label="Memory",
        group="Memory",
        title="How much memory is in use over time",
        function=usage.memory_timeline,
        sentence=words.memory_timeline,
        chart=Lines("time_ns", "allocated_bytes", ("rank", "device"), "memory"),
        requires=_MEMORY,
    ),
    Analysis(
        kind="memory_peak",
        label="Memory peak",
        group="Memory",
        title="Who holds memory at the peak",
        function=usage.memory_peak,
        sentence=usage.sentence,
        chart=Bars("bytes", ("rank", "device", "top_operator"), "memory", names="top_operator"),
        requires=_MEMORY,
    ),
    Analysis(
        kind="memory_bandwidth",
        label="Bandwidth",
        group="Memory",
        title="How fast memory is copied and set over time",
        function=bandwidth.memory_bandwidth,
        sentence=words.bandwidth,
        chart=Lines("time_ns", "gbps", ("rank", "device", "kind"), "memory"),
        requires=_COPIES,
    ),
    Analysis(
        kind="bandwidth_summary",
        label="Copies",
        group="Memory",
        title="Which copies take how long",
        function=bandwidth.bandwidth_summary,
        sentence=bandwidth.sentence,
        chart=Bars("gpu_ns", ("kind",), "memory"),
        requires=_COPIES,
    ),
)

CRITICAL_PATH = (
    Analysis(
        kind="critical_path",
        label="Critical path",
        group="Critical path",
        title="What decides how long the window takes",
        function=critical_path,
        sentence=path_in_words,
        chart=Stack(
            (
                Series("cpu_bound", "Host", "host"),
                Series("data_loading", "Data loading", "host", "/"),
                Series("gpu_compute_bound", "Compute", "compute"),
                Series("gpu_communication_bound", "Communication", "communication"),
                Series("gpu_memory_bound", "Memory", "memory"),
                Series("kernel_launch_overhead", "Launch delay", "idle"),
                Series("kernel_kernel_overhead", "Between kernels", "idle", "/"),
                Series("sync", "Synchronisation", "sync"),
            ),
            "path_ns",
            part="bound_by",
            value="dur_ns",
        ),
        requires=("link from device work to its launch",),
    ),
)
