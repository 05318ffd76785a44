"""The health table: what is wrong, missing or doubtful in a trace, how often, and what to do about it.

The library never repairs silently: whatever it dropped, estimated or assumed is listed here.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from hta_widgets.formatting import brief, duration, encodable, in_words, percent
from hta_widgets.trace.class_rules import function_pattern
from hta_widgets.trace.classify import UNKNOWN, EventClass, category_of, own_name
from hta_widgets.trace.health_finding import Finding
from hta_widgets.trace.health_of_records import record_findings
from hta_widgets.trace.rank_trace import RankTrace

COLUMNS = {
    "rank": "Int64",
    "severity": "str",
    "check": "str",
    "count": "int64",
    "detail": "str",
    "remedy": "str",
    "name": "str",
}

_REMEDIES = {
    "truncated": "the recording was cut while being written: export it again",
    "unfinished": "events that were open when the recording ended",
    "repeated": "export it again, or open its parts instead of the merged file",
    "negative_duration": "a bug of the profiler's clock conversion: update PyTorch",
    "absurd_duration": "corrupt device records: update CUPTI or ROCm",
}
# Options of torch.profiler.profile, the column that shows that one was on, and what is missing without it.
_OPTIONS = (
    ("record_shapes", "input_dims", "no input shapes"),
    ("with_stack", "python_id", "no Python stacks"),
    ("profile_memory", "total_allocated_bytes", "no memory timeline"),
)
__all__ = [
    "COLUMNS",
    "Finding",
    "findings_in",
    "health_frame",
    "rank_findings",
]

_LISTED = 8
_SUSPECTS_SHOWN = 5  # per rank; `suspects` has all
_SEVERITIES = {"error": 0, "warning": 1, "info": 2}


def health_frame(findings: Iterable[Finding]) -> pd.DataFrame:
    """The findings as a frame, most severe first; columns as in `COLUMNS`, a null rank means the job."""
    ordered = sorted(findings, key=lambda finding: _SEVERITIES.get(finding.severity, 3))
    rows = [
        {name: encodable(value) if isinstance(value, str) else value for name, value in vars(finding).items()}
        for finding in ordered
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def findings_in(frame: pd.DataFrame) -> list[Finding]:
    """The findings of a frame, in its order."""
    rows = zip(*(frame[name].tolist() for name in COLUMNS), strict=True)
    return [Finding(None if pd.isna(rank) else rank, *about) for rank, *about in rows]


def rank_findings(trace: RankTrace, job_size: int) -> list[Finding]:
    """The findings about one rank's file, in a job of `job_size` ranks."""
    return [
        *_scanned(trace),
        *_filtered(trace),
        *record_findings(trace),
        *_classes(trace),
        *_communication(trace, job_size),
        *_steps(trace),
        *_options(trace),
    ]


def _scanned(trace: RankTrace) -> list[Finding]:
    return [
        Finding(
            trace.rank,
            problem.severity,
            problem.check,
            problem.count,
            problem.detail
            if problem.offset is None
            else f"{problem.detail} (first at byte {problem.offset:,})",
            _REMEDIES.get(problem.check, ""),
        )
        for problem in (*trace.table.problems, *trace.slices.problems)
    ]


def _filtered(trace: RankTrace) -> list[Finding]:
    recording = trace.recording
    if not recording.filtered:
        return []
    detail = (
        f"events were removed from the file: it holds {percent(recording.kept_pct)} of the operators that ran"
    )
    remedy = "open the file as the profiler wrote it: gaps between what is left are no idle time"
    return [Finding(trace.rank, "warning", "filtered", recording.operators, detail, remedy)]


