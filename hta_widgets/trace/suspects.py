"""Device work that may be communication although no rule knows its name.

Lists of names always miss one. What gives an exchange away is where it runs and who asked for it: in a job
of several ranks, on a stream of its own, beside compute, under a name, an operator, an annotation or a Python
function that speaks of exchange. It keeps its class; who knows better adds a rule.
"""

import re

import numpy as np
import pandas as pd

from hta_widgets.arrays import Bool, Int64
from hta_widgets.formatting import brief
from hta_widgets.trace.classify import EventClass, own_name
from hta_widgets.trace.ordering import distinct, unique
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

COLUMNS = {"name": "str", "stream": "int64", "count": "int64", "dur_ns": "int64", "why": "str"}
# Made once: most ranks have none, and a job may have a thousand.
_NONE = pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in COLUMNS.items()})

# Words of exchange: in the name of a function, an operator or an annotation; in snake case or in camel case.
_WORDS = re.compile(
    r"(?i:nvshmem|rocshmem|symm_?mem|multimem|rdma|all_?to_?all|all2all|a2a|all_?reduce|all_?gather)"
    r"|(?<![A-Za-z])(?i:dispatch|combine|send|recv|receive|exchange|broadcast|gather|scatter"
    r"|reduce|peer|p2p|ptop)"
    r"|(?<=[a-z0-9])(?:Dispatch|Combine|Send|Recv|Receive|Exchange|Broadcast|Gather|Scatter|Reduce|Peer)"
)
# Python frames are many and dispatch all day long, so only what names a collective or its library counts.
_PYTHON_WORDS = re.compile(
    r"nvshmem|rocshmem|symm_?mem|deep_?ep|all_?to_?all|all2all|all_?reduce|all_?gather|reduce_?scatter"
    r"|torch/distributed/distributed_c10d",
    re.IGNORECASE,
)
# Libraries whose kernels and operators never leave the device, however they are called.
_LOCAL = re.compile(
    r"\b(at|cub|thrust|cutlass|cudnn|cublas\w*|ck|ck_tile|fbgemm_gpu|flash)::"
    r"|^(void )?splitKreduce|^Cijk_|gemm|\btriton_\w*fused|^(aten|autograd|torch::autograd)::|Backward\d*$",
)
# Copies that touch the host move no data between ranks.
_HOST_COPY = re.compile(r"HtoD|DtoH|HtoH|Host|Pageable|Pinned")


def suspects(trace: RankTrace, job_size: int) -> pd.DataFrame:
    """Which device work of a rank may be communication, though it counts as compute or as a copy?

    Args:
        job_size: the number of ranks in the job; a job of one rank has none.

    Returns:
        One row per name and stream, longest first: name, stream, count (events), dur_ns (int64, their summed
        time), why (str, what speaks of exchange).
    """
    rows = _candidates(trace) if job_size > 1 else np.empty(0, np.int64)
    why = _reasons(trace, rows)
    suspected = np.array([bool(text) for text in why], np.bool_)
    rows = rows[suspected]
    if not len(rows):
        return _NONE.copy()
    found = pd.DataFrame(
        {
            "name": pd.Series([trace.names[code] for code in trace.name[rows].tolist()], dtype="str"),
            "stream": trace.stream[rows],
            "count": 1,
            "dur_ns": trace.dur[rows],
            "why": pd.Series([text for text in why if text], dtype="str"),
        }
    )
    summed = found.groupby(["name", "stream"], sort=False, as_index=False).agg(
        {"count": "sum", "dur_ns": "sum", "why": "first"}
    )
    ordered = summed.sort_values(["dur_ns", "name", "stream"], ascending=[False, True, True])
    return ordered.astype(COLUMNS).reset_index(drop=True)


def _candidates(trace: RankTrace) -> Int64:
    """Unruled compute and copies within the device, on streams other than the main one that run beside it."""
    work = np.flatnonzero(trace.is_device & (trace.stream != NULL))
    work = work[np.isin(trace.event_class[work], (EventClass.COMPUTE, EventClass.MEMORY_COPY))]
    devices, device_of = distinct(trace.device[work])
    numbers, stream_of = distinct(trace.stream[work])
    stream_of = device_of * len(numbers) + stream_of
    counts = np.bincount(stream_of, minlength=len(devices) * len(numbers))
    chosen = np.zeros(len(work), np.bool_)
    for device in range(len(devices)):
        here = np.flatnonzero(counts[device * len(numbers) : (device + 1) * len(numbers)])
        here += device * len(numbers)
        main = here[counts[here].argmax()]  # by number: one exchange can take longer than all compute
        compute = work[(stream_of == main) & (trace.event_class[work] == EventClass.COMPUTE)]
        for other in here[here != main].tolist():
            rows = work[stream_of == other]
            chosen[stream_of == other] = _any_beside(trace, rows, compute)
    work = work[chosen]
    doubtful = [code for code in unique(trace.name[work]).tolist() if _is_doubtful(trace, trace.names[code])]
    return work[np.isin(trace.name[work], doubtful)]


