"""The headline over the bar and the line beneath it: what the time is, what of it can be saved or is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pandas as pd

from hta_widgets.analysis.findings.bar import CLASSES, SAVINGS, Part, Whole, is_large, saved_in
from hta_widgets.analysis.findings.compute_verdict import COMPUTE_BOUND_PCT
from hta_widgets.analysis.findings.finding import NOTE_PCT, WARNING_PCT
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rules import BY_TOPIC, beside, is_unjudged, leading, passes
from hta_widgets.analysis.findings.sections import OPEN, RECORDING, VERDICT
from hta_widgets.analysis.findings.story_advice import (
    Advice,
    amount_claimed,
    claimed,
    is_apart_from_operators,
    stated,
)
from hta_widgets.analysis.replay.what_if import LEAST_PCT
from hta_widgets.formatting import capitalised, counted, decapitalised, duration, in_words, percent
from hta_widgets.trace.scope import Scope

_NAMELESS: Final = frozenset(rule.cause for rule in BY_TOPIC.values() if rule.no_reason)
"""What is lost for no reason that is recorded, and at no place that says more."""
_NOT_ESTIMATED: Final = ", saving not estimated"
_FAR_MORE: Final = 5
_COULD_BE: Final = "it could be "
_HARDLY: Final = 100
"""Where less than one in so many of the time is reachable, that is no goal."""
_DOES: Final = {
    "compute": "the {device} computes {pct} of it",
    "communication": "communication takes {pct} of it",
    "memory": "copies take {pct} of it",
    "idle": "the {device} is idle for {pct} of it",
}


@dataclass(frozen=True)
class Headline:
    """What is said over a bar and beneath it.

    Attributes:
        scope, inputs: what is asked about, and what is judged of it.
        frame: its `overview`. whole, parts: its bar. advice: what that shows, in the order of `frame`.
    """

    scope: Scope
    inputs: Inputs
    frame: pd.DataFrame
    whole: Whole
    parts: list[Part]
    advice: list[Advice]

    @property
    def text(self) -> str:
        """Of a server its time per token and its largest loss, of other jobs what there is to save."""
        if leading(self.frame).any() and self._on_devices:
            return self._of_server()
        if not self.first:
            return f"{self._time}; {self._of_whole}"
        late = self.frame.loc[_apart_ranks(self.frame), "headline"].eq(self.first).any()
        rest = f"the {duration(self.whole.ns)} that all record" if late else "the rest"
        said = self._of_whole.replace(" of it", "", 1).removesuffix(_NOT_ESTIMATED)
        if said.startswith(_COULD_BE):
            named = rest if late else f"{rest} ({duration(self.whole.ns)})"
            return f"{self.first}; {named} {said.removeprefix('it ')}"
        return f"{self.first}; of {rest}, {said}"

    @cached_property
    def first(self) -> str:
        """What takes most of a recording without steps, before or after what is judged: a rank that begins
        to record later than that is long, which is why others wait; or what the program does."""
        if self.whole.per_step:
            return ""
        apart, shared = self.frame[apart_from_work(self.frame)], self.inputs.shared
        if shared and max(shared.late.values(), default=0) > self.whole.ns:
            late = apart[_apart_ranks(apart)]
        else:
            named = apart["topic"].map(passes).astype("bool") | apart["name"].ne("")
            late = apart[named & (apart["cost_ns"] > self.whole.ns)]
        return "" if late.empty else str(late["headline"].iloc[0])

    def beneath(self) -> Iterator[str]:
        """What the steps of a server lose, or what else there is to know of the bar."""
        if not (leading(self.frame).any() and self._on_devices):
            yield self._idle
            yield self._limits
            yield self._beside_work
            return
        rate = self.frame[leading(self.frame)].iloc[0]
        yield str(rate["text"]).removeprefix(rate["headline"]).lstrip(". ")
        saves = bool(saved_in(self.parts))
        if not saves:  # the two parts of the model that take most
            work = beside(self.frame) & (self.frame["role"] == "work")
            yield from (text.partition(" Then ")[0] for text in self.frame.loc[work, "text"])
        if self._leading_work not in self._of_whole or saves:
            yield f"{self._time}; {self._of_whole}."
        elif not self.advice:  # the work is in the headline
            yield "Nothing to save stands out."

    def _of_server(self) -> str:
        """Its time per token, and the finding that costs most, unless most of that is named already.

        Steps of a server are of several kinds: a share of all time is no matter of which one.
        """
        frame, advice = self.frame, self.advice
        rate = frame[leading(frame)].iloc[0]
        said = str(rate["headline"])
        found = {
            advice[part.finding].topic: advice[part.finding].cause_words
            for part in self.parts
            if part.form in (*SAVINGS, "unknown") and advice[part.finding].cause_words not in _NAMELESS
        }
        rows = frame[(frame["part_of"] == "") & frame["topic"].isin(found)]
        if rows.empty:
            return said
        most = rows.sort_values("share_pct", ascending=False, kind="stable").iloc[0]
        cause = found[str(most["topic"])]
        if most["share_pct"] < WARNING_PCT or stated(rate, most):
            return said
        parts = frame[frame["part_of"].eq(most["topic"]) & (2 * frame["share_pct"] >= most["share_pct"])]
        if any(stated(rate, row) for _, row in parts.iterrows()):
            return said if BY_TOPIC[most["topic"]].general else f"{said}: {cause}"
        return f"{said}; {percent(most['share_pct'])} of the time is due to {cause}"

    @property
    def _on_devices(self) -> bool:
        return "host" not in self.whole.split

    @property
    def _time(self) -> str:
        steps = self.scope.iterations
        if self.whole.per_step and steps and len(steps) == 1:
            return f"Step {steps[0]}: {duration(self.whole.ns)}"
        return f"{duration(self.whole.ns)} {'per step' if self.whole.per_step else 'in all'}"

    @cached_property
    def _of_whole(self) -> str:
        """What can be saved, or is lost; first of all the work, if that takes nearly all of the time."""
        frame, whole, work = self.frame, self.whole, self._leading_work
        savings = [part for part in self.parts if part.form in SAVINGS and is_large(part, whole)]
        if savings and not self._loses_far_more:
            said = self._reachable(savings)
            return f"{work.partition(',')[0]}; {said}" if work else said
        lost = [part for part in self.parts if part.form == "unknown" and is_large(part, whole)]
        if work:
            # what operators of the host could save is not simulated
            known = self._on_devices and not lost and not len(unknown(frame))
            return f"nothing to save stands out: {work}" if known else work
        if lost:
            most, time = self.advice[lost[0].finding], duration(lost[0].ns)
            if passes(most.topic):  # what is no part of a steady step is nothing to save
                return f"{time} of it is {most.cause_words}"
            return f"{time} of it is due to {most.cause_words}{_NOT_ESTIMATED}"
        if len(why := unknown(frame)):
            return f"where it goes is unknown: {decapitalised(lack(why.iloc[0]))}"
        if idle := idle_unknown(frame, whole):
            return f"why the {whole.device} is idle for {percent(idle)} of it is unknown"
        return f"nothing to save stands out: {_does(whole)}"

    @cached_property
    def _loses_far_more(self) -> bool:
        """Whether a cause whose saving is unknown takes far more of each step than can be saved elsewhere."""
        lost = next((part for part in self.parts if part.form == "unknown"), None)
        if lost is None or passes(self.advice[lost.finding].topic):
            return False
        return 0 < _FAR_MORE * saved_in(self.parts) < lost.ns

    @cached_property
    def _leading_work(self) -> str:
        """The work that takes nearly all of the time, unless much else is lost, or unknown."""
        row, least = work_of(self.frame), {}
        if row is not None and (longest := amount_claimed(row, "operator_time")) >= 50.0:
            # one operator of the host is most of it: what is lost in none has to be half as much
            rows = self.frame[self.frame["part_of"] == ""]
            least = {
                each["topic"]: longest / 2 for _, each in rows.iterrows() if is_apart_from_operators(each)
            }
        much = 100.0 * saved_in(self.parts) >= WARNING_PCT * self.whole.ns or any(
            100.0 * part.ns >= least.get(self.advice[part.finding].topic, WARNING_PCT) * self.whole.ns
            for part in self._named_losses
        )
        untold = len(unknown(self.frame)) or idle_unknown(self.frame, self.whole)  # about devices
        return "" if much or (self._on_devices and untold) else _works(self.frame, self.whole)

    def _reachable(self, savings: list[Part]) -> str:
        """What is left of the time without its largest causes.

        That hardly anything is left says nothing where a device has hardly anything to do.
        """
        whole, advice = self.whole, self.advice
        left = whole.ns - saved_in(self.parts)
        first = advice[savings[0].finding]
        if _HARDLY * left < whole.ns and first.lost_as == "idle":
            idle = percent(100.0 * whole.split["idle"] / whole.ns)
            return f"the {whole.device} idles {idle} of it{self._where(first)}"
        best = " at best" if any(part.form == "bound" for part in savings) else ""
        # the two that are largest in the bar, in the order of the findings, which every surface has
        largest = sorted(savings, key=lambda part: -part.ns)[:2]
        named = [advice[part.finding] for part in savings if part in largest]
        better = [rule.better for each in named if (rule := BY_TOPIC[each.topic]).better]
        causes = [each.cause_words for each in named if not BY_TOPIC[each.topic].better]
        changes = [f"with {in_words(better)}"] * bool(better) + [f"without {in_words(causes)}"] * bool(causes)
        more = (
            f", and {counted(len(savings) - len(named), 'more change')}" if len(savings) > len(named) else ""
        )
        return f"{_COULD_BE}{duration(left)}{best} {in_words(changes)}{more}"

    def _where(self, idle: Advice) -> str:
        """`, mostly in aten::normal_`, of idle time most of which lies in a call; else `: ` and its cause."""
        call = claimed(self.frame[self.frame["topic"] == idle.topic].iloc[0], "most_idle_in")
        return f", mostly in {call}" if call else f": {idle.cause_words}"

    @property
    def _idle(self) -> str:
        """For how long the device idles, where the headline says why and not how long."""
        lost = [part for part in self.parts if part.form in (*SAVINGS, "unknown")]
        if not self._on_devices or not lost or lost[0].lost_as != "idle" or " idle" in self.text:
            return ""
        idle = self.whole.split["idle"]
        of_host = sum(part.ns for part in lost if BY_TOPIC[self.advice[part.finding].topic].of_host)
        said = "Host-bound: the" if 2 * min(idle, 2 * of_host) >= self.whole.ns else "The"
        return f"{said} {self.whole.device} is idle for {percent(100.0 * idle / self.whole.ns)} of the time."

    @property
    def _beside_work(self) -> str:
        """What is lost beside the operators of a host, where the headline is about these."""
        lost = [part for part in self._named_losses if 100.0 * part.ns >= WARNING_PCT * self.whole.ns]
        if self._on_devices or not self._leading_work or not lost:
            return ""
        cause = capitalised(self.advice[lost[0].finding].cause_words)
        return f"{cause}: {self._amount(lost[0])}{_NOT_ESTIMATED}."

    def _amount(self, part: Part) -> str:
        return f"{duration(part.ns)}{' per step' * self.whole.per_step}"

    @property
    def _named_losses(self) -> list[Part]:
        """What is lost for a reason, or at a place, that is known, and what can be saved of it is not."""
        lost = [part for part in self.parts if part.form == "unknown"]
        return [part for part in lost if self.advice[part.finding].cause_words not in _NAMELESS]

    @property
    def _limits(self) -> str:
        whole, advice = self.whole, self.advice
        saved = any(part.form in SAVINGS for part in self.parts)
        # then the headline names no loss
        apart = saved or (self._on_devices and bool(self._leading_work))
        for form, end in (
            ("hidden", ", but taking that away alone saves nothing yet"),
            ("unknown", _NOT_ESTIMATED),
        ):
            found = [part for part in self.parts if part.form == form and is_large(part, whole)]
            if found and (form == "hidden" or (apart and not self._loses_far_more)):
                most = max(found, key=lambda part: part.ns)
                more = "another " if saved and form == "unknown" else ""
                if passes(advice[most.finding].topic):
                    more, end = "", ", which later steps do not have"
                found_in = advice[most.finding]
                name = found_in.noun if form == "hidden" else capitalised(found_in.cause_words)
                return f"{name}: {more}{self._amount(most)}{end}."
        rest = {name: _rest(self.parts, name) for name in CLASSES}
        left = sum(rest.values())
        if saved and 100.0 * left >= LEAST_PCT * whole.ns:
            main = max(rest, key=lambda name: rest[name])
            said = _DOES[main].format(device=whole.device, pct=percent(100.0 * rest[main] / left))
            return f"Of the time that remains, {said.removesuffix(' of it')}."
        if self._on_devices and self._leading_work:  # the headline has it
            return ""
        work = next(iter(self.frame.loc[self.frame["role"] == "work", "text"]), "")
        return str(work).partition(" Then ")[0]


def without_time(frame: pd.DataFrame) -> str:
    """The headline where no time is judged: what the recording is, or what it lacks for that."""
    of_recording = frame[(frame["section"] == RECORDING) & ~apart_from_work(frame)]
    if len(of_recording):
        return str(of_recording["headline"].iloc[0]).removesuffix(".")
    for role, cannot in (("main", "Where time goes"), ("idle", "Why devices are idle")):
        if len(why := unknown(frame, role)):
            return f"{cannot} is unknown: {decapitalised(_reason(why.iloc[0]))}"
    return "Nothing stands out"


def apart_from_work(frame: pd.DataFrame) -> pd.Series[bool]:
    """The rows of `overview` about what is recorded and not judged."""
    return (frame["section"] == RECORDING) & (frame["role"] == "aside") & (frame["headline"] != "")


def is_known(frame: pd.DataFrame, whole: Whole | None) -> bool:
    """Whether it is known where the time goes: all of it, or to operators of the host, nearly all of it."""
    of_host = whole is not None and "host" in whole.split and _works(frame, whole)
    return bool(of_host) or not len(unknown(frame))


def unknown(frame: pd.DataFrame, about: str = "main") -> pd.DataFrame:
    """Why it is unknown where the time goes, or why devices are idle, if it is."""
    return frame[(frame["severity"] == OPEN) & (frame["role"] == about)]


def idle_unknown(frame: pd.DataFrame, whole: Whole) -> float:
    """The idle time whose causes are unknown, in % of the time; 0 where it is little, or they are known."""
    pct = 100.0 * whole.split.get("idle", 0) / whole.ns if whole.ns else 0.0
    return pct if pct >= NOTE_PCT and len(unknown(frame, "idle")) else 0.0


def lack(row: pd.Series) -> str:
    """`no shapes of operators`, of "The trace has no shapes of operators: it is unknown ..."."""
    return _reason(row).removeprefix("The trace has ")


def _reason(row: pd.Series) -> str:
    return str(row["text"]).partition(": it is unknown")[0]


def _apart_ranks(frame: pd.DataFrame) -> pd.Series[bool]:
    """The rows about ranks that recorded at different times."""
    return frame["topic"].map(is_unjudged).astype("bool")


def _does(whole: Whole) -> str:
    """What most of the time goes to."""
    if "host" in whole.split:
        return "no cause takes much of it"
    main = max(whole.split, key=lambda name: whole.split[name])
    share = percent(100.0 * whole.split[main] / whole.ns if whole.ns else 0)
    return _DOES[main].format(device=whole.device, pct=share)


def work_of(frame: pd.DataFrame) -> pd.Series | None:
    """The row about the work that takes nearly all of the time, if any does."""
    verdict = frame[(frame["section"] == VERDICT) & ~leading(frame) & ~beside(frame)]
    verdict = verdict[verdict["share_pct"] >= COMPUTE_BOUND_PCT]
    return None if verdict.empty else verdict.iloc[0]


def _works(frame: pd.DataFrame, whole: Whole) -> str:
    """The work that takes nearly all of the time, and what it mostly is; "" if none does."""
    row = work_of(frame)
    if row is None:
        return ""
    said = _DOES["compute"].format(device=whole.device, pct=percent(row["share_pct"]))
    if "host" in whole.split:
        said = f"{BY_TOPIC[row['topic']].cause} take {percent(row['share_pct'])} of it"
    return f"{said}, {row['headline']}" if row["headline"] else said


def _rest(parts: list[Part], lost_as: str) -> int:
    return sum(part.ns for part in parts if part.lost_as == lost_as and part.form == "rest")
