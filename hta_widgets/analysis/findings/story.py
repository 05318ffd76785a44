"""The story of a job: one headline, one bar, and advice, all of the same time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any
from weakref import ref

import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.bar import Part, Whole, bar, is_large, saved_in, whole_of_step
from hta_widgets.analysis.findings.headline import (
    Headline,
    apart_from_work,
    idle_unknown,
    is_known,
    lack,
    without_time,
    work_of,
)
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.rules import BY_TOPIC, beside, mistakes
from hta_widgets.analysis.findings.sections import (
    CHECKED,
    LATER,
    MEMORY,
    OPEN,
    RECORDING,
    SAVES,
    UNKNOWN,
)
from hta_widgets.analysis.findings.story_advice import Advice, advice_of, sentences_of
from hta_widgets.analysis.findings.withheld import all_withheld
from hta_widgets.charts.spec import Bars
from hta_widgets.formatting import (
    capitalised,
    counted,
    decapitalised,
    duration,
    encodable,
    in_words,
    percent,
    ranks_in_words,
)
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.trace.trust import forbidden


@dataclass(frozen=True)
class Check:
    """What could not be judged: the reason, and what to record."""

    name: str
    remedy: str


@dataclass(frozen=True)
class Story:
    """What a job's time goes to and what can be saved of it.

    Attributes:
        scope: what all numbers are of. narrowed: it is not the whole job.
        headline, limits: a sentence, and what else there is to know beside it.
        trust: what is withheld since the records do not support it, and why; "" where nothing is.
        whole_ns, per_step: the judged time, and whether it is a step.
        parts: of it, savings first; they add up to it, or there is none where it is unknown.
        saved, remains: what stands under the two ends of the bar.
        advice: the findings, in the order of `overview`.
        clean: what was looked for and not found. unknown: what could not be judged. asides: what costs
            nothing.
        kinds: the analyses that show the findings, the first first.
        nothing, hint, look_at: where nothing is found, why, what to try with the work itself, and the
            analysis that shows it.
    """

    scope: str
    narrowed: bool
    headline: str
    limits: str
    trust: str
    whole_ns: int
    per_step: bool
    parts: list[Part]
    saved: str
    remains: str
    advice: list[Advice]
    clean: list[str]
    unknown: list[Check]
    asides: list[str]
    kinds: list[str]
    nothing: str
    hint: str
    look_at: str

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def story(trace: Trace, scope: Scope | None = None, frame: pd.DataFrame | None = None) -> Story:
    """Where does the time of a job go, how much of it can be saved, and how?

    All numbers are of the mean judged step of the judged ranks. What a change saves is what it saves on top
    of those before it, all replayed together, the repair of late ranks included, so that savings and what is
    left add up to the step.

    Args:
        trace: the job.
        scope: as in `overview`.
        frame: its `overview`, if that is there.
    """
    scope = scope or Scope()
    # with a frame that several show, as panels do, so that each of them has the same story
    return _story(overview(trace, scope) if frame is None else frame, ref(trace), scope)


@memoize_per_rank()
def _story(frame: pd.DataFrame, job: ref[Trace], scope: Scope) -> Story:
    """`job`: weak, as the trace keeps frames, and these their stories."""
    trace = job()
    assert trace is not None
    inputs = Inputs(trace, scope)
    found = frame[(frame["part_of"] == "") & frame["section"].isin((SAVES, UNKNOWN, LATER, MEMORY))]
    found = found[~found["role"].eq("work")]
    aside = found["role"].eq("aside") | (found["share_pct"].eq(0) & found["section"].ne(MEMORY))
    rows = [row for _, row in found[~aside].iterrows()]
    of_recording = frame[frame["section"] == RECORDING]
    apart = of_recording[of_recording["role"] == "aside"]
    whole = None if len(of_recording) > len(apart) else whole_of_step(inputs)
    # what the headline does not say, the bar does not show
    shown = whole if rows or is_known(frame, whole) else None
    parts = bar(trace, scope, shown, rows, frame[frame["part_of"] != ""]) if shown else []
    rows, parts = without_little(whole, rows, parts)
    advice = [advice_of(trace, scope, inputs, frame, whole, parts, at, row) for at, row in enumerate(rows)]
    saved_ns = saved_in(parts)
    line = Headline(scope, inputs, frame, whole, parts, advice) if whole else None
    headline = line.text if line else without_time(frame)
    return Story(
        scope=_scope_line(trace, scope, inputs, whole),
        narrowed=scope != Scope(),
        headline=headline,
        limits=" ".join(filter(None, [*_beside(frame, line), *(line.beneath() if line else ())])),
        trust="" if _instead(frame).any() else _trust(trace, inputs, headline),
        whole_ns=whole.ns if whole else 0,
        per_step=whole.per_step if whole else False,
        parts=parts,
        saved=_saved(whole, parts, saved_ns),
        remains=_remains(whole, saved_ns),
        advice=advice,
        clean=_clean(frame),
        unknown=_unjudged(frame),
        asides=[*apart["text"].map(str), *found.loc[aside, "text"].map(str)],
        kinds=[kind for kind in dict.fromkeys(frame["kind"]) if kind],
        nothing=_nothing(frame, whole),
        hint="" if (work := work_of(frame)) is None else str(work["suggestion"]),
        look_at="kernel_breakdown" if _on_devices(inputs, whole) else "operators",
    )


def _on_devices(inputs: Inputs, whole: Whole | None) -> bool:
    """Whether work of a device is recorded, and not only captured."""
    if whole:
        return "host" not in whole.split
    ranks = [inputs.trace.rank(rank) for rank in inputs.trace.ranks_of(inputs.scope)]
    return any(rank.device_events and rank.recording.kind != "graph capture" for rank in ranks)


def without_little(
    whole: Whole | None, rows: list[pd.Series], parts: list[Part]
) -> tuple[list[pd.Series], list[Part]]:
    """What is found, and the bar, without what can neither be saved nor has much left for it in the bar."""
    little = {
        part.finding for part in parts if part.form in ("unknown", "hidden") and not is_large(part, whole)
    }
    kept = [at for at in range(len(rows)) if at not in little]
    place = {at: new for new, at in enumerate(kept)}
    rest = {part.lost_as: part.ns for part in parts if part.form == "rest"}
    for part in parts:
        if part.finding in little:
            rest[part.lost_as] = rest.get(part.lost_as, 0) + part.ns
    found = [replace(part, finding=place[part.finding]) for part in parts if part.finding in place]
    return [rows[at] for at in kept], [*found, *(Part(ns, "rest", name) for name, ns in rest.items() if ns)]


def _instead(frame: pd.DataFrame) -> pd.Series[bool]:
    """The rows of `overview` that say why nothing of the recording's time is judged."""
    return (frame["section"] == RECORDING) & (frame["role"] == "recording") & ~beside(frame)