def _any_beside(trace: RankTrace, rows: Int64, compute: Int64) -> bool:
    """Whether some of these rows run at the same time as some compute of one other stream."""
    if not len(compute):
        return False
    compute = compute[np.argsort(trace.start[compute], kind="stable")]
    latest = np.maximum.accumulate(trace.end[compute])
    before = np.searchsorted(trace.start[compute], trace.end[rows], side="left") - 1
    return bool(((before >= 0) & (latest[np.maximum(before, 0)] > trace.start[rows])).any())


def _is_doubtful(trace: RankTrace, name: str) -> bool:
    """Whether neither the user nor the library's name tells that this work stays on the device."""
    if any(rule.pattern.search(name) for rule in trace.rules):
        return False
    return not _LOCAL.search(own_name(name)) and not (name.startswith("Memcpy") and _HOST_COPY.search(name))


def _reasons(trace: RankTrace, rows: Int64) -> list[str]:
    """What speaks of exchange for each row, the nearest evidence first; "" for nothing."""
    by_name = {
        code: _word_in(trace.names[code], EventClass.COMPUTE) for code in unique(trace.name[rows]).tolist()
    }
    reasons = [by_name[code] and f"its name says {by_name[code]!r}" for code in trace.name[rows].tolist()]
    open_rows = np.array([at for at, reason in enumerate(reasons) if not reason], np.int64)
    if not len(open_rows):
        return reasons
    caller = trace.issuer[rows[open_rows]].astype(np.int64)
    telling = _telling(trace)
    while len(open_rows := open_rows[caller >= 0]):
        caller = caller[caller >= 0]
        for at, row in zip(
            open_rows[telling[caller]].tolist(), caller[telling[caller]].tolist(), strict=True
        ):
            reasons[at] = f"called by {brief(trace.names[trace.name[row]])!r}"
        open_rows, caller = (
            open_rows[~telling[caller]],
            trace.parent[caller[~telling[caller]]].astype(np.int64),
        )
    _look_at_annotations(trace, rows, reasons, telling)
    return reasons


def _telling(trace: RankTrace) -> Bool:
    """Host rows whose name speaks of exchange."""
    words = np.zeros((len(EventClass), len(trace.names)), np.bool_)
    for kind in (EventClass.HOST_OP, EventClass.PYTHON, EventClass.ANNOTATION):
        for code in unique(trace.name[trace.event_class == kind]).tolist():
            words[kind, code] = bool(_word_in(trace.names[code], kind))
    return words[trace.event_class, trace.name]


def _look_at_annotations(trace: RankTrace, rows: Int64, reasons: list[str], telling: Bool) -> None:
    """Fill in the annotation that was open on the launching thread, where nothing else spoke."""
    at = np.array([place for place, reason in enumerate(reasons) if not reason], np.int64)
    at = at[trace.launch[rows[at]] >= 0] if len(at) else at
    notes = np.flatnonzero((trace.event_class == EventClass.ANNOTATION) & telling) if len(at) else at
    if not len(notes):
        return
    at = at[np.argsort(trace.start[trace.issuer[rows[at]]], kind="stable")]
    call = trace.issuer[rows[at]]
    first = np.searchsorted(trace.start[call], trace.start[notes], side="left")
    last = np.searchsorted(trace.start[call], trace.end[notes], side="left")
    for order in np.argsort(-trace.dur[notes], kind="stable").tolist():  # the innermost speaks last
        note, within = notes[order], slice(first[order], last[order])
        same = (trace.pid[call[within]] == trace.pid[note]) & (trace.tid[call[within]] == trace.tid[note])
        for place in at[within][same].tolist():
            reasons[place] = f"within {brief(trace.names[trace.name[note]])!r}"


def _word_in(name: str, kind: EventClass) -> str:
    """The word of exchange in a name, "" for none."""
    if kind == EventClass.PYTHON:
        found = _PYTHON_WORDS.search(name)
    else:
        text = own_name(name) if kind == EventClass.COMPUTE else name
        found = None if _LOCAL.search(text) else _WORDS.search(text)
    return found[0] if found else ""
