"""The story of a job: one headline, one bar, and advice, all of the same time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import pandas as pd

from hta_widgets.analysis.findings.bar import (
    CLASSES,
    SAVINGS,
    Part,
    Whole,
    bar,
    saved_in,
    whole_of_step,
)
from hta_widgets.analysis.findings.compute_verdict import COMPUTE_BOUND_PCT
from hta_widgets.analysis.findings.finding import NOTE_PCT, WARNING_PCT
from hta_widgets.analysis.findings.headline import apart_from_work, sentence
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.rules import BY_TOPIC, beside, is_unjudged, leading, passes
from hta_widgets.analysis.findings.sections import (
    CHECKED,
    LATER,
    MEMORY,
    OPEN,
    RECORDING,
    SAVES,
    UNKNOWN,
    VERDICT,
)
from hta_widgets.analysis.findings.story_advice import Advice, advice_of, claimed
from hta_widgets.analysis.findings.withheld import all_withheld
from hta_widgets.analysis.replay.what_if import LEAST_PCT
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

_NAMELESS: Final = frozenset(rule.cause for rule in BY_TOPIC.values() if rule.no_reason)
"""What is lost for no reason that is recorded, and at no place that says more."""
_NOT_ESTIMATED: Final = ", saving not estimated"
_HARDLY: Final = 100
"""Where less than one in so many of the time is reachable, that is no goal."""
_DOES: Final = {
    "compute": "the {device} computes {pct} of it",
    "communication": "communication takes {pct} of it",
    "memory": "copies take {pct} of it",
    "idle": "the {device} is idle for {pct} of it",
}


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
        nothing, look_at: where nothing is found, why, and the analysis that shows what there is.
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
    frame = overview(trace, scope) if frame is None else frame
    inputs = Inputs(trace, scope)
    found = frame[(frame["part_of"] == "") & frame["section"].isin((SAVES, UNKNOWN, LATER, MEMORY))]
    found = found[~found["role"].eq("work")]
    aside = found["role"].eq("aside") | (found["share_pct"].eq(0) & found["section"].ne(MEMORY))
    rows = [row for _, row in found[~aside].iterrows()]
    of_recording = frame[frame["section"] == RECORDING]
    apart = of_recording[of_recording["role"] == "aside"]
    whole = None if len(of_recording) > len(apart) else whole_of_step(inputs)
    # what the headline does not say, the bar does not show
    shown = whole if rows or _is_known(frame, whole) else None
    parts = bar(trace, scope, shown, rows, frame[frame["part_of"] != ""]) if shown else []
    rows, parts = without_little(whole, rows, parts)
    advice = [advice_of(trace, scope, inputs, frame, whole, parts, at, row) for at, row in enumerate(rows)]
    saved_ns = saved_in(parts)
    first = _most_of_all(inputs, frame, whole)
    headline = _headline(scope, frame, whole, parts, advice, first)
    return Story(
        scope=_scope_line(trace, scope, inputs, whole),
        narrowed=scope != Scope(),
        headline=headline,
        limits=" ".join(filter(None, _beside(scope, frame, whole, parts, advice, first))),
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
        part.finding for part in parts if part.form in ("unknown", "hidden") and not _is_large(part, whole)
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
        who = f"{ranks_in_words(list(ranks))} of {every:,}"
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
        said.append(f"recording {encodable(trace.recording)} of {len(trace.recordings):,}")
    if trace.failed:
        said.append(f"without {counted(len(trace.failed), 'file')} that could not be read")
    return ", ".join(said)


def _headline(
    scope: Scope,
    frame: pd.DataFrame,
    whole: Whole | None,
    parts: list[Part],
    advice: list[Advice],
    first: str,
) -> str:
    """Of a server its time per token, of other jobs what there is to save."""
    if whole is None:
        return sentence(frame[~apart_from_work(frame)]).removesuffix(".")
    rate = frame.loc[leading(frame), "headline"]
    if len(rate) and "host" not in whole.split:
        return str(rate.iloc[0])
    said = _of_whole(frame, whole, parts, advice)
    if first:
        late = frame.loc[_apart_ranks(frame), "headline"].eq(first).any()
        rest = f"the {duration(whole.ns)} that all record" if late else "the rest"
        return f"{first}; of {rest}, {said.replace(' of it', '', 1).removesuffix(_NOT_ESTIMATED)}"
    return f"{_time(scope, whole)}; {said}"


def _most_of_all(inputs: Inputs, frame: pd.DataFrame, whole: Whole | None) -> str:
    """What takes most of a recording without steps, before or after what is judged: a rank that begins to
    record later than that is long, which is why others wait; or what the program does."""
    if whole is None or whole.per_step:
        return ""
    apart = frame[apart_from_work(frame)]
    if inputs.shared and max(inputs.shared.late.values(), default=0) > whole.ns:
        late = apart[_apart_ranks(apart)]
    else:
        named = apart["topic"].map(passes).astype("bool") | apart["name"].ne("")
        late = apart[named & (apart["cost_ns"] > whole.ns)]
    return "" if late.empty else str(late["headline"].iloc[0])


def _apart_ranks(frame: pd.DataFrame) -> pd.Series[bool]:
    """The rows about ranks that recorded at different times."""
    return frame["topic"].map(is_unjudged).astype("bool")


def _time(scope: Scope, whole: Whole) -> str:
    if whole.per_step and scope.iterations and len(scope.iterations) == 1:
        return f"Step {scope.iterations[0]}: {duration(whole.ns)}"
    return f"{duration(whole.ns)} {'per step' if whole.per_step else 'in all'}"


def _of_whole(frame: pd.DataFrame, whole: Whole, parts: list[Part], advice: list[Advice]) -> str:
    """What can be saved, or is lost; first of all the work, if that takes nearly all of the time."""
    work = _leading_work(frame, whole, parts, advice)
    savings = [part for part in parts if part.form in SAVINGS and _is_large(part, whole)]
    if savings:
        said = _reachable(frame, whole, parts, savings, advice)
        return f"{work.partition(',')[0]}; {said}" if work else said
    unknown = [part for part in parts if part.form == "unknown" and _is_large(part, whole)]
    if work:
        return work if unknown or len(_unknown(frame)) else f"nothing to save stands out: {work}"
    if unknown:
        most, lost = advice[unknown[0].finding], duration(unknown[0].ns)
        if passes(most.topic):  # what is no part of a steady step is nothing to save
            return f"{lost} of it is {most.cause_words}"
        return f"{lost} of it is due to {most.cause_words}{_NOT_ESTIMATED}"
    if len(told := _unknown(frame)):
        return f"where it goes is unknown: {decapitalised(_lack(told.iloc[0]))}"
    if idle := _idle_unknown(frame, whole):
        return f"why the {whole.device} is idle for {percent(idle)} of it is unknown"
    return f"nothing to save stands out: {_does(whole)}"


def _leading_work(frame: pd.DataFrame, whole: Whole, parts: list[Part], advice: list[Advice]) -> str:
    """The work that takes nearly all of the time, unless much else is lost, or unknown."""
    lost = [
        part.ns
        for part in parts
        if part.form == "unknown" and advice[part.finding].cause_words not in _NAMELESS
    ]
    much = 100.0 * max([saved_in(parts), *lost]) >= WARNING_PCT * whole.ns
    unknown = len(_unknown(frame)) or _idle_unknown(frame, whole)  # about devices
    return "" if much or ("host" not in whole.split and unknown) else _works(frame, whole)


def _reachable(
    frame: pd.DataFrame, whole: Whole, parts: list[Part], savings: list[Part], advice: list[Advice]
) -> str:
    """What is left of the time without its largest causes.

    That hardly anything is left says nothing where a device has hardly anything to do.
    """
    left = whole.ns - saved_in(parts)
    first = advice[savings[0].finding]
    if _HARDLY * left < whole.ns and first.lost_as == "idle":
        idle = percent(100.0 * whole.split["idle"] / whole.ns)
        return f"the {whole.device} idles {idle} of it{_where(frame, first)}"
    best = " at best" if any(part.form == "bound" for part in savings) else ""
    # the two that are largest in the bar, in the order of the findings, which every surface has
    largest = sorted(savings, key=lambda part: -part.ns)[:2]
    causes = in_words([advice[part.finding].cause_words for part in savings if part in largest])
    return f"{duration(left)} is reachable{best}: {causes}"


def _where(frame: pd.DataFrame, idle: Advice) -> str:
    """`, mostly in aten::normal_`, of idle time most of which lies in a call; else `: ` and its cause."""
    call = claimed(frame[frame["topic"] == idle.topic].iloc[0], "most_idle_in")
    return f", mostly in {call}" if call else f": {idle.cause_words}"


def _unknown(frame: pd.DataFrame, about: str = "main") -> pd.DataFrame:
    """Why it is unknown where the time goes, or why devices are idle, if it is."""
    return frame[(frame["severity"] == OPEN) & (frame["role"] == about)]


def _is_known(frame: pd.DataFrame, whole: Whole | None) -> bool:
    """Whether it is known where the time goes: all of it, or to operators of the host, nearly all of it."""
    of_host = whole is not None and "host" in whole.split and _works(frame, whole)
    return bool(of_host) or not len(_unknown(frame))


def _idle_unknown(frame: pd.DataFrame, whole: Whole) -> float:
    """The idle time whose causes are unknown, in % of the time; 0 where it is little, or they are known."""
    pct = 100.0 * whole.split.get("idle", 0) / whole.ns if whole.ns else 0.0
    return pct if pct >= NOTE_PCT and len(_unknown(frame, "idle")) else 0.0


def _nothing(frame: pd.DataFrame, whole: Whole | None) -> str:
    """Why there may be no finding."""
    if whole is None or not _is_known(frame, whole):
        return "Nothing could be judged"
    if _idle_unknown(frame, whole):
        return f"Why the {whole.device} is idle is unknown"
    return "Nothing to save stands out"


def _does(whole: Whole) -> str:
    """What most of the time goes to."""
    if "host" in whole.split:
        return "no cause takes much of it"
    main = max(whole.split, key=lambda name: whole.split[name])
    share = percent(100.0 * whole.split[main] / whole.ns if whole.ns else 0)
    return _DOES[main].format(device=whole.device, pct=share)


def _works(frame: pd.DataFrame, whole: Whole) -> str:
    """The work that takes nearly all of the time, and what it mostly is; "" if none does."""
    verdict = frame[(frame["section"] == VERDICT) & ~leading(frame) & ~beside(frame)]
    verdict = verdict[verdict["share_pct"] >= COMPUTE_BOUND_PCT]
    if verdict.empty:
        return ""
    row = verdict.iloc[0]
    said = _DOES["compute"].format(device=whole.device, pct=percent(row["share_pct"]))
    if "host" in whole.split:
        said = f"{BY_TOPIC[row['topic']].cause} take {percent(row['share_pct'])} of it"
    return f"{said}, {row['headline']}" if row["headline"] else said


def _beside(
    scope: Scope,
    frame: pd.DataFrame,
    whole: Whole | None,
    parts: list[Part],
    advice: list[Advice],
    first: str,
) -> Iterator[str]:
    """The muted line: what is not judged, what the steps of a server lose, and what else there is to know.

    `first` is what the headline says of that.
    """
    yield from (f"{said}." for said in frame.loc[apart_from_work(frame), "headline"] if said != first)
    aside = frame[beside(frame)]
    yield from aside.loc[aside["role"] == "recording", "text"]
    verdict = frame[_instead(frame)]
    yield from (
        capitalised(row["text"].removeprefix(f"{row['title']}: "))
        for _, row in verdict[verdict["text"] != verdict["headline"]].iterrows()
    )
    if whole is None:
        return
    if leading(frame).any() and "host" not in whole.split:
        rate = frame[leading(frame)].iloc[0]
        yield str(rate["text"]).removeprefix(rate["headline"]).lstrip(". ")
        said = _of_whole(frame, whole, parts, advice)
        saves = bool(saved_in(parts))
        if not saves:  # the two parts of the model that take most
            yield from (text.partition(" Then ")[0] for text in aside.loc[aside["role"] == "work", "text"])
        if _leading_work(frame, whole, parts, advice) not in said or saves:
            yield f"{_time(scope, whole)}; {said}."
        elif not advice:  # the work is in the headline
            yield "Nothing to save stands out."
        return
    yield _limits(frame, whole, parts, advice)


def _limits(frame: pd.DataFrame, whole: Whole, parts: list[Part], advice: list[Advice]) -> str:
    saved = any(part.form in SAVINGS for part in parts)
    # then the headline names no loss
    apart = saved or ("host" not in whole.split and bool(_leading_work(frame, whole, parts, advice)))
    per = " per step" if whole.per_step else ""
    for form, end in (
        ("hidden", ", but taking it away saves nothing yet"),
        ("unknown", "; what can be saved of that is not estimated"),
    ):
        found = [part for part in parts if part.form == form and _is_large(part, whole)]
        if found and (apart or form == "hidden"):
            most = max(found, key=lambda part: part.ns)
            if passes(advice[most.finding].topic):
                end = ", which later steps do not have"
            return f"{advice[most.finding].noun}: {advice[most.finding].figure}{per}{end}."
    rest = {name: _rest(parts, name) for name in CLASSES}
    left = sum(rest.values())
    if saved and 100.0 * left >= LEAST_PCT * whole.ns:
        main = max(rest, key=lambda name: rest[name])
        share = percent(100.0 * rest[main] / left)
        said = _DOES[main].format(device=whole.device, pct=share)
        return f"Of the time that remains, {said.removesuffix(' of it')}."
    if "host" in whole.split:
        return str(next(iter(frame.loc[frame["role"] == "work", "text"]), ""))
    return ""


def _rest(parts: list[Part], lost_as: str) -> int:
    return sum(part.ns for part in parts if part.lost_as == lost_as and part.form == "rest")


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


def _is_large(part: Part, whole: Whole | None) -> bool:
    return whole is None or 100.0 * part.ns >= LEAST_PCT * whole.ns


def _clean(frame: pd.DataFrame) -> list[str]:
    found = frame.loc[frame["severity"] == CHECKED, "checked"]
    topics = " ".join(found).split()
    return [BY_TOPIC[topic].name for topic in topics]


def _unjudged(frame: pd.DataFrame) -> list[Check]:
    """What could not be judged; of a recording that cannot be judged at all, why."""
    if len(missing := frame[frame["severity"] == OPEN]):
        return [Check(capitalised(_lack(row)), str(row["suggestion"])) for _, row in missing.iterrows()]
    whole = frame[(frame["section"] == RECORDING) & (frame["role"] == "recording")]
    return [Check(str(row["title"]), str(row["suggestion"])) for _, row in whole.iterrows()]


def _lack(row: pd.Series) -> str:
    """`no shapes of operators`, of "The trace has no shapes of operators: it is unknown ..."."""
    return str(row["text"]).partition(": it is unknown")[0].removeprefix("The trace has ")