def _classes(trace: RankTrace) -> list[Finding]:
    findings = []
    doubtful = trace.unclassified & trace.is_device
    if doubtful.any():
        total = int(trace.dur[trace.is_device].sum()) or 1
        examples = sorted({trace.names[code] for code in np.unique(trace.name[doubtful]).tolist()})[:3]
        share = percent(100.0 * int(trace.dur[doubtful].sum()) / total)
        detail = f"{share} of device time counted as compute without a rule: {', '.join(examples)}"
        findings.append(
            Finding(
                trace.rank,
                "warning",
                "unclassified",
                int(doubtful.sum()),
                detail,
                "classify.register(pattern, event_class)",
            )
        )
    unknown = [text for text in trace.categories if text and category_of(text) is UNKNOWN]
    if unknown:
        rows = np.array([text in unknown for text in trace.categories], np.bool_)[trace.category]
        if rows.any():
            detail = (
                f"events of categories not known here, counted as other: {', '.join(sorted(unknown)[:5])}"
            )
            findings.append(Finding(trace.rank, "info", "unknown_category", int(rows.sum()), detail))
    return findings


def _communication(trace: RankTrace, job_size: int) -> list[Finding]:
    """Work that may be communication, and a rank of a job that seems to exchange nothing."""
    if job_size <= 1 or not trace.is_device.any():
        return []

    from hta_widgets.trace.suspects import suspects  # whose patterns take 10 ms to compile

    findings = []
    for suspect in suspects(trace, job_size).head(_SUSPECTS_SHOWN).to_dict("records"):
        name = suspect["name"]
        findings.append(
            Finding(
                trace.rank,
                "warning",
                "maybe_communication",
                suspect["count"],
                f"{duration(suspect['dur_ns'])} on stream {suspect['stream']} may be communication: "
                f"{brief(own_name(name))}, {suspect['why']}",
                f"classify.register({function_pattern(name)!r}, 'communication'), "
                "or [[class]] in hta_widgets.toml; "
                "with 'compute' this warning goes",
                name,
            )
        )
    if not (trace.event_class[trace.is_device] == EventClass.COMMUNICATION).any():
        detail = f"no communication in a rank of a job of {job_size:,}: its kernels may have unknown names"
        remedy = "[[class]] in hta_widgets.toml, or classify.register(pattern, 'communication')"
        findings.append(Finding(trace.rank, "warning", "no_communication", 1, detail, remedy))
    return findings


def _steps(trace: RankTrace) -> list[Finding]:
    frame = trace.iterations
    if frame.empty:
        return [Finding(trace.rank, "warning", "empty", 1, "no event with a duration")]
    findings = []
    source = frame["source"].iloc[0]
    if source not in ("ProfilerStep", "serving step"):
        detail = (
            f"no step announced: iterations come from {source} ({frame['confidence'].iloc[0]} confidence)"
        )
        findings.append(
            Finding(
                trace.rank,
                "info",
                "no_steps",
                1,
                detail,
                "call prof.step() after each step, with a profiler schedule",
            )
        )
    if trace.contradicted_iterations:
        numbers = _listed(trace.contradicted_iterations)
        detail = f"iterations most of whose device work runs outside their time: {numbers}"
        remedy = trace.times_steps_better
        count = len(trace.contradicted_iterations)
        findings.append(Finding(trace.rank, "warning", "contradicted_iterations", count, detail, remedy))
    doubtful = {step.iteration for step in trace.doubtful_steps}
    cut = [number for number in frame.loc[frame["partial"], "iteration"].tolist() if number not in doubtful]
    if cut:
        detail = f"iterations cut by the recording: {_listed(cut)}"
        findings.append(Finding(trace.rank, "info", "partial_iterations", len(cut), detail))
    return findings


def _listed(numbers: list[int]) -> str:
    """`1, 2 and 3`; of many, how many more there are."""
    more = len(numbers) - _LISTED
    return in_words([*map(str, numbers[:_LISTED]), *([f"{more:,} more"] if more > 0 else [])])


def _options(trace: RankTrace) -> list[Finding]:
    """Options that were off. PyTorch writes only those that were on, so the data is checked, too."""
    if "schemaVersion" not in trace.metadata:
        return []  # not written by the profiler itself: its options are unknown
    return [
        Finding(trace.rank, "info", f"{option}_off", 1, missing, f"profile({option}=True)")
        for option, column, missing in _OPTIONS
        if not trace.metadata.get(option) and not trace.table.has(column)
    ]
