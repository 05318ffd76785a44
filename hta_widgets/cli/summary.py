"""`hta-widgets summary`: what the job is, where its time goes, and what to look at first."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from hta_widgets.analysis.evidence.budget import dumped
from hta_widgets.analysis.findings import CHECKED, HEADINGS, MEMORY, OPEN, judged_scope
from hta_widgets.analysis.findings.recording_rules import recording_verdict
from hta_widgets.analysis.findings.withheld import WithheldError, withheld
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.analysis.wholes import coverage_of, whole_of
from hta_widgets.charts.spec import Stack
from hta_widgets.cli.ask import ask
from hta_widgets.cli.document import frame_as_dict, missing_as_dict, plain, scope_as_dict
from hta_widgets.cli.exits import Exit
from hta_widgets.cli.health import finding_lines, in_words
from hta_widgets.cli.opening import open_trace, scope_of
from hta_widgets.cli.output import check_writable, text_form_of, write_lines
from hta_widgets.cli.table import frame_lines
from hta_widgets.cli.terminal import aligned, cells_of, hanging, heading, pieces_of, printable
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import duration, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.records.vetoes import Claim as VetoedClaim
from hta_widgets.trace.scope import Scope

_MOST_RANKS = 32
_MOST_KERNELS = 10

# What records may not support of an answer; see `findings.withheld`.
_CLAIMS: dict[str, VetoedClaim] = {
    "temporal_breakdown": "efficiency",
    "comm_comp_overlap": "efficiency",
    "idle_breakdown": "idle_causes",
    "stragglers": "ranks",
    "kernel_breakdown": "efficiency",
}
# The analyses of the summary, in the order of their sentences.
_QUESTIONS: dict[str, dict[str, Any]] = {
    "overview": {},
    "temporal_breakdown": {},
    "comm_comp_overlap": {},
    "idle_breakdown": {},
    "stragglers": {},
    "kernel_breakdown": {"by": "job", "top": _MOST_KERNELS},
}

_HEADINGS = {
    "window_ns": "time_ns",
    "compute_pct": "compute_pct",
    "exposed_communication_pct": "comm_pct",
    "exposed_memory_pct": "mem_pct",
    "idle_pct": "idle_pct",
}


class Answer(NamedTuple):
    """A frame, and what it says."""

    frame: pd.DataFrame
    sentence: str


Answers = Mapping[str, Answer | MissingDataError]


def run(arguments: Namespace) -> Exit:
    """Run the command."""
    check_writable(arguments.output)
    form = text_form_of(arguments.json, arguments.output)
    trace = open_trace(arguments)
    scope = scope_of(arguments, trace)
    # the same steps for all numbers of the page: those that its first sentences judge
    judged = scope if recording_verdict(trace, scope) else judged_scope(trace, scope)
    answers = {kind: _answer(trace, kind, scope if kind == "overview" else judged) for kind in _QUESTIONS}
    covered = coverage_of(trace, scope)
    if form == "json":
        write_lines(arguments.output, [dumped(_document(trace, covered, judged, answers))])
    else:
        write_lines(arguments.output, _lines(trace, covered, judged, answers, arguments))
    return Exit.FINE


def _answer(trace: Trace, kind: str, scope: Scope) -> Answer | MissingDataError:
    try:
        if kind in _CLAIMS and (why := withheld(trace, scope, _CLAIMS[kind])) is not None:
            return why
        frame = ask(ANALYSES[kind], trace, scope, _QUESTIONS[kind])
        return Answer(frame, ANALYSES[kind].said(frame, trace, scope))
    except MissingDataError as missing:
        return missing


def _document(trace: Trace, covered: str, scope: Scope, answers: Answers) -> dict[str, Any]:
    return {
        "kind": "summary",
        "scope": scope_as_dict(scope),
        "of": whole_of(trace, "temporal_breakdown", scope),
        "judged": covered,
        "trust": trace.trust.as_dict(),
        "job": plain(
            {
                **trace.summary,
                "ranks": trace.ranks,
                "iterations": sorted(set(trace.iterations["iteration"].tolist())),
                "failed": {name: str(error) for name, error in trace.failed.items()},
                "file_notes": trace.file_notes,
            }
        ),
        "files": frame_as_dict(trace.files),
        "answers": {kind: _answer_as_dict(kind, answer) for kind, answer in answers.items()},
        "health": frame_as_dict(trace.health),
    }


def _answer_as_dict(kind: str, answer: Answer | MissingDataError) -> dict[str, Any]:
    if isinstance(answer, MissingDataError):
        return missing_as_dict(answer)
    head = {"options": _QUESTIONS[kind], "sentence": answer.sentence}
    return {**head, **frame_as_dict(answer.frame)}


def _lines(
    trace: Trace, covered: str, judged: Scope, answers: Answers, arguments: Namespace
) -> Iterator[str]:
    output: str = arguments.output
    cells = cells_of(output)
    yield from _job(trace, covered, arguments.paths, output)
    yield from _findings(answers["overview"], output, cells)
    texts: dict[str, None] = {}  # in order, each once: a trace without device work lacks the same for all
    found = answers["overview"]
    unknown = ""
    if isinstance(found, Answer):
        unknown = " ".join(found.frame["text"][found.frame["severity"] == OPEN])
    for kind, answer in answers.items():
        if kind == "overview" or trace.several_jobs:  # nothing is said of unrelated jobs together
            continue
        if isinstance(answer, MissingDataError):
            if answer.field in unknown or isinstance(answer, WithheldError):  # the findings say so already
                continue
            texts[f"No answer: {answer}"] = None
        else:
            texts[answer.sentence] = None
    yield ""
    if texts:
        yield heading(_of_what(trace, judged), output)
    for text in texts:
        yield from hanging("  - ", text, cells)
    by_rank = _by_rank(answers)
    if by_rank is not None:
        note = "comm, mem: exposed, not hidden behind compute"
        yield from ("", f"{heading('Ranks', output)}  ({note})")
        yield from frame_lines(by_rank, _MOST_RANKS, cells)
    kernels = answers["kernel_breakdown"]
    if isinstance(kernels, Answer) and len(kernels.frame) and not trace.several_jobs:
        yield from ("", heading("Kernels", output))
        most = kernels.frame.head(_MOST_KERNELS)[["sum_ns", "pct", "count", "mean_ns", "name"]]
        yield from frame_lines(most, _MOST_KERNELS, cells)
    yield from _health(trace, output)


def _findings(found: Answer | MissingDataError, output: str, cells: int | None) -> Iterator[str]:
    """The findings of the explorer's overview: the share of the time, what it is, and what to try."""
    if isinstance(found, MissingDataError):
        return
    yield ""
    for piece in pieces_of(printable(found.sentence), cells):
        yield heading(piece, output)
    section = ""
    for finding in found.frame.to_dict("records"):
        if finding["section"] != section and finding["section"] in HEADINGS:
            yield f"  {HEADINGS[finding['section']]}:"
        section = finding["section"]
        unknown = {OPEN: "?", CHECKED: "-"}.get(
            finding["severity"], "-" if finding["section"] == MEMORY else ""
        )
        timed = finding["kind"] and finding["section"] != MEMORY
        share = percent(finding["share_pct"]) if timed else unknown
        text = " ".join(filter(None, (finding["text"], finding["saving"], finding["suggestion"])))
        part = "part: " if finding["part_of"] else ""
        yield from hanging(f"  {share:>7}  ", f"{part}{text}", cells)


