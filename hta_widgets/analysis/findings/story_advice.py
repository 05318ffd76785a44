"""What the story says of one finding: what it saves or costs, why, where it shows, and what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from hta_widgets.analysis.device_time.temporal import temporal_breakdown
from hta_widgets.analysis.findings.bar import SAVINGS, Form, Part, Whole, change_of, class_in, cost_in
from hta_widgets.analysis.findings.in_turn import in_turn
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rules import BY_TOPIC
from hta_widgets.analysis.findings.saving import NOT_ESTIMATED
from hta_widgets.analysis.findings.sections import LATER, MEMORY, SAVES
from hta_widgets.analysis.findings.shown_at import Place, places_of
from hta_widgets.analysis.idle.pauses import LEAST_NS as PAUSE_NS
from hta_widgets.analysis.replay.what_if import LEAST_PCT
from hta_widgets.formatting import capitalised, decapitalised, duration, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

RANK: Final = "{rank}"
"""Stands in the texts of a rule for the rank of its finding."""
# Sentences of a finding that tell how much it is, not why; and those of them that go without saying.
_HOW_MUCH: Final = re.compile(
    r"(?:On rank \d+, )?"
    r"(?:\d(?!.* of it lies (?:after|inside|between) )"
    r"|(?:That is|They take|[Tt]he longest (?:gap|stretch) is) \d)"
)
_NO_NEWS: Final = re.compile(r"100 % of it lies there|That is 100 % of all waiting\.")
_FORM_OF: Final = {"replay": "simulated", "bound": "bound", "analytic": "bound"}
_FASTER_HOST: Final = "[edits.host(0.5)]"
_MISLEADING_PCT: Final = 50.0
"""Where a few steps take so much longer than others, the mean is that of no step."""
_APART: Final = ("loading", "compiling", "collectives", "elsewhere", "outside")
_MOST_STEPS: Final = 256  # of all ranks
_REASONS: Final = {
    "region_of_one_rank": "{}",  # in which the late rank is longer
    "operator_beyond_others": "{}",
    "launch_call": "its slow host",
    "forward_passes": "gradients are reduced {} times per step",  # where once would do
    "computes_between_collectives": "operators that compute take {}",
    "longest_collective": "longest in {}",
}
"""What a headline says of a finding with such a claim: the first that it has, as it is shown."""


@dataclass(frozen=True)
class Advice:
    """What a finding says, and what to do."""

    topic: str  # of its rule
    noun: str  # its name in three words
    cause_words: str  # in a headline
    title: str  # a heading
    form: str  # as in `Part`; "memory" of what takes no time
    figure: str  # what it saves or costs, as a text; label: the same with how it is known
    label: str
    # sentences; `what` has all that tell how much it is
    what: list[str]
    why: list[str]
    todo: str
    sure: str  # how its saving is known
    # as in `overview`
    wrong_if: str
    risk: str
    needs: str
    own: str  # what its change saves alone, where that is not what it saves on top of those before; or ""
    kind: str  # the analysis that shows it
    edits: str  # what was replayed
    lost_as: str  # the class of the time
    places: list[Place]  # where it shows, the best to look at first
    ranks: list[int]  # to be seen for it, the first at the top


def title(finding: pd.Series | Mapping[str, Any]) -> str:
    """A row of `overview` in a few words, for a heading."""
    return capitalised(str(finding["title"]).rstrip(",."))


def advice_of(
    trace: Trace, scope: Scope, inputs: Inputs, frame: pd.DataFrame, whole: Whole | None, parts: list[Part],
    at: int, row: pd.Series,
) -> Advice:  # fmt: skip
    part = next((part for part in parts if part.finding == at), None)
    form: Form | str = (
        part.form if part else {MEMORY: "memory", LATER: "hidden"}.get(row["section"], "unknown")
    )
    rule = BY_TOPIC.get(row["topic"])
    label = (rule and _of_rank(rule.label, row)) or title(row)
    first, *more = sentences_of(str(row["text"]))
    inner = frame[frame["part_of"] == row["topic"]]
    more += [sentences_of(str(text))[0] for text in inner["text"]]
    what = [first, *(text for text in more if _HOW_MUCH.match(text) and not _NO_NEWS.match(text))]
    places = places_of(trace, row, label, class_in(whole, row))
    figure, said = _figure(row, whole, part, form)
    why = why_late(frame, row)
    does = row if why is None else why
    ranks = [int(row["rank"])] if pd.notna(row["rank"]) else []
    on_rank = f": rank {ranks[0]}" if ranks and len(trace.ranks) > 1 else ""
    ranks += [place.rank for place in places[:1] if place.rank not in ranks]
    return Advice(
        topic=str(row["topic"]),
        noun=label,
        cause_words=_cause_words(inputs, frame, row),
        title=label if rule and RANK in rule.label else f"{label}{on_rank}",
        form=form,
        figure=figure,
        label=said,
        what=what,
        why=[text for text in more if not _HOW_MUCH.match(text)],
        todo=str(does["suggestion"]),
        sure=_sure(trace, scope, inputs, whole, parts, part, row, form),
        wrong_if=capitalised(str(row["wrong_if"])),
        risk=str(does["risk"]),
        needs=str(does["needs"]),
        own=_own(row, whole, part),
        kind=str(row["kind"]),
        edits=str(row["edits"]),
        lost_as=class_in(whole, row),
        places=places,
        ranks=ranks,
    )


def _figure(row: pd.Series, whole: Whole | None, part: Part | None, form: str) -> tuple[str, str]:
    """What it saves, or what is left of its cost, and that with how it is known."""
    cost = duration(cost_in(whole, row)) if whole else percent(row["share_pct"])
    if part and duration(part.ns) != cost:
        cost = f"{duration(part.ns) if part.ns else 'nothing'} left of {cost}"
    if form in SAVINGS and part:
        saves = duration(-part.ns) if part.ns else "nothing more"
        figure = f"0–{duration(part.ns)}" if form == "bound" and part.ns else saves
        return figure, f"{saves} · {'upper bound' if form == 'bound' else 'simulated'}"
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
    trace: Trace, scope: Scope, inputs: Inputs, whole: Whole | None, parts: list[Part], part: Part | None,
    row: pd.Series, form: str,
) -> str:  # fmt: skip
    """How its saving is known; of what is hidden, what it saves once the first limit is gone."""
    said = str(row["saving"]).strip()
    if form != "hidden" or whole is None:
        if form == "bound" and row["method"] == "replay":
            said = f"{said} {_upper_bound(whole, parts, part, float(row['saving_pct']))}"
        return said or f"{NOT_ESTIMATED}."
    texts = ["Saves nothing yet: something else decides the time."]
    if change_of(row) and row["edits"]:
        found = in_turn(trace, scope, int(row["saving_rank"]), [_FASTER_HOST, str(row["edits"])])
        more = found.saved_pct[1] - found.saved_pct[0] if found else 0.0
        if more >= LEAST_PCT:
            much = once_faster(row, whole, more)
            texts = [f"Saves nothing yet; {much} once the CPU is twice as fast (simulated)."]
        elif found:
            texts.append("Nor does it with the CPU twice as fast (simulated).")
    elif said:
        texts = [said]
    if class_in(whole, row) == "communication":
        texts += _longest_in_shortest(trace, inputs)
    return " ".join(texts)


def once_faster(row: pd.Series, whole: Whole, more_pct: float) -> str:
    """What a change saves once the host is faster, no more than it costs today.

    The replay may save more: what is hidden today shows then, and ranks that are not replayed keep the pace
    at which they were recorded, so that this one waits for them.
    """
    ns, cost = round(whole.ns * more_pct / 100), cost_in(whole, row)
    much = "all of it" if ns >= cost else f"{duration(ns)}{' per step' * whole.per_step}"
    return f"{'up to ' if row['method'] == 'bound' else ''}{much}"


def _upper_bound(whole: Whole | None, parts: list[Part], part: Part | None, alone_pct: float) -> str:
    """What a CPU that takes no time saves on top of the savings before it in the bar."""
    host = "a CPU that takes no time at all"
    if not part or not whole or not whole.ns:
        return f"Upper bound: {host}."
    pct = 100.0 * part.ns / whole.ns
    if any(other.form in SAVINGS and other.ns for other in parts[: parts.index(part)]):
        most = f"at most {percent(pct)} less: {host}" if part.ns else "it saves nothing more"
        return f"On top of the other savings, {most}."
    # a replay without some gaps may save a little more than one without the host
    return f"Upper bound: {host}." if pct < alone_pct else f"Upper bound, {percent(pct)} less: {host}."


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
    longest, least = max(time for time, _ in found.values()), min(time for _, time in found.values())
    alike = min(longest - found[shortest][0], found[most][1] - least)
    if shortest != most or 100.0 * alike < LEAST_PCT * longest:
        return []
    return [
        f"Step {most} has the longest communication ({duration(found[most][1])}), and is the shortest step."
    ]


def sentences_of(text: str) -> list[str]:
    """The sentences of a text."""
    return [each for each in re.split(r"(?<=[.!?]) (?=[A-Z0-9])", text.strip()) if each] or [""]


def _cause_words(inputs: Inputs, frame: pd.DataFrame, row: pd.Series) -> str:
    """How a headline names a finding: by its reason, if that is known, and by its step, if it is one."""
    parts = frame[(frame["part_of"] == row["topic"]) & (2 * frame["share_pct"] >= row["share_pct"])]
    inner = [BY_TOPIC[topic] for topic in parts["topic"]]
    rules = [rule for rule in inner if rule.among_ranks == "reason"]
    rules += [BY_TOPIC[row["topic"]]] if row["topic"] in BY_TOPIC else []
    said = title(row)
    causes = [_of_rank(rule.cause, row) for rule in rules]
    if len(rules) == 1 and RANK not in rules[0].cause and not said.startswith(rules[0].title.rstrip(",.")):
        causes = []  # the title says more than what all findings of the rule are
    words = next(filter(None, causes), decapitalised(said))
    if rules and rules[-1].among_ranks == "late" and not said.startswith(rules[-1].title):  # it says why
        words = decapitalised(said).replace(" a rank ", f" rank {row['rank']} ")
    if rules and said.startswith(rules[-1].title):
        words += said.removeprefix(rules[-1].title)  # where most of it lies
    if (why := why_late(frame, row)) is not None:
        rule = BY_TOPIC[why["topic"]]
        mostly = re.fullmatch(r" \((mostly .+)\)", title(why).removeprefix(rule.title))
        words += f" ({rule.cause}{f', {mostly[1]}' if mostly else ''})"
    elif reason := next((how.format(said) for of, how in _REASONS.items() if (said := claimed(row, of))), ""):
        words += f" ({reason})"
    elif rules and not rules[-1].says_why and (place := _held_in(row)) not in words:
        words += f" ({place})"
    ranks = inputs.trace.ranks_of(inputs.scope)
    for _, part in parts[parts["share_pct"] >= _MISLEADING_PCT].iterrows():
        # a share of some of the ranks is none of all of them
        of_all = any(
            claim["measure"] == "beyond_usual" and claim["ranks"] == ranks for claim in _claims(part)
        )
        if of_all and (slow := claimed(part, "unusual_steps")) and " in iteration " not in words:
            where = f"most of it in {slow} of {claimed(part, 'steps')} steps"
            words = f"{words[:-1]}; {where})" if words.endswith(")") else f"{words} ({where})"
    return words


def _held_in(row: pd.Series) -> str:
    """The function in which a host is for long while most of a loss lasts; "" where no single one is."""
    held = amount_claimed(row, "longest_idle") >= PAUSE_NS
    return claimed(row, "most_idle_in").rpartition(": ")[2] if held else ""


def _claims(row: pd.Series) -> list[dict[str, Any]]:
    return json.loads(row["claims"] or "[]")


def claimed(row: pd.Series, measure: str) -> str:
    """The first claim of a measure, as a row of `overview` shows it; "" if it has none."""
    return next((str(claim["shown"]) for claim in _claims(row) if claim["measure"] == measure), "")


def amount_claimed(row: pd.Series, measure: str) -> float:
    """The value of that claim; 0 if it has none."""
    return float(next((claim["value"] for claim in _claims(row) if claim["measure"] == measure), 0))


def is_apart_from_operators(row: pd.Series) -> bool:
    """Whether it is about a time of the host in which no operator computes."""
    parts = [claim["about"].get("part", "") for claim in _claims(row) if claim["measure"] == "host_time"]
    return any(part in _APART or part.startswith("waiting") for part in parts)


def stated(row: pd.Series, other: pd.Series) -> bool:
    """Whether the headline of a row of `overview` has the time that another row says is lost."""
    claims = _claims(other)
    lost = {claim["measure"] for claim in claims if claim["unit"] == "%"}
    times = {
        (claim["measure"], str(claim["shown"]))
        for claim in claims
        if str(claim["unit"]).startswith("ns") and claim["measure"] in lost
    }
    own = {(claim["measure"], str(claim["shown"])) for claim in _claims(row)}
    return any(shown in row["headline"] for _, shown in times & own)


def why_late(frame: pd.DataFrame, row: pd.Series) -> pd.Series | None:
    """What the late rank does meanwhile, where a part of the finding names most of it; else None."""
    rule = BY_TOPIC.get(row["topic"])
    if rule is None or not rule.waits_for_late or pd.isna(row["rank"]):
        return None
    parts = frame[(frame["part_of"] == row["topic"]) & frame["rank"].eq(row["rank"]).fillna(False)]
    parts = parts[2 * parts["share_pct"] >= row["share_pct"]]
    why = [(part, BY_TOPIC[part["topic"]]) for _, part in parts.iterrows()]
    why = [(part, rule) for part, rule in why if rule.cause and rule.says_why]
    return None if not why or why[0][1].among_ranks else why[0][0]


def _of_rank(text: str, row: pd.Series) -> str:
    """The text of a rule about the rank of a finding; "" where it needs one and there is none."""
    return "" if RANK in text and pd.isna(row["rank"]) else text.replace(RANK, str(row["rank"]))
