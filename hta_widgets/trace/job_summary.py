"""Key figures of a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hta_widgets.trace.rank_events import Header

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace


def summary_of(trace: Trace, headers: Sequence[Header]) -> dict[str, Any]:
    """As `Trace.summary`; `headers` are those of its ranks."""
    distributed = [
        info for header in headers if isinstance(info := header.metadata.get("distributedInfo"), dict)
    ]
    return {
        "job": _first(
            header.metadata.get(key)
            for header in headers
            for key in ("PT_PROFILER_JOB_NAME", "mast_job_name", "tw_job")
        ),
        "world_size": _first(info.get("world_size") for info in distributed),
        "backend": _first(info.get("backend") for info in distributed),
        "hosts": sorted({str(host) for header in headers if (host := header.metadata.get("host_name"))}),
        "devices": {rank: trace.rank(rank).device_name for rank in trace.ranks},
        "ranks": len(trace.ranks),
        "files": [header.path for header in headers],
        "events": sum(trace.rank(rank).n for rank in trace.ranks),
        "duration_ns": trace.extent_ns[1] - trace.extent_ns[0],
    }


def _first(values: Any) -> Any:
    return next((value for value in values if value not in (None, "")), None)
