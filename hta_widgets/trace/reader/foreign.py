"""Files of other kinds that lie where traces do: what each is, by its content, and what to do with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

HEAD_BYTES: Final = 1 << 16
"""How much of a file tells what it is."""

_RECORD = "record with torch.profiler.profile(...) and export_chrome_trace('trace.json')"
_TAR_MAGIC, _TAR_AT = b"ustar", 257


@dataclass(frozen=True)
class Foreign:
    """What a file is if it is no trace, and what to do; `known` unless that is only what it is not."""

    what: str
    remedy: str
    known: bool = True

    def __str__(self) -> str:
        return f"{self.what}: {self.remedy}" if self.remedy else self.what


_PACKED: Final = {
    b"PK\x03\x04": "a zip archive",
    b"\x28\xb5\x2f\xfd": "zstd-compressed",
    b"BZh": "bzip2-compressed",
    b"\xfd7zXZ": "xz-compressed",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"\x04\x22\x4d\x18": "lz4-compressed",
}
_PICKLES: Final = (
    (
        (b"device_traces", b"segments"),
        Foreign(
            "a memory snapshot of PyTorch (pickle)",
            "open it with hta-widgets memory, or MemorySnapshot.open",
        ),
    ),
    (
        (b"nccl_version", b"pg_status", b"entries"),
        Foreign("a dump of PyTorch's flight recorder (pickle)", "analyse it with torchfrtrace"),
    ),
)
_DATABASES: Final = (
    (b"CUPTI_ACTIVITY", Foreign("a database of Nsight Systems (SQLite)", _RECORD)),
    (b"rocpd", Foreign("a database of rocprofv3 (SQLite)", _RECORD)),
    (b"CANN_API", Foreign("a database of the Ascend profiler (SQLite)", "open its trace_view.json")),
)
EXECUTION_TRACE: Final = Foreign(
    "a PyTorch execution trace, which has no times", "open the profiler's trace that was recorded with it"
)
# of the beginning of a JSON object; compiled when one is looked at, which few are
_OBJECTS: Final = (
    (
        rb'"schema"\s*:\s*"[^"]*"[\s\S]*"nodes"|"nodes"\s*:\s*\[[\s\S]*"ctrl_deps?"',
        EXECUTION_TRACE,
    ),
    (rb'"rocprofiler-sdk-tool"', Foreign("results of rocprofv3 (JSON)", _RECORD)),
    (
        rb'"device_traces"|"segments"\s*:\s*\[',
        Foreign(
            "a memory snapshot of PyTorch (JSON)",
            "save a pickle: torch.cuda.memory._dump_snapshot('snapshot.pickle')",
        ),
    ),
    (
        rb'"pg_config"[\s\S]*"entries"|"entries"[\s\S]*"pg_config"|"nccl_version"[\s\S]*"entries"',
        Foreign("a dump of PyTorch's flight recorder (JSON)", "analyse it with torchfrtrace"),
    ),
    (rb"speedscope\.app", Foreign("a profile of speedscope", _RECORD)),
)
_TIMELINE: Final = rb"\[\s*\[\s*-?\d+\s*,\s*-?\d"


def packed(head: bytes) -> Foreign | None:
    """What kind of archive the first bytes are of; None if of none that this library does not unpack."""
    for magic, what in _PACKED.items():
        if head.startswith(magic):
            return Foreign(what, "unpack it first")
    if head[_TAR_AT : _TAR_AT + len(_TAR_MAGIC)] == _TAR_MAGIC:
        return Foreign("a tar archive", "unpack it first")
    return None


def foreign(head: bytes, name: str) -> Foreign | None:
    """What a file is whose text does not begin like JSON; None if that is not known.

    Args:
        head: its first `HEAD_BYTES`, unpacked.
        name: which decides only where many kinds begin alike.
    """
    if found := packed(head):
        return found
    if head.startswith(b"SQLite format 3\0"):
        for table, kind in _DATABASES:
            if table in head:
                return kind
        return Foreign("a SQLite database", _RECORD)
    if head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05":
        for words, kind in _PICKLES:
            if all(word in head for word in words):
                return kind
        return Foreign("a pickle of Python, which this library never opens", "")
    if name.endswith((".nsys-rep", ".qdrep", ".qdstrm")):
        return Foreign("a report of Nsight Systems", _RECORD)
    if name.endswith((".ncu-rep", ".ncu-repz")):
        return Foreign("a report of Nsight Compute", _RECORD)
    return _protobuf(head, name)


def _protobuf(head: bytes, name: str) -> Foreign | None:
    if b"/device:" in head or b"/host:" in head or name.endswith(".xplane.pb"):
        return Foreign("an XPlane profile of XProf (JAX, TPU)", "open it with XProf")
    if re.match(rb"[\x01-\x7f]\n[\x01-\x20]\d+\.\d+\.\d+", head) or name.endswith(".et"):
        return Foreign("a Chakra execution trace (protobuf)", EXECUTION_TRACE.remedy)
    if re.match(rb"\n\x04\x08.\x10", head, re.DOTALL):
        return Foreign("a profile of pprof (protobuf)", _RECORD)
    if name.endswith((".pftrace", ".perfetto-trace")):
        return Foreign("no Perfetto trace, though it is named like one", "export it again")
    return None


def foreign_json(head: bytes) -> Foreign:
    """What JSON is that holds no events.

    Args:
        head: its first `HEAD_BYTES`.
    """
    if re.match(_TIMELINE, head.lstrip()):
        return Foreign("a memory timeline, not a trace", "analysis.memory_categories reads it")
    for pattern, kind in _OBJECTS:
        if re.search(pattern, head):
            return kind
    return Foreign("no traceEvents array: JSON, but not a trace", "", known=False)