def _beside(frame: pd.DataFrame, line: Headline | None) -> Iterator[str]:
    """What is not judged, and what the recording is."""
    apart = frame.loc[apart_from_work(frame), "headline"]
    yield from (f"{said}." for said in apart if line is None or said != line.first)
    yield from frame.loc[beside(frame) & (frame["role"] == "recording"), "text"]
    yield from (sentences_of(text)[0] for text in frame.loc[mistakes(frame), "text"])
    verdict = frame[_instead(frame)]
    yield from (
        capitalised(row["text"].removeprefix(f"{row['title']}: "))
        for _, row in verdict[verdict["text"] != verdict["headline"]].iterrows()
    )


def _trust(trace: Trace, inputs: Inputs, headline: str) -> str:
    """What is withheld from the findings, and why, if the headline does not say it; "" where nothing is."""
    if trace.several_jobs:
        return trace.trust.text
    found = all_withheld(trace, inputs.scope)
    if not found:
        return ""
    reason = decapitalised(next(iter(found.values())).detail)
    why = "" if reason in headline else f": {reason}"
    return f"Limited: {forbidden(found)} are withheld{why}."


def _scope_line(trace: Trace, scope: Scope, inputs: Inputs, whole: Whole | None) -> str:
    judged, ranks = inputs.scope, trace.ranks_of(inputs.scope)
    every = max(trace.job_size or 0, len(trace.ranks))
    if len(ranks) == every:
        who = {1: "1 rank", 2: "both ranks"}.get(every, f"all {every:,} ranks")
    else:
        who = f"{ranks_in_words(ranks)} of {every:,}"
    said = [who]
    steps = judged.iterations or ()
    if inputs.announced and scope.iterations and len(steps) == 1:
        said.append(f"step {steps[0]}")
    elif inputs.announced and steps:
        recorded = trace.iterations.loc[trace.iterations["rank"].isin(ranks), "iteration"].nunique()
        some = not scope.iterations and scope.window_ns is None and len(steps) < recorded
        said.append(f"{len(steps):,} of {recorded:,} steps" if some else counted(len(steps), "step"))
    elif inputs.shared and inputs.shared.step is not None:
        said.append(f"a part of step {inputs.shared.step}")
    else:
        said.append("no complete step" if inputs.announced else "no steps marked")
    if scope.streams:
        word = "streams" if len(scope.streams) > 1 else "stream"
        said.append(f"{word} {in_words([str(stream) for stream in scope.streams])}")
    if scope.window_ns is not None:
        said.append(f"the selected {duration(scope.window_ns[1] - scope.window_ns[0])}")
    if whole:
        said.append(f"{duration(whole.ns)} {'per step' if whole.per_step else 'in all'}")
    if trace.recording:
        said.append(f"recording {encodable(trace.recording)}, one of {len(trace.recordings):,}")
    if trace.failed:
        said.append(f"without {counted(len(trace.failed), 'file')} that could not be read")
    return ", ".join(said)


