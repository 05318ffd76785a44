"""Entries on what the host does: launches, queues, annotated regions, operators and call stacks."""

from __future__ import annotations

from hta_widgets.analysis.annotations.kernels import annotation_totals
from hta_widgets.analysis.annotations.kernels import sentence as totals_in_words
from hta_widgets.analysis.annotations.regions import sentence as regions_in_words
from hta_widgets.analysis.calls import modules, stacks
from hta_widgets.analysis.calls.op_counts import op_counts
from hta_widgets.analysis.calls.op_counts import sentence as counts_in_words
from hta_widgets.analysis.catalogue import words
from hta_widgets.analysis.catalogue.regions import regions
from hta_widgets.analysis.charts import Bars, Flame, Histogram, Lines
from hta_widgets.analysis.entry import Analysis, Option
from hta_widgets.analysis.launches import delays, queue

__all__ = ["HOST"]

_LAUNCHES = ("launch calls of device events",)
_HOST_TIME = ("host_ns", "host_self_ns", "Host time", "host")
_KERNEL_TIME = ("device_ns", "", "Kernel time", "compute")

HOST = (
    Analysis(
        kind="launch_stats",
        label="Launch delays",
        group="Host",
        title="How long launches take to start",
        function=delays.launch_stats,
        sentence=delays.sentence,
        chart=Histogram("latency_ns", "host"),
        requires=_LAUNCHES,
    ),
    Analysis(
        kind="launch_summary",
        label="Launch calls",
        group="Host",
        title="Which calls launch device work",
        function=delays.launch_summary,
        sentence=words.launch_calls,
        chart=Bars("cpu_ns", ("api",), "host", names="api"),
        requires=_LAUNCHES,
    ),
    Analysis(
        kind="queue_length",
        label="Queue length",
        group="Host",
        title="How much work waits on each stream",
        function=queue.queue_length,
        sentence=words.queue_length,
        chart=Lines("time_ns", "queue_length", ("rank", "device", "stream"), "host"),
        requires=_LAUNCHES,
    ),
    Analysis(
        kind="queue_summary",
        label="Queues",
        group="Host",
        title="How full each queue is",
        function=queue.queue_summary,
        sentence=queue.sentence,
        chart=Bars("queued_ns", ("rank", "device", "stream"), "host"),
        requires=_LAUNCHES,
    ),
    Analysis(
        kind="blocked_on_full_queue",
        label="Full queues",
        group="Host",
        title="How long launches wait for a full queue",
        function=queue.blocked_on_full_queue,
        sentence=words.full_queues,
        chart=Bars("blocked_ns", ("rank", "device", "stream"), "host"),
        requires=_LAUNCHES,
    ),
    Analysis(
        kind="user_annotations",
        label="Annotations",
        group="Host",
        title="How long annotated regions take",
        function=regions,
        sentence=regions_in_words,
        chart=Bars("sum_ns", ("name",), "host", names="name"),
        requires=("user annotations",),
        options=(Option("side", "Measured on", ("", "gpu", "cpu"), hint="gpu, else cpu"),),
    ),
    Analysis(
        kind="annotation_totals",
        label="Annotated work",
        group="Host",
        title="Which annotated regions the device works for",
        function=annotation_totals,
        sentence=totals_in_words,
        chart=Bars("sum_ns", ("annotation",), "compute", names="annotation"),
        requires=("device events",),
    ),
    Analysis(
        kind="op_counts",
        label="Operations",
        group="Host",
        title="What ran how often",
        function=op_counts,
        sentence=counts_in_words,
        chart=Bars("exclusive_duration_ns", ("name",), "category", names="name"),
        requires=(),
        options=(Option("device", "Device", ("all", "cpu", "gpu"), "all"),),
    ),
    Analysis(
        kind="call_stacks",
        label="Call stacks",
        group="Host",
        title="Where in the program the time goes",
        function=stacks.call_stacks,
        sentence=stacks.sentence,
        chart=Flame("node", "parent_node", "name", (_HOST_TIME, _KERNEL_TIME)),
        requires=("host events",),
    ),
    Analysis(
        kind="module_stacks",
        label="Modules",
        group="Host",
        title="Which modules of the model the time goes to",
        function=modules.module_stacks,
        sentence=modules.sentence,
        chart=Flame("node", "parent_node", "name", (_KERNEL_TIME, _HOST_TIME)),
        requires=("nn.Module frames",),
    ),
)
