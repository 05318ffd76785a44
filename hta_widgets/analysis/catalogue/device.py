"""Entries on what the devices do: where their time goes, and which kernels take it."""

from __future__ import annotations

from hta_widgets.analysis.calls import cupti, sequences
from hta_widgets.analysis.catalogue.sequences import frequent_sequences
from hta_widgets.analysis.charts import Bars, Series, Spread, Stack
from hta_widgets.analysis.device_time import kernel_types, overlap, temporal
from hta_widgets.analysis.entry import Analysis, Option
from hta_widgets.analysis.idle import breakdown as idle
from hta_widgets.analysis.idle import gaps, streams
from hta_widgets.analysis.kernels import breakdown as kernels
from hta_widgets.analysis.kernels.durations import kernel_durations
from hta_widgets.analysis.kernels.durations import sentence as durations_in_words
from hta_widgets.analysis.launches.op_kernels import op_kernels
from hta_widgets.analysis.launches.op_kernels import sentence as operators_in_words

__all__ = ["IDLE_CAUSES", "KERNELS", "TIME"]

_BY = Option("by", "One bar per", ("rank", "iteration"), "rank")
_DEVICE = ("device events",)

IDLE_CAUSES = (
    Series("host_sync_ns", "Host blocked in sync", "sync"),
    Series("data_stall_ns", "Host waits for data", "host", "/"),
    Series("host_busy_ns", "Host busy", "host"),
    Series("launch_latency_ns", "Launch latency", "host", "."),
    Series("kernel_wait_ns", "Between kernels", "idle"),
    Series("device_wait_ns", "Device waits", "idle", "/"),
    Series("unknown_ns", "Launch not recorded", "idle", "x"),
    Series("edge_ns", "No work due", "idle", "."),
)


def _kind_of_work(label: str) -> Series:
    first, *others = label.split(" + ")
    pattern = ("", "/", "x")[len(others)]
    return Series(label, label.capitalize(), first, pattern, others[0] if others else "")


TIME = (
    Analysis(
        kind="temporal_breakdown",
        label="Time split",
        group="Time",
        title="Where the time of each device goes",
        function=temporal.temporal_breakdown,
        sentence=temporal.sentence,
        chart=Stack(
            (
                Series("compute_ns", "Compute", "compute"),
                Series("exposed_communication_ns", "Exposed communication", "communication"),
                Series("exposed_memory_ns", "Exposed memory", "memory"),
                Series("idle_ns", "Idle", "idle"),
            ),
            "window_ns",
        ),
        requires=_DEVICE,
        options=(_BY,),
    ),
    Analysis(
        kind="comm_comp_overlap",
        label="Overlap",
        group="Time",
        title="How much communication hides behind compute",
        function=overlap.comm_comp_overlap,
        sentence=overlap.sentence,
        chart=Stack(
            (
                Series("overlapped_ns", "Hidden behind compute", "compute"),
                Series("exposed_ns", "Exposed", "communication"),
            ),
            "communication_ns",
        ),
        requires=_DEVICE,
    ),
    Analysis(
        kind="idle_breakdown",
        label="Idle",
        group="Time",
        title="Why each device is idle",
        function=idle.idle_breakdown,
        sentence=idle.sentence,
        chart=Stack(IDLE_CAUSES, "idle_ns"),
        requires=_DEVICE,
        options=(_BY,),
    ),
    Analysis(
        kind="idle_gaps",
        label="Idle gaps",
        group="Time",
        title="Which gaps each device waits in",
        function=gaps.idle_gaps,
        sentence=gaps.sentence,
        chart=Bars("dur_ns", ("rank", "name"), "cause", window=("start_ns", "end_ns")),
        requires=_DEVICE,
    ),
    Analysis(
        kind="stream_idle_breakdown",
        label="Stream idle",
        group="Time",
        title="What each stream waits for between its kernels",
        function=streams.stream_idle_breakdown,
        sentence=streams.sentence,
        chart=Stack(
            (
                Series("host_wait", "Host wait", "host"),
                Series("kernel_wait", "Kernel wait", "idle"),
                Series("other", "Other", "idle", "/"),
            ),
            "waiting_ns",
            ("rank", "device", "stream"),
            part="category",
            value="idle_ns",
        ),
        requires=("device events on streams",),
    ),
)

KERNELS = (
    Analysis(
        kind="kernel_type_breakdown",
        label="Kernel types",
        group="Kernels",
        title="What runs on each device, alone and at once",
        function=kernel_types.kernel_type_breakdown,
        sentence=kernel_types.sentence,
        chart=Stack(
            tuple(_kind_of_work(label) for label in kernel_types.LABELS),
            "window_ns",
            part="kernel_type",
            value="dur_ns",
        ),
        requires=_DEVICE,
        options=(_BY,),
    ),
    Analysis(
        kind="kernel_breakdown",
        label="Kernels",
        group="Kernels",
        title="Which kernels take most device time",
        function=kernels.kernel_breakdown,
        sentence=kernels.sentence,
        chart=Bars("sum_ns", ("name",), "event_class", names="name"),
        requires=_DEVICE,
    ),
    Analysis(
        kind="kernel_durations",
        label="Kernel durations",
        group="Kernels",
        title="How evenly kernels run on the ranks",
        function=kernel_durations,
        sentence=durations_in_words,
        chart=Spread("name", "min_ns", "mean_ns", "max_ns", "sum_ns", "event_class"),
        requires=_DEVICE,
        own=("ranks",),
    ),
    Analysis(
        kind="op_kernels",
        label="Operators",
        group="Kernels",
        title="Which operators keep the device busy",
        function=op_kernels,
        sentence=operators_in_words,
        chart=Bars("device_ns", ("op",), "compute", names="op"),
        requires=("launch calls of device events",),
    ),
    Analysis(
        kind="kernel_sequences",
        label="Sequences",
        group="Kernels",
        title="Which kernels an operator launches in a row",
        function=frequent_sequences,
        sentence=sequences.sentence,
        chart=Bars("device_ns", ("pattern",), "compute", names="operator"),
        requires=("device events linked to their launches",),
        options=(Option("operator", "Operator", hint="the operator with most device time"),),
    ),
    Analysis(
        kind="cupti_counters",
        label="Counters",
        group="Kernels",
        title="How many floating-point operations each operator takes",
        function=cupti.cupti_counters,
        sentence=cupti.sentence,
        chart=Bars("flops", ("top_level_op",), "compute", names="name"),
        requires=("CUPTI counter ranges",),
    ),
)