def _nothing(frame: pd.DataFrame, whole: Whole | None) -> str:
    """Why there may be no finding."""
    if whole is None or not is_known(frame, whole):
        return "Nothing could be judged"
    if idle_unknown(frame, whole):
        return f"Why the {whole.device} is idle is unknown"
    if "host" in whole.split and work_of(frame) is not None:
        return "Operators themselves take the time"
    return "Nothing to save stands out"


def _saved(whole: Whole | None, parts: list[Part], saved_ns: int) -> str:
    if whole is None or not saved_ns:
        return ""
    at_most = " at most" if any(part.form == "bound" and part.ns for part in parts) else ""
    return f"{duration(saved_ns)}{at_most} can be saved ({percent(100.0 * saved_ns / whole.ns)})"


def _remains(whole: Whole | None, saved_ns: int) -> str:
    if whole is None:
        return ""
    what = "remain" if saved_ns else "per step" if whole.per_step else "in all"
    return f"{duration(whole.ns - saved_ns)} {what}"


def _clean(frame: pd.DataFrame) -> list[str]:
    found = frame.loc[frame["severity"] == CHECKED, "checked"]
    topics = " ".join(found).split()
    return [BY_TOPIC[topic].name for topic in topics]


def _unjudged(frame: pd.DataFrame) -> list[Check]:
    """What could not be judged; of a recording that cannot be judged at all, why."""
    if len(missing := frame[frame["severity"] == OPEN]):
        return [Check(capitalised(lack(row)), str(row["suggestion"])) for _, row in missing.iterrows()]
    whole = frame[(frame["section"] == RECORDING) & (frame["role"] == "recording")]
    return [Check(str(row["title"]), str(row["suggestion"])) for _, row in whole.iterrows()]


# the overview as panels and the command line show it: the first screen's headline over its findings
ANALYSIS = Analysis(
    label="Overview",
    group="Time",
    title="What stands out",
    function=overview,
    sentence=lambda frame: str(next(iter(frame["text"]), "Nothing stands out.")),
    chart=None,
    requires=(),
    chart_from="step_times",
    pictured=Bars("share_pct", ("topic",), "host", combine="max", measure="Share of the time"),
    headline=lambda frame, trace, scope: f"{story(trace, scope, frame).headline}.",
)
