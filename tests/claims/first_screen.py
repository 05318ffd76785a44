"""What the first screen says in a line, recomputed: a reader for each form.

The numbers of findings are claims, which have readers of their own. Here stands what is said of all of them:
the step that all is a share of, what of it can be saved, and what most of it is. A line of no form that is
known here is a fault, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from statistics import mean
from typing import Any, NamedTuple

import pandas as pd

from hta_widgets.analysis.findings.bar import SAVINGS
from hta_widgets.analysis.findings.rules import BY_TOPIC
from hta_widgets.analysis.findings.story import Story
from tests.claims.job import Job, PlainRank
from tests.claims.measures.idle import RUNTIME

__all__ = ["faults_of_screen"]

Row = dict[str, Any]

TIME = r"[\d,.]+ (?:ns|µs|ms|s)\b"
SHARE = r"(?:< )?[\d,.]+ %"
_NS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
_WORK = {
    r"the \w+ computes": "computing",
    "communication takes": "communicating",
    "copies take": "copying",
    r"the \w+ is idle for": "idle",
}
_IS = "|".join(_WORK)
_OF_CLASS = {
    "compute": "computing", "communication": "communicating", "memory": "copying", "idle": "idle",
}  # fmt: skip
_NAME = re.compile(r"\S*[A-Za-z_…]\S*")
_LAUNCH = re.compile(r"(?:cuda|hip|musa)\w*(?:Launch|Memcpy)|cuLaunch|urEnqueue")
_OF_HOST = ("idle_host", "launch_bound")
_REL = 0.013  # three digits, and what readers may differ by


class Screen(NamedTuple):
    """A job, what is found in it, what the first screen says, and its step as it is recomputed."""

    job: Job
    rows: list[Row]
    story: Story
    whole_ns: float
    parts: dict[str, float]

    @property
    def saved(self) -> float:
        """What is said to be saved, ns."""
        said = re.match(rf"({TIME})(?: at most)? can be saved", self.story.saved)
        return ns_of(said[1]) if said else 0.0


Reader = Callable[[Screen, re.Match[str]], str]
"""What is wrong with a line of a form; "" if nothing is."""
_TIMED: dict[str, Reader] = {}
_UNTIMED: dict[str, Reader] = {}


def form(forms: dict[str, Reader], pattern: str) -> Callable[[Reader], Reader]:
    """Register the reader of a form."""

    def register(reader: Reader) -> Reader:
        forms[pattern] = reader
        return reader

    return register


def faults_of_screen(job: Job, frame: pd.DataFrame, story: Story) -> Iterator[str]:
    """What is wrong in the lines."""
    rows = frame.to_dict("records")
    working = [rank for rank in job.ranks.values() if rank.work] or list(job.ranks.values())
    steps = {
        rank.number: 1 if story.scope.endswith("in all") else len(rank.judged_steps) or len(job.steps) or 1
        for rank in working
    }
    whole = mean(rank.judged_ns / steps[rank.number] for rank in working) if working else 0.0
    screen = Screen(job, rows, story, whole, _parts(working, steps))
    yield from _of_headline(screen)
    yield from _of_bar(screen)
    for row in rows:
        if unclaimed(row["headline"], [row]):
            yield f"a number that is no claim: {row['headline']!r}"


def _parts(ranks: list[PlainRank], steps: dict[int, int]) -> dict[str, float]:
    """What devices do in a step, ns."""
    of_ranks = [(rank.shares(rank.windows), steps[rank.number]) for rank in ranks if rank.work]
    names = of_ranks[0][0] if of_ranks else ()
    return {name: mean(shares[name] / count for shares, count in of_ranks) for name in names}


def _of_headline(screen: Screen) -> Iterator[str]:
    text = screen.story.headline
    apart = re.fullmatch(rf"(.+); of (?:the rest|the ({TIME}) that all record), (.+)", text)
    if apart and apart[2] and far(apart[2], screen.whole_ns):
        yield f"all record {screen.whole_ns:,.0f} ns: {text!r}"
    if apart and not any(row["role"] == "aside" and row["headline"] == apart[1] for row in screen.rows):
        yield f"no finding says that: {apart[1]!r}"
    could = re.fullmatch(rf"(.+); the (?:rest \(({TIME})\)|({TIME}) that all record) (could be .+)", text)
    if could and far(could[2] or could[3], screen.whole_ns):
        yield f"{screen.whole_ns:,.0f} ns are judged: {text!r}"
    timed = re.fullmatch(rf"(?:Step \d+: )?({TIME})(?: per step| in all)?; (.*)", text)
    if timed is None and not apart and not could:
        named, _, cause = text.rpartition(" between steps: ")
        if named and any(each.cause_words == cause for each in screen.story.advice):
            text = f"{named} between steps"
        if of_server := re.fullmatch(rf"(.+); ({SHARE}) of the time is due to (.+)", text):
            text = of_server[1]
            yield from _costs_server(screen, of_server[2], of_server[3])
        if not any(row["headline"].startswith(text) for row in screen.rows):  # which have claims of their own
            yield from _read(_UNTIMED, screen, text)
        return
    if timed and far(timed[1], screen.whole_ns):
        yield f"a step takes {screen.whole_ns:,.0f} ns: {text!r}"
    said = f"it {could[4]}" if could else apart[3] if apart else timed[2] if timed else ""
    for clause in re.split(r"; (?=it could be )", said):
        yield from _read(_TIMED, screen, clause)


def _costs_server(screen: Screen, share: str, cause: str) -> Iterator[str]:
    """That a finding is called so and costs as much, and that none costs more."""
    topics = [each.topic for each in screen.story.advice if each.cause_words == cause]
    rows = [row for row in screen.rows if row["topic"] in topics and row["part_of"] == ""]
    if not rows:
        yield f"no finding is called {cause}"
    elif unclaimed(share, rows):
        yield f"{cause} costs {rows[0]['share_pct']} %, not {share}"
    if other := _not_its_ranks(screen, cause):
        yield other


def _of_bar(screen: Screen) -> Iterator[str]:
    story = screen.story
    said = re.match(rf"({TIME}) (remain|per step|in all)", story.remains)
    if story.whole_ns and (not said or far(said[1], screen.whole_ns - screen.saved, screen.whole_ns)):
        yield f"of {screen.whole_ns:,.0f} ns {screen.saved:,.0f} are saved: {story.remains!r}"
    if share := re.search(rf"\(({SHARE})\)", story.saved):
        truth = 100 * screen.saved / screen.whole_ns
        if abs(number(share[1]) - truth) > 0.02 * truth + 0.1:
            yield f"{truth:.3g} % are saved: {story.saved!r}"
    if screen.parts and screen.saved and not any(each.lost_as == "compute" for each in story.advice):
        least = min(_longest_stream(rank) for rank in screen.job.ranks.values() if rank.work)
        if screen.whole_ns - screen.saved < (1 - _REL) * least - 0.002 * screen.whole_ns:
            yield f"kernels on one stream take {least:,.0f} ns: {story.saved!r}"
    if left := re.search(rf"Of the time that remains, ({_IS}) ({SHARE})", story.limits):
        work = next(name for words, name in _WORK.items() if re.fullmatch(words, left[1]))
        ns = number(left[2]) / 100 * (screen.whole_ns - screen.saved)
        most = screen.parts.get(work, screen.whole_ns)
        most = max(most, ns * (work != "computing"))  # of other work, what was hidden may come to show
        if ns > most * (1 + _REL) + 0.006 * screen.saved + 2e3:
            yield f"of {most:,.0f} ns {screen.saved:,.0f} are saved: {story.limits!r}"
    idle = re.search(rf"\b[Tt]he \w+ is idle for ({SHARE}) of the time\.", story.limits)
    if idle and (wrong := _far_from(screen, idle[1], "idle")):
        yield f"{wrong}: {story.limits!r}"
    if "Host-bound" in story.limits:
        waits = sum(row["share_pct"] for row in screen.rows if row["topic"] in _OF_HOST)
        if not idle or min(number(idle[1]), 2 * waits) < 50.0:
            yield f"the device waits for the host {waits} %: {story.limits!r}"
    steps = re.search(r", (\d[\d,]*)(?: of (\d[\d,]*))? steps?\b", story.scope)
    if steps and number(steps[1]) != len(screen.job.steps):
        yield f"{len(screen.job.steps)} steps are judged: {story.scope!r}"
    marked = screen.job.trace.iterations
    recorded = len({*marked.loc[marked["rank"].isin(screen.job.ranks), "iteration"]})
    if steps and steps[2] and number(steps[2]) != recorded:
        yield f"{recorded} steps are recorded: {story.scope!r}"
    if (time := re.search(rf", ({TIME}) (?:per step|in all)", story.scope)) and far(time[1], screen.whole_ns):
        yield f"a step takes {screen.whole_ns:,.0f} ns: {story.scope!r}"


def _longest_stream(rank: PlainRank) -> float:
    """The kernels of the stream that computes most, per step, which no change makes overlap."""
    of_streams: dict[Any, int] = {}
    for each in rank.judged(rank.kernels):
        of_streams[each.stream] = of_streams.get(each.stream, 0) + each.dur
    return max(of_streams.values(), default=0) / max(len(rank.judged_steps), 1)


@form(_TIMED, rf"it could be ({TIME})( at best)? (with(?:out)? .+)")
def _reachable(screen: Screen, said: re.Match[str]) -> str:
    if far(said[1], screen.whole_ns - screen.saved, screen.whole_ns):
        return f"{screen.whole_ns - screen.saved:,.0f} ns remain"
    if said[2] and "at most" not in screen.story.saved:
        return "nothing of it is an upper bound"
    return _not_its_changes(screen, said[3]) or _not_its_ranks(screen, said[3])


def _not_its_changes(screen: Screen, said: str) -> str:
    """That what the time could be with, or without, are what the bar saves."""
    saves = [screen.story.advice[part.finding] for part in screen.story.parts if part.form in SAVINGS]
    better = {each.cause_words: BY_TOPIC[each.topic].better for each in saves}
    left, named = said, 0
    for cause, instead in sorted(better.items(), key=lambda each: -len(each[0])):
        word, change = ("with", instead) if instead else ("without", cause)
        if found := re.search(rf"(?:\b{word}|,| and) {re.escape(change)}", left):
            left, named = left.replace(found[0], " and", 1), named + 1
    more = re.search(r", and (\d+) more changes?", left)
    if re.sub(r"\b(?:and|with|without)\b|[ ,]", "", left.replace(more[0] if more else "", "")):
        return f"no change is called {left}"
    return "" if named + (int(more[1]) if more else 0) <= len(saves) and named else "others are saved"


@form(_TIMED, rf"({TIME})(?: of it)? is (?:due to |(?=start-up))(.+?)(?:, saving not .+)?")
def _lost(screen: Screen, said: re.Match[str]) -> str:
    advice = next((each for each in screen.story.advice if each.cause_words == said[2]), None)
    if advice is None:
        return f"no finding is called {said[2]}"
    most = screen.parts.get(_OF_CLASS.get(advice.lost_as, ""), screen.whole_ns)
    (row,) = (row for row in screen.rows if row["topic"] == advice.topic)
    if pd.isna(row["rank"]):  # else a share of one rank's own time, which its claims have
        most = min(most, row["share_pct"] / 100 * screen.whole_ns)
    if ns_of(said[1]) > (1 + _REL) * most + 2e3:
        return f"at most {most:,.0f} ns are {advice.lost_as} in it"
    return _not_its_ranks(screen, said[2])


@form(_TIMED, r"where it goes is unknown: (.+)")
def _unknown(screen: Screen, said: re.Match[str]) -> str:
    return _lacking(screen, said[1])


@form(_TIMED, rf"why the \w+ is idle for ({SHARE}) of it is unknown")
def _idle(screen: Screen, said: re.Match[str]) -> str:
    return _far_from(screen, said[1], "idle")


@form(_TIMED, rf"the \w+ idles ({SHARE})(?: of it)?(?:: (.+)|, mostly in (.+))")
def _waits(screen: Screen, said: re.Match[str]) -> str:
    if not any(_cause_of(row) == said[2] or f"lies in {said[3]}" in row["text"] for row in screen.rows):
        return "no finding says that"
    return _far_from(screen, said[1], "idle")


@form(_TIMED, rf"(?:nothing to save stands out: )?({_IS}) ({SHARE})(?: of it)?(?:, (.+))?")
def _nothing(screen: Screen, said: re.Match[str]) -> str:
    if said[3] and not any(row["role"] == "work" and row["headline"] == said[3] for row in screen.rows):
        return "no work is called that"
    work = next(name for words, name in _WORK.items() if re.fullmatch(words, said[1]))
    most = max(screen.parts, key=lambda name: screen.parts[name])
    if screen.parts[work] < (1 - _REL) * screen.parts[most]:
        return f"{most} takes more"
    return _far_from(screen, said[2], work)


@form(_TIMED, rf"operators on the CPU take ({SHARE})(?: of it)?(?:, (.+))?")
def _work(screen: Screen, said: re.Match[str]) -> str:
    rows = [row for row in screen.rows if row["role"] == "work" and row["headline"] == (said[2] or "")]
    return unclaimed(f"{said[1]} {said[2]}", rows) if rows else "no work is called that"


@form(_TIMED, r"nothing to save stands out: no cause takes much of it")
def _no_cause(screen: Screen, said: re.Match[str]) -> str:
    return "a work is found" if any(row["role"] == "work" for row in screen.rows) else ""


def _read(forms: dict[str, Reader], screen: Screen, text: str) -> Iterator[str]:
    for pattern, reader in forms.items():
        if said := re.fullmatch(pattern, text):
            if what := reader(screen, said):
                yield f"{what}: {text!r}"
            return
    yield f"nothing recomputes it: {text!r}"


@form(_UNTIMED, r"(?:Where time goes|Why devices are idle) is unknown: (.+)")
def _abstains(screen: Screen, said: re.Match[str]) -> str:
    """A row says why."""
    reasons = [f"{row['text']} {row['headline']}".lower() for row in screen.rows if row["severity"] == "open"]
    if not any(said[1].lower() in reason for reason in reasons):
        return "no finding says that"
    return _lacking(screen, said[1])


@form(_UNTIMED, r"Nothing stands out")
def _no_finding(screen: Screen, said: re.Match[str]) -> str:
    return "something does" if any(row["share_pct"] >= 3 for row in screen.rows) else ""


def _lacking(screen: Screen, reason: str) -> str:
    """Launches without device work are counted; other numbers are claims of the rows that say why."""
    if lost := re.search(rf"({SHARE}) of the launches|(\d[\d,]*) launch(?:es)? recorded", reason):
        calls = [
            call.correlation in answered
            for rank in screen.job.ranks.values()
            for answered in [{work.correlation for work in rank.work}]
            for call in rank.events
            if call.category in RUNTIME and _LAUNCH.match(call.name)
        ]
        truth = 100 * calls.count(False) / max(len(calls), 1) if lost[1] else len(calls)
        return "" if abs(number(lost[0]) - truth) <= 0.01 * truth + 0.1 else f"it is {truth:.4g}"
    return unclaimed(reason, screen.rows)


def _cause_of(row: Row) -> str:
    return BY_TOPIC[row["topic"]].cause if row["topic"] in BY_TOPIC else ""


def _not_its_ranks(screen: Screen, causes: str) -> str:
    """Ranks that a cause names are those of its finding."""
    named = {int(rank) for rank in re.findall(r"\brank (\d+)", causes)}
    known = {int(row["rank"]) for row in screen.rows if pd.notna(row["rank"])}
    return f"findings are about ranks {sorted(known)}" if named - known else ""


def _far_from(screen: Screen, share: str, work: str) -> str:
    truth = 100 * screen.parts[work] / screen.whole_ns
    return f"{truth:.3g} %" if abs(number(share) - truth) > 0.006 * truth + 0.1 else ""


def unclaimed(text: str, rows: list[Row]) -> str:
    """A number in a text that is no claim of these rows."""
    shown = {claim["shown"] for row in rows for claim in json.loads(row["claims"] or "[]")}
    for each in sorted(shown, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.]){re.escape(each)}(?![\w%])", " ", text)
    left = _NAME.sub(" ", re.sub(r"\bprocesses \d+(?: and \d+)+", " ", text))
    return f"a number that is no claim: {left.strip()!r}" if re.search(r"\d", left) else ""


def number(text: str) -> float:
    """`1,234 %` -> 1234.0."""
    found = re.search(r"\d[\d,.]*", text)
    assert found is not None, text
    return float(found[0].replace(",", ""))


def ns_of(text: str) -> float:
    """`19.0 ms` -> 19000000.0."""
    return number(text) * _NS[text.split()[-1]]


def far(said: str, truth: float, of: float = 0.0) -> bool:
    """Whether a time is not the one that is said; `of`: what it is a part of, to whose digits it is known."""
    return abs(ns_of(said) - truth) > _REL * abs(truth) + 0.006 * of + 2.0
