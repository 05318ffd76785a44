"""HTA's defects that no change to a trace can show: put into our own code while it answers again.

Each is about one rule alone, and everything else is ours. `defects.py` holds those that a document shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from hta_widgets.analysis.calls import op_counts
from hta_widgets.hta import trace_diff
from hta_widgets.hta.analyzers.critical_path import build, device_edges, nodes
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.reader.schema import NULL
from tests.parity.hta_defects import QUEUED_CALLS

# What HTA takes for runtime calls (TraceSymbolTable.get_operator_or_cuda_runtime_mask).
RUNTIMES = {"cuda_runtime", "cuda_driver"}


@contextmanager
def hip_calls_do_not_wait() -> Iterator[None]:
    """Only names of CUDA's blocking calls are known, so waiting in those of HIP is work of the host."""
    known = frozenset(name for name in nodes.BLOCKING if name.startswith("cuda"))
    with mock.patch.object(nodes, "BLOCKING", known):
        yield


@contextmanager
def calls_of_other_runtimes_have_no_nodes() -> Iterator[None]:
    """The graph knows the runtime's calls by two categories of CUDA's."""
    number = build.number_nodes

    def faulty(clip: Any, loads: Any) -> Any:
        rank_trace = clip.rank_trace
        other = np.array([name not in RUNTIMES for name in rank_trace.categories], np.bool_)
        unknown = other[rank_trace.category] & (rank_trace.event_class == EventClass.RUNTIME)
        return number(replace(clip, host=clip.host[~unknown[clip.host]]), loads)

    with mock.patch.object(build, "number_nodes", faulty):
        yield


@contextmanager
def other_calls_are_not_queued() -> Iterator[None]:
    """The queue knows twelve names of calls: work that others launched is not queued and has no delay."""
    onto_idle: Any = device_edges.launched_onto_idle

    def faulty(rank_trace: Any) -> Any:
        known = np.array([name in QUEUED_CALLS for name in rank_trace.names], np.bool_)[rank_trace.name]
        launch = np.where((rank_trace.launch >= 0) & known[rank_trace.launch], rank_trace.launch, -1)
        job = {name: getattr(rank_trace, name) for name in ("n", "device", "stream", "start")}
        launched = np.flatnonzero(rank_trace.is_device & (launch >= 0))
        return onto_idle.__wrapped__(SimpleNamespace(**job, launch=launch, launched=launched))

    with mock.patch.object(device_edges, "launched_onto_idle", faulty):
        yield


@contextmanager
def annotations_without_a_stream_are_host_calls() -> Iterator[None]:
    """Whatever carries no stream counts as a call of the host, the device's copies of annotations too."""
    is_counted: Any = op_counts.is_counted

    def faulty(any: Any, rows: Any, device: str, launched: bool = False, waiting: bool = False) -> Any:
        copies = np.array([name == "gpu_user_annotation" for name in any.categories], np.bool_)
        taken = copies[any.category[rows]] & (any.argument("stream")[rows] == NULL) & (device != "gpu")
        return is_counted(any, rows, device, launched, waiting) | taken

    with (
        mock.patch.object(trace_diff, "is_counted", faulty),
        mock.patch.object(op_counts, "is_counted", faulty),
    ):
        yield


PATCHES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    function.__name__: function
    for function in (
        hip_calls_do_not_wait,
        calls_of_other_runtimes_have_no_nodes,
        other_calls_are_not_queued,
        annotations_without_a_stream_are_host_calls,
    )
}
