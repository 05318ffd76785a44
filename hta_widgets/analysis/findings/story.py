"""The story of a job: one headline, one bar, and advice, all of the same time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import pandas as pd

from hta_widgets.analysis.device_time.temporal import temporal_breakdown
from hta_widgets.analysis.findings.bar import (
    CLASSES,
    SAVINGS,
    Form,
    Part,
    Whole,
    bar,
    change_of,
    class_of,
    saved_in,
    whole_of_step,
)
from hta_widgets.analysis.findings.headline import apart_from_work, sentence, title
from hta_widgets.analysis.findings.in_turn import in_turn
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.no_device import NO_DEVICE
from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.rules import BY_TOPIC
from hta_widgets.analysis.findings.sections import (
    CHECKED,
    LATER,
    MEMORY,
    OPEN,
    RECORDING,
    SAVES,
    UNKNOWN,
)
from hta_widgets.analysis.findings.serving_rules import SERVING_RATE
from hta_widgets.analysis.findings.shown_at import Place, places_of
from hta_widgets.analysis.findings.withheld import all_withheld
from hta_widgets.analysis.replay.what_if import LEAST_PCT
from hta_widgets.formatting import (
    capitalised,
    counted,
    decapitalised,
    duration,
    in_words,
    percent,
    ranks_in_words,
)
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.trace.trust import forbidden

_DOES: Final = {
    "compute": "the GPU computes {pct} of it",
    "communication": "communication takes {pct} of it",
    "memory": "copies take {pct} of it",
    "idle": "the GPU is idle for {pct} of it",
}
_FORM_OF: Final = {"replay": "simulated", "bound": "bound", "analytic": "bound"}
_RANK: Final = "{rank}"
_FASTER_HOST: Final = "[edits.host(0.5)]"
_MOST_STEPS: Final = 256  # of all ranks


@dataclass(frozen=True)
class Advice:
    """What a finding says, and what to do.

    Attributes:
        topic: of its rule. noun: its name in three words. cause_words: in a headline. title: a heading.
        form: as in `Part`; "memory" of what takes no time.
        figure: what it saves or costs, as a text; label: the same with how it is known.
        what, why, todo: sentences. sure: how its saving is known. wrong_if, risk, needs: as in `overview`.
        own: what its change saves alone, where that is not what it saves on top of those before; or "".
        kind: the analysis that shows it. edits: what was replayed.
        lost_as: the class of the time.
        places: where it shows, the best to look at first.
        ranks: to be seen for it, the first at the top.
    """

    topic: str
    noun: str
    cause_words: str
    title: str
    form: str
    figure: str
    label: str
    what: list[str]
    why: list[str]
    todo: str
    sure: str
    wrong_if: str
    risk: str
    needs: str
    own: str
    kind: str
    edits: str
    lost_as: str
    places: list[Place]
    ranks: list[int]


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
        whole_ns, per_step: the bar, and whether it is a step.
        parts: of the bar, savings first; they add up to `whole_ns`.
        saved, remains: what stands under the two ends of the bar.
        advice: the findings, in the order of `overview`.
        clean: what was looked for and not found. unknown: what could not be judged. asides: what costs
            nothing.
        kinds: the analyses that show the findings, the first first.
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
    parts = bar(trace, scope, whole, rows) if whole else []
    advice = [_advice(trace, scope, inputs, frame, whole, parts, at, row) for at, row in enumerate(rows)]
    saved_ns = saved_in(parts)
    return Story(
        scope=_scope_line(trace, scope, inputs, whole),
        narrowed=scope != Scope(),
        headline=_headline(scope, frame, whole, parts, advice),
        limits=" ".join(filter(None, _beside(scope, frame, whole, parts, advice))),
        trust=_trust(trace, inputs),
        whole_ns=whole.ns if whole else 0,
        per_step=whole.per_step if whole else False,
        parts=parts,
        saved=_saved(whole, parts, saved_ns),
        remains=f"{duration(whole.ns - saved_ns)} {'remain' if saved_ns else 'in all'}" if whole else "",
        advice=advice,
        clean=_clean(frame),
        unknown=[_check(row) for _, row in frame[frame["severity"] == OPEN].iterrows()],
        asides=[*apart["text"].map(str), *found.loc[aside, "text"].map(str)],
        kinds=[kind for kind in dict.fromkeys(frame["kind"]) if kind],
    )


def _trust(trace: Trace, inputs: Inputs) -> str:
    """What is withheld from the findings, and why; "" where nothing is."""
    if trace.several_jobs:
        return trace.trust.text
    found = all_withheld(trace, inputs.scope)
    if not found:
        return ""
    reason = next(iter(found.values())).detail
    return f"Limited: {forbidden(found)} are withheld: {decapitalised(reason)}."


# -- sentences


def _scope_line(trace: Trace, scope: Scope, inputs: Inputs, whole: Whole | None) -> str:
    judged, ranks = inputs.scope, trace.ranks_of(inputs.scope)
    every = max(trace.job_size or 0, len(trace.ranks))
    if len(ranks) == every:
        who = "1 rank" if every == 1 else f"all {every:,} ranks"
    else:
        who = f"{ranks_in_words(list(ranks))} of {every:,}"
    said = [who]
    steps = judged.iterations or ()
    if inputs.announced and len(steps) == 1:
        said.append(f"step {steps[0]}" if scope.iterations else "1 step")
    elif inputs.announced and steps:
        said.append(counted(len(steps), "step"))
    elif inputs.shared and inputs.shared.step is not None:
        said.append(f"a part of step {inputs.shared.step}")
    else:
        said.append("no steps marked")
    if scope.streams:
        word = "streams" if len(scope.streams) > 1 else "stream"
        said.append(f"{word} {in_words([str(stream) for stream in scope.streams])}")
    if scope.window_ns is not None:
        said.append(f"the selected {duration(scope.window_ns[1] - scope.window_ns[0])}")
    if whole:
        said.append(f"{duration(whole.ns)} {'per step' if whole.per_step else 'in all'}")
    return ", ".join([*said, *([trace.without] if trace.without else [])])


def _headline(
    scope: Scope, frame: pd.DataFrame, whole: Whole | None, parts: list[Part], advice: list[Advice]
) -> str:
    """Of a server its time per token, of other jobs what there is to save."""
    if whole is None or "host" in whole.split:
        return _without_bar(frame[~apart_from_work(frame)])
    rate = frame.loc[frame["topic"] == SERVING_RATE, "text"]
    if len(rate):
        return str(rate.iloc[0]).removesuffix(".")
    return _of_whole(scope, frame, whole, parts, advice)


def _of_whole(
    scope: Scope, frame: pd.DataFrame, whole: Whole, parts: list[Part], advice: list[Advice]
) -> str:
    time = f"{duration(whole.ns)} per step" if whole.per_step else f"{duration(whole.ns)} in all"
    if whole.per_step and scope.iterations and len(scope.iterations) == 1:
        time = f"Step {scope.iterations[0]}: {duration(whole.ns)}"
    savings = [part for part in parts if part.form in SAVINGS and _is_large(part, whole)]
    if savings:
        left = whole.ns - saved_in(parts)
        best = " at best" if any(part.form == "bound" for part in savings) else ""
        # in the order of the findings, which every surface has: not by what is left for each in the bar
        causes = in_words([advice[part.finding].cause_words for part in savings[:2]])
        return f"{time}; {duration(left)} is reachable{best}: {causes}"
    unknown = [part for part in parts if part.form == "unknown"]
    if unknown:
        most = unknown[0]
        cause = advice[most.finding].cause_words
        return f"{time}; {duration(most.ns)} of it is lost to {cause}, saving not estimated"
    main = max(whole.split, key=lambda name: whole.split[name])
    pct = percent(100.0 * whole.split[main] / whole.ns) if whole.ns else percent(0)
    told = frame[(frame["severity"] == OPEN) & (frame["role"] == "main")]
    if len(told):
        return f"{time}; where it goes is unknown: {_lack(told.iloc[0])}"
    return f"{time}; nothing to save stands out: {_DOES[main].format(pct=pct)}"


def _without_bar(frame: pd.DataFrame) -> str:
    """Of a recording without device work, or of which nothing can be said."""
    return sentence(frame).removesuffix(".")


def _beside(
    scope: Scope, frame: pd.DataFrame, whole: Whole | None, parts: list[Part], advice: list[Advice]
) -> Iterator[str]:
    """The muted line: what is not judged, what the steps of a server lose, and what else there is to know."""
    yield from (f"{said}." for said in frame.loc[apart_from_work(frame), "headline"])
    yield from frame.loc[frame["topic"] == NO_DEVICE, "text"]
    if whole is None:
        return
    if (frame["topic"] == SERVING_RATE).any() and "host" not in whole.split:
        yield f"{_of_whole(scope, frame, whole, parts, advice)}."
    yield _limits(whole, parts, advice)


def _limits(whole: Whole, parts: list[Part], advice: list[Advice]) -> str:
    saved = any(part.form in SAVINGS for part in parts)
    per = " of each step" if whole.per_step else ""
    for form, end in (
        ("hidden", ", but taking it away saves nothing yet"),
        ("unknown", "; what can be saved of that is not estimated"),
    ):
        found = [part for part in parts if part.form == form]
        if found and (saved or form == "hidden" or "host" in whole.split):
            most = max(found, key=lambda part: part.ns)
            if form == "hidden":  # all of it, though what else is saved may hold a part of it
                return f"{advice[most.finding].noun}: {advice[most.finding].figure}{per}{end}."
            another = "another " if saved else ""
            return f"{advice[most.finding].noun}: {another}{duration(most.ns)}{per}{end}."
    rest = {name: _rest(parts, name) for name in CLASSES}
    if saved and any(rest.values()):
        main = max(rest, key=lambda name: rest[name])
        said = _DOES[main].format(pct=percent(100.0 * rest[main] / sum(rest[name] for name in CLASSES)))
        return f"Of the time that remains, {said.removesuffix(' of it')}."
    return ""


def _rest(parts: list[Part], lost_as: str) -> int:
    return sum(part.ns for part in parts if part.lost_as == lost_as and part.form == "rest")


def _saved(whole: Whole | None, parts: list[Part], saved_ns: int) -> str:
    if whole is None or not saved_ns:
        return ""
    at_most = " at most" if any(part.form == "bound" and part.ns for part in parts) else ""
    return f"{duration(saved_ns)}{at_most} can be saved ({percent(100.0 * saved_ns / whole.ns)})"


def _is_large(part: Part, whole: Whole) -> bool:
    return 100.0 * part.ns >= LEAST_PCT * whole.ns


def _cause_words(frame: pd.DataFrame, row: pd.Series) -> str:
    """How a headline names a finding: by its reason, where that is known."""
    inner = [BY_TOPIC[topic] for topic in frame.loc[frame["part_of"] == row["topic"], "topic"]]
    rules = [rule for rule in inner if rule.among_ranks == "reason"]
    rules += [BY_TOPIC[row["topic"]]] if row["topic"] in BY_TOPIC else []
    said = title(row)
    causes = (_of_rank(rule.cause, row) for rule in rules)
    return next(filter(None, causes), decapitalised(said))


def _of_rank(text: str, row: pd.Series) -> str:
    """The text of a rule about the rank of a finding; "" where it needs one and there is none."""
    return "" if _RANK in text and pd.isna(row["rank"]) else text.replace(_RANK, str(row["rank"]))


def _clean(frame: pd.DataFrame) -> list[str]:
    found = frame.loc[frame["severity"] == CHECKED, "checked"]
    topics = " ".join(found).split()
    rules = [BY_TOPIC[topic] for topic in topics]
    return [rule.title if not rule.label or _RANK in rule.label else rule.label for rule in rules]


def _check(row: pd.Series) -> Check:
    return Check(_lack(row), str(row["suggestion"]))


def _lack(row: pd.Series) -> str:
    """`no shapes of operators`, of "The trace has no shapes of operators: it is unknown ..."."""
    return str(row["text"]).partition(": ")[0].removeprefix("The trace has ")


# -- advice


def _advice(
    trace: Trace, scope: Scope, inputs: Inputs, frame: pd.DataFrame, whole: Whole | None, parts: list[Part],
    at: int, row: pd.Series,
) -> Advice:  # fmt: skip
    part = next((part for part in parts if part.finding == at), None)
    form: Form | str = (
        part.form if part else {MEMORY: "memory", LATER: "hidden"}.get(row["section"], "unknown")
    )
    rule = BY_TOPIC.get(row["topic"])
    label = (rule and _of_rank(rule.label, row)) or title(row)
    what, *why = _sentences(str(row["text"]))
    inner = frame[frame["part_of"] == row["topic"]]
    why += [_sentences(str(text))[0] for text in inner["text"]]
    places = places_of(trace, row, label, class_of(row))
    figure, said = _figure(row, whole, part, form)
    ranks = [int(row["rank"])] if pd.notna(row["rank"]) else []
    on_rank = f": rank {ranks[0]}" if ranks and len(trace.ranks) > 1 else ""
    ranks += [place.rank for place in places[:1] if place.rank not in ranks]
    return Advice(
        topic=str(row["topic"]),
        noun=label,
        cause_words=_cause_words(frame, row),
        title=label if rule and _RANK in rule.label else f"{label}{on_rank}",
        form=form,
        figure=figure,
        label=said,
        what=[what],
        why=why,
        todo=str(row["suggestion"]),
        sure=_sure(trace, scope, inputs, whole, part, row, form),
        wrong_if=capitalised(str(row["wrong_if"])),
        risk=str(row["risk"]),
        needs=str(row["needs"]),
        own=_own(row, whole, part),
        kind=str(row["kind"]),
        edits=str(row["edits"]),
        lost_as=class_of(row),
        places=places,
        ranks=ranks,
    )


def _figure(row: pd.Series, whole: Whole | None, part: Part | None, form: str) -> tuple[str, str]:
    """What it saves or costs, and that with how it is known."""
    steps = int(row["steps"]) if whole and whole.per_step and pd.notna(row["steps"]) else 1
    cost = duration(round(int(row["cost_ns"]) / steps)) if whole else percent(row["share_pct"])
    if form == "simulated" and part:
        return f"\N{MINUS SIGN}{duration(part.ns)}", f"\N{MINUS SIGN}{duration(part.ns)} · simulated"
    if form == "bound" and part:
        return f"0–{duration(part.ns)}", f"\N{MINUS SIGN}{duration(part.ns)} · upper bound"
    if form == "hidden":
        return cost, f"{cost} · hidden: saves nothing yet"
    if form == "memory" or not row["share_pct"]:
        return "", "takes no time"
    return cost, f"{cost} · saving not estimated"


def _own(row: pd.Series, whole: Whole | None, part: Part | None) -> str:
    if whole is None or part is None or row["section"] != SAVES or part.form != _FORM_OF[row["method"]]:
        return ""  # of another form is another change: then `sure` says both
    own = round(whole.ns * float(row["saving_pct"]) / 100)
    return f"{duration(own)} on its own" if 100.0 * abs(own - part.ns) >= LEAST_PCT * whole.ns else ""


def _sure(
    trace: Trace, scope: Scope, inputs: Inputs, whole: Whole | None, part: Part | None, row: pd.Series,
    form: str,
) -> str:  # fmt: skip
    """How its saving is known; of what is hidden, what it saves once the first limit is gone."""
    together = re.compile(r"The \d+ changes together")  # of all findings, which the bar says better
    said = " ".join(each for each in _sentences(str(row["saving"])) if not together.match(each))
    if form != "hidden" or whole is None:
        if form == "bound" and row["method"] == "replay":
            most = f", {percent(100.0 * part.ns / whole.ns)} less" if part and whole and whole.ns else ""
            said = f"{said} Upper bound{most}: a CPU that takes no time at all."
        return said or "What can be saved of it is not estimated."
    texts = ["Saves nothing yet: something else decides the time."]
    if change_of(row) and row["edits"]:
        found = in_turn(trace, scope, int(row["saving_rank"]), [_FASTER_HOST, str(row["edits"])])
        more = found.saved_pct[1] - found.saved_pct[0] if found else 0.0
        if more >= LEAST_PCT:
            time = duration(round(whole.ns * more / 100))
            bound = "up to " if row["method"] == "bound" else ""
            unit = " per step" if whole.per_step else ""
            texts = [f"Saves nothing yet; {bound}{time}{unit} once the CPU is twice as fast (simulated)."]
        elif found:
            texts.append("Nor does it with the CPU twice as fast (simulated).")
    elif said:
        texts = [said]
    if class_of(row) == "communication":
        texts += _longest_in_shortest(trace, inputs)
    return " ".join(texts)


def _longest_in_shortest(trace: Trace, inputs: Inputs) -> list[str]:
    """The best evidence that communication is hidden: the step with most of it is the shortest."""
    steps = inputs.scope.iterations or ()
    ranks = inputs.trace.ranks_of(inputs.scope)
    if not inputs.announced or len(steps) < 2 or len(steps) * len(ranks) > _MOST_STEPS:
        return []
    found = {}
    for step in steps:
        of_step = temporal_breakdown(trace, Scope(ranks=inputs.scope.ranks, iterations=(step,)))
        if of_step.empty:
            return []
        found[step] = of_step["window_ns"].mean(), of_step["communication_ns"].mean()
    shortest = min(found, key=lambda step: found[step][0])
    most = max(found, key=lambda step: found[step][1])
    if shortest != most:
        return []
    return [
        f"Step {most} has the longest communication ({duration(found[most][1])}), and is the shortest step."
    ]


def _sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [each for each in re.split(r"(?<=[.!?]) (?=[A-Z0-9])", text.strip()) if each] or [""]
