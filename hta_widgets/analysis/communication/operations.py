"""Which operation a recorded name or a kernel's name stands for."""

from __future__ import annotations

import re
from typing import Final

UNKNOWN: Final = "unknown"
POINT_TO_POINT: Final = frozenset({"send", "recv", "sendrecv"})

# What a name means once case and punctuation are gone; the first that occurs in it wins, so a name that holds
# another one comes before it. Kernels called SendRecv serve send, recv and all-to-all alike.
_KNOWN = (
    ("allreduce", "allreduce"),
    ("allgather", "allgather"),
    ("reducescatter", "reduce_scatter"),
    ("alltoall", "all_to_all"),
    ("all2all", "all_to_all"),
    ("dispatch", "dispatch"),
    ("combine", "combine"),
    ("a2a", "all_to_all"),
    ("broadcast", "broadcast"),
    ("barrier", "barrier"),
    ("sendrecv", "sendrecv"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("crossdevicereduce", "allreduce"),
    ("quickreduce", "allreduce"),
    ("reduce", "reduce"),
    ("send", "send"),
    ("recv", "recv"),
)
_ANONYMOUS = "(anonymous namespace)::"
_ARGUMENTS = re.compile(r"[<(].*", re.DOTALL)


def collective_of(text: str) -> str:
    """The operation that a recorded operation (`_allgather_base`) or a kernel's name stands for.

    "dispatch" sends tokens to the ranks of their experts and "combine" brings the results back (DeepEP and
    its relatives). Words in template arguments and parameters do not count.
    """
    function = _ARGUMENTS.sub("", text.replace(_ANONYMOUS, ""))
    bare = re.sub(r"[^a-z0-9]", "", function.lower())
    return next((word for part, word in _KNOWN if part in bare), UNKNOWN)