def _of_what(trace: Trace, judged: Scope) -> str:
    """What the numbers below are of."""
    if judged.iterations is None:
        return "Over all recorded device work" if judged.window_ns is None else "Within the time window"
    steps = trace.iterations
    chosen = steps[steps["iteration"].isin(judged.iterations)]
    median = duration((chosen["end_ns"] - chosen["start_ns"]).median())
    count = len(judged.iterations)
    return f"Over {count:,} {'step' if count == 1 else 'steps'} of {median}{' at the median' * (count > 1)}"


def _job(trace: Trace, covered: str, paths: list[str], output: str) -> Iterator[str]:
    from hta_widgets.widgets.job_header import header_fields  # the explorer's header; takes time to import

    name = _called(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
    job, *fields = header_fields(trace, name)
    yield heading(printable(job["value"]), output)
    for note in trace.file_notes:
        yield from hanging("  ! ", note, cells_of(output))
    rows = [[field["label"], field["value"]] for field in fields]
    rows += [["Judged", covered]] * bool(covered)
    rows.append(["Trust", trace.trust.text])
    yield from aligned([[f"  {label}", printable(value)] for label, value in rows], [False, False])


def _called(path: str) -> str:
    return "standard input" if path == "-" else Path(path).resolve().name


def _by_rank(answers: Answers) -> pd.DataFrame | None:
    """Per rank: where its time goes, why it idles, how much communication hides, how long others wait.

    The headings are short: a terminal of 80 columns should hold the table.
    """
    time, idle = answers["temporal_breakdown"], answers["idle_breakdown"]
    if isinstance(time, MissingDataError) or time.frame.empty:
        return None
    frame = time.frame.set_index("rank")[list(_HEADINGS)].rename(columns=_HEADINGS)
    overlap, late = answers["comm_comp_overlap"], answers["stragglers"]
    if isinstance(idle, Answer):
        frame = frame.join(_main_causes(idle.frame))
    if isinstance(overlap, Answer):
        frame = frame.join(overlap.frame.set_index("rank")["overlap_pct"])
    if isinstance(late, Answer):
        frame = frame.join(late.frame.groupby("rank")["blamed_ns"].sum())
    return frame.reset_index()


def _main_causes(idle: pd.DataFrame) -> pd.Series:
    chart = ANALYSES["idle_breakdown"].chart
    labels = {series.column: series.label for series in chart.series} if isinstance(chart, Stack) else {}
    by_cause = idle.set_index("rank")[list(labels)]
    causes = by_cause.idxmax(axis=1).map(labels)
    return causes.where(by_cause.sum(axis=1) > 0, "").rename("idle cause")


def _health(trace: Trace, output: str) -> Iterator[str]:
    from hta_widgets.widgets.job_header import health_rows

    yield from ("", f"{heading('Health', output)}: {in_words(trace)}")
    yield from finding_lines([row for row in health_rows(trace) if row["severity"] != "info"], output)
