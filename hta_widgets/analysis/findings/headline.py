"""The answer of the overview in one sentence: what to change first, in the order of the findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from hta_widgets.analysis.findings.finding import NOTE_PCT, WARNING_PCT
from hta_widgets.analysis.findings.rules import beside, leading
from hta_widgets.analysis.findings.saving import WITHIN_SPREAD
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
from hta_widgets.formatting import capitalised, counted, decapitalised, percent

_BEYOND = 1.1


def title(finding: pd.Series | Mapping[str, Any]) -> str:
    """A row of `overview` in a few words, for a heading."""
    return capitalised(str(finding["title"]).rstrip(",."))


def apart_from_work(frame: pd.DataFrame) -> pd.Series[bool]:
    """The rows of `overview` about what is recorded and not judged, which say so before all else."""
    return (frame["section"] == RECORDING) & (frame["role"] == "aside") & (frame["headline"] != "")


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `overview` in one sentence; about a server it begins with its time per token."""
    serving = leading(frame)
    if not serving.any():
        return _answer(frame)
    work = beside(frame) & (frame["role"] == "work")
    rest = frame[~serving & ~work]
    if work.any():  # parts of the model say more than kinds of kernels
        computing = rest["section"] == VERDICT
        rest = rest.assign(headline=rest["headline"].mask(computing, frame.loc[work, "headline"].iloc[0]))
    said = _answer(rest)
    return f"{frame.loc[serving, 'headline'].iloc[0]}. {said}"


def _answer(frame: pd.DataFrame) -> str:
    """What stands apart from the steady work, then what is said of that."""
    apart = frame[apart_from_work(frame)]
    said = _judged(frame)
    if apart.empty:
        return said
    first, *others = apart["headline"]
    return f"{'; '.join([first, *map(decapitalised, others), f'in the rest, {decapitalised(said)}'])}"


def _judged(frame: pd.DataFrame) -> str:
    of_memory = frame["section"] == MEMORY
    said = _of_time(frame[~of_memory])
    if not of_memory.any():
        return said
    return f"{said.removesuffix('.')}; {frame.loc[of_memory, 'headline'].iloc[0]}."


def _of_time(frame: pd.DataFrame) -> str:
    doubtful = frame["role"] == "doubt"
    said = _sentence(frame[~doubtful & (frame["role"] != "aside") & (frame["part_of"] == "")])
    if not doubtful.any() or frame.loc[doubtful, "share_pct"].iloc[0] < WARNING_PCT:
        return said
    doubt = frame[doubtful].iloc[0]
    return f"{said.removesuffix('.')}; {percent(doubt['share_pct'])} {doubt['headline']}."


def _sentence(frame: pd.DataFrame) -> str:
    if len(about := frame[frame["section"] == RECORDING]):
        return str(about["headline"].iloc[0])
    if (withheld := frame["topic"] == "withheld").any():
        return _cannot(frame[withheld])
    found = frame[~frame["severity"].isin((OPEN, VERDICT, CHECKED))]
    verdict = frame[frame["section"] == VERDICT]
    now = found[found["section"] != LATER]
    unsure = now["saving"].str.contains(WITHIN_SPREAD, regex=False)
    if len(verdict) and not (now["severity"].eq("warning") & ~unsure).any():
        return _working(verdict.iloc[0], now)
    if len(found):
        reported = found if now.empty else now
        return f"{_first(reported)}{_others(reported)}."
    unknown = frame[frame["severity"] == OPEN]
    if unknown["role"].isin(("main", "idle")).any():
        return _cannot(unknown)
    limit = f"no known cause takes {NOTE_PCT:g} % of the time or more"
    if len(unknown):
        return f"Nothing stands out in what can be judged: {limit}."
    return f"Nothing stands out: {limit}."


def _cannot(unknown: pd.DataFrame) -> str:
    """What is unknown first of all, and what the trace lacks for it."""
    for role, cannot in (("main", "Where time goes"), ("idle", "Why devices are idle")):
        texts = unknown.loc[unknown["role"] == role, "text"]
        if len(texts):
            lacking = texts.iloc[0].partition(": it is unknown")[0]
            return f"{cannot} is unknown: {decapitalised(lacking)}."
    return str(unknown["text"].iloc[0])


def _working(verdict: pd.Series, now: pd.DataFrame) -> str:
    """What devices, or hosts, do nearly all of the time, and what else costs most."""
    working = f"{verdict['title']} takes {percent(verdict['share_pct'])} of the time"
    now = now[now["share_pct"] > 0]  # start-up before the judged time costs none of it
    if now.empty:
        return f"{', '.join(filter(None, (working, verdict['headline'])))}."
    most = _cost(now.iloc[0])
    return f"{working}; {decapitalised(most)}{_saving(now.iloc[0])}."


def _first(found: pd.DataFrame) -> str:
    """The first finding: what it costs, and what a change saves."""
    first = found.iloc[0]
    if first["section"] == SAVES:
        return f"{_cost(first)} of the time{_saving(first, most=len(found) > 1)}"
    if first["section"] == LATER:
        return f"{_cost(first)} of the time, but without it nothing is saved now"
    most = len(found) > 1 and bool(first["share_pct"] == found["share_pct"].max())
    return f"{first['title']} costs {'most, ' * most}{percent(first['share_pct'])} of the time"


def _others(found: pd.DataFrame) -> str:
    """A larger cost whose saving is unknown, and how many more causes save something or may."""
    first, rest = found.iloc[0], found.iloc[1:]
    others = len(rest)
    larger = rest[(rest["section"] == UNKNOWN) & (rest["share_pct"] > first["share_pct"])]
    said = ""
    if first["section"] == SAVES and len(larger):
        most = _cost(larger.iloc[0])
        said, others = f". {most}, how much of it can be saved is unknown", others - 1
    if others <= 0:
        return said
    return f"{said}. {counted(others, 'more cause')} {'stands' if others == 1 else 'stand'} out"


def _cost(finding: pd.Series) -> str:
    return f"{finding['title']} costs {percent(finding['share_pct'])}"


def _saving(finding: pd.Series, most: bool = False) -> str:
    """`. Without it, at most 20.1 % is saved`, more than by other changes; empty where that is not known."""
    if finding["section"] != SAVES:
        return ""
    at_most = "" if finding["method"] == "replay" else "at most "
    share = f"{at_most}{percent(finding['saving_pct'])}"
    other = ", more than by any other change" * most
    if finding["saving_pct"] <= _BEYOND * finding["share_pct"]:
        return f". Without it, {share} is saved{other}"
    own = finding["cost_on_rank_pct"]
    if abs(own - finding["share_pct"]) >= (_BEYOND - 1) * finding["share_pct"]:
        # of a rank on which it costs more than on average
        return f". Without it, {share} is saved on rank {finding['saving_rank']}{other}"
    return f". Fixing it saves {share}{other}"
