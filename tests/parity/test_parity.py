"""HTA and we are asked the same; what differs must be a deviation that docs/differences.md explains.

Every question goes to HTA itself (`observe.py` in its own environment) and to us, about shared traces: all of
them under `make parity`, else a part (`sample.py`).
On whole timestamps, recorded so or copied so (`variants.py`), all cells must be equal. Where HTA rounds they
may differ by what its rounding moves (`rounding.py`). Everything else needs an entry in `deviations.py`, and
an entry that explains nothing fails.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hta_widgets.errors import NoSuchStepError
from tests.parity import compare, observe, rounding, variants
from tests.parity.cases import CASES, FRACTIONAL, MEMORY_TIMELINE, PAIRS, PLAIN
from tests.parity.compare import Difference
from tests.parity.compared_job import ComparedJob
from tests.parity.deviations import DEVIATIONS, Deviation
from tests.parity.hta_side import Observations
from tests.parity.sample import is_left_out
from tests.support import SHARED_TRACES

EVERY_JOB = [
    *(case.name for case in CASES),
    *(f"{case.name}-whole" for case in CASES if case.name in FRACTIONAL),
    *(f"{case.name}-plain" for case in CASES if case.name in PLAIN),
    *(f"pair-{name}" for name in PAIRS),
    "memory",
]
JOBS = [job for job in EVERY_JOB if not is_left_out(job)]


@pytest.mark.parametrize("job", JOBS)
def test_answers_equal_htas(
    job: str, requests_of: dict[str, dict[str, Any]], observations: Observations, tmp_path: Path
) -> None:
    if job not in requests_of:
        pytest.skip(f"the traces of {job} are not there: set HTA_WIDGETS_TRACES")
    request = requests_of[job]
    ours = observe.observe("hta_widgets.hta", request)
    theirs = observations.answers(job)
    assert ours.keys() == theirs.keys()
    rounded = job in FRACTIONAL
    tolerance = rounding.bound(_device_events(request)) if rounded else compare.exact
    asked = [name for name in ours if not rounded or rounding.is_bounded(name) or "error" in ours[name]]
    compared = partial(_compared, tolerance=tolerance)
    found = [item for name in asked for item in compared(name, theirs[name], ours[name])]
    report = unexplained(job, found, ComparedJob(request, theirs, ours, compared, tmp_path))
    assert not report, "\n".join(report)


def unexplained(job: str, found: list[Difference], answers: ComparedJob) -> list[str]:
    """Differences that no entry covers, and entries that name this job and cover nothing."""
    entries = [deviation for deviation in DEVIATIONS if deviation.names(job)]
    answers.redone = {
        defects: {
            message.question.partition(".")[0]
            for message in found
            if any(entry.defects == defects and entry.could_cover(message) for entry in entries)
        }
        for defects in {entry.defects for entry in entries if entry.defects}
    }
    used: Counter[Deviation] = Counter()
    left = []
    for message in found:
        why = next((entry for entry in entries if entry.covers(message, answers)), None)
        if why is None:
            left.append(message)
        else:
            used[why] += 1
    sampled_out = answers.request.get("sampled_out", ())
    counted = [f"{len(left)} unexplained differences:"] if left else []
    stale = [
        f"{entry.row} for {entry.question} explains nothing"
        for entry in entries
        if not used[entry] and not any(map(entry.is_about, sampled_out))
    ]
    return [*counted, *map(str, left[:60]), *stale]


def _compared(
    question: str, hta: dict[str, Any], ours: dict[str, Any], tolerance: compare.Tolerance
) -> list[Difference]:
    if "error" in hta or "error" in ours:
        if "error" not in ours:
            outcome = "warns" if ours["warned"] else "answers"
        else:
            outcome = (
                ours["error"] if _is_documented(ours) else f"undocumented {ours['error']}: {ours['text']}"
            )
        if hta.get("error") == outcome or _is_caught(hta, ours):
            return []
        return [Difference(question, "error", "", (), hta.get("error"), outcome)]
    return list(compare.differences(question, hta["answer"], ours["answer"], tolerance))


def _is_caught(hta: dict[str, Any], ours: dict[str, Any]) -> bool:
    """What callers of HTA catch catches ours, too, by a class that tells errors apart."""
    if "error" not in ours or not _is_documented(ours):
        return False
    family = ours["family"]
    return hta.get("error") in family[: family.index("Exception")]


def _is_documented(ours: dict[str, Any]) -> bool:
    return "HtaWidgetsError" in ours["family"] or ours["error"] in ("ValueError", "FileExistsError")


def test_only_a_class_that_tells_errors_apart_makes_our_error_htas() -> None:
    def outcome(hta: str, error: Exception) -> list[str]:
        ours = {"error": type(error).__name__, "text": str(error), "family": observe.families(error)}
        return [str(item.ours) for item in _compared("asked", {"error": hta}, ours, compare.exact)]

    assert outcome("ValueError", NoSuchStepError("none")) == []
    for other in ("KeyError", "Exception", "BaseException", "object"):
        assert outcome(other, NoSuchStepError("none")) == ["NoSuchStepError"]
    assert outcome("LookupError", KeyError("raw")) == ["undocumented KeyError: 'raw'"]


def _device_events(request: dict[str, Any]) -> int:
    documents = (variants.load(Path(path)) for path in request["files"].values())
    return sum(event.get("cat") in variants.DEVICE for item in documents for event in item["traceEvents"])


def test_exactly_the_fractional_traces_are_copied() -> None:
    """Else HTA would round on a trace that the table calls whole."""
    for case in CASES:
        paths = [SHARED_TRACES / path for _, path in case.files]
        if all(path.exists() for path in paths):
            whole = all(variants.is_whole(path) for path in paths)
            assert whole == (case.name not in FRACTIONAL), case.name


def test_every_trace_is_compared() -> None:
    """A trace added to the shared folder must be added here."""
    known = {path for case in CASES for _, path in case.files} | {MEMORY_TIMELINE}
    others = {"hta/execution_trace/benchmark_simple_add_et.json.gz"}  # an execution trace, not a Kineto trace
    if not SHARED_TRACES.exists():
        pytest.skip("no shared traces: set HTA_WIDGETS_TRACES")
    there = {
        str(path.relative_to(SHARED_TRACES))
        for path in SHARED_TRACES.rglob("*")
        if path.suffix in (".gz", ".json")
    }
    assert there <= known | others
