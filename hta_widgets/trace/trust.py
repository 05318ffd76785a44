"""How far a recording can be trusted, in one line: fully, with notes, or not for all that could be said."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from hta_widgets.formatting import capitalised, counted, in_words, ranks_in_words
from hta_widgets.trace.records.vetoes import CLAIMS, Claim, Veto, decisive, reason_of
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.rank_trace import RankTrace

Level = Literal["full", "notes", "limited"]

_WITHHELD: Final[dict[Claim, str]] = {
    "idle_causes": "causes of idle time",
    "savings": "savings",
    "ranks": "comparisons of ranks",
    "steps": "step times",
    "efficiency": "device use",
}
# Checks of `Trace.health` that say something about the program, or about names, and not about records.
_OF_NO_RECORD = frozenset(
    {
        "unclassified", "maybe_communication", "no_communication", "class_rules", "memory", "out_of_memory",
        "rank_contradicted", "duplicate_rank",
    }
)  # fmt: skip
# Remarks that concern every number, though nothing is wrong.
_REMARKS = frozenset({"whole_microseconds"})
# Checks whose sentence is not about what they count, or counts it itself.
_COUNT_THEMSELVES = frozenset({"absent_ranks", "several_jobs", "several_processes"})
_NOTES = 16


@dataclass(frozen=True)
class Trust:
    """How far a recording can be trusted."""

    # "full"; "notes": records are missing or wrong, and no conclusion suffers; "limited": some conclusions
    # are withheld
    level: Level
    text: str  # the level in one sentence; where it is limited, what is withheld, and why
    # what is wrong with the records and what to do about it, a sentence or two each
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON, and for the browser."""
        return {**asdict(self), "notes": list(self.notes)}


def trust_in(trace: Trace) -> Trust:
    """How far the records of a job can be trusted."""
    limiting = [veto for rank in trace.ranks for veto in dict.fromkeys(_limiting(trace.rank(rank)))]
    notes = _notes(trace)
    if trace.several_jobs:
        return Trust("limited", f"Limited: ranks are not compared: {trace.several_jobs}.", notes)
    if limiting:
        return Trust("limited", f"Limited: {_withheld(limiting, len(trace.ranks) > 1)}.", notes)
    if notes:
        return Trust("notes", f"Full, with {counted(len(notes), 'note')}.", notes)
    return Trust("full", "Full: no record is missing or wrong.")


def forbidden(claims: Iterable[Claim]) -> str:
    """These classes of claims in words: `savings and step times`."""
    claims = set(claims)
    if claims == set(CLAIMS):
        return "conclusions about time"
    return in_words([words for claim, words in _WITHHELD.items() if claim in claims])


def _withheld(vetoes: list[Veto], of_several: bool) -> str:
    """`savings are withheld: 3 device records in the middle have no call`, of the veto that forbids most."""
    worst = max(vetoes, key=lambda veto: (len(veto.claims), veto.end_ns - veto.start_ns))
    alike = [veto for veto in vetoes if (veto.kind, veto.claims) == (worst.kind, worst.claims)]
    ranks = sorted({veto.rank for veto in alike})
    where = f" ({ranks_in_words(ranks)})" if of_several else ""
    reason = reason_of([veto for veto in alike if veto.rank == ranks[0]])
    return f"{forbidden(worst.claims)} are withheld: {reason}{where}"


def _limiting(rank_trace: RankTrace) -> Iterator[Veto]:
    """The vetoes that matter for its complete steps, or for all of it."""
    frame = rank_trace.iterations
    complete = tuple(frame.loc[~frame["partial"], "iteration"].tolist()) if rank_trace.is_marked else ()
    for claim in CLAIMS if rank_trace.vetoes else ():
        yield from decisive(rank_trace, Scope(iterations=complete or None), claim)


def _notes(trace: Trace) -> tuple[str, ...]:
    health = trace.health
    of_records = health["severity"].isin(("error", "warning")) & ~health["check"].isin(_OF_NO_RECORD)
    found: dict[tuple[str, str], list[int | None]] = {}
    for row in health[of_records | health["check"].isin(_REMARKS)].to_dict("records"):
        counts = row["detail"][:1].islower() and row["check"] not in _COUNT_THEMSELVES
        count = f"{row['count']:,} " if counts and row["count"] > 1 else ""
        key = f"{count}{row['detail']}", str(row["remedy"])
        found.setdefault(key, []).append(None if row["rank"] != row["rank"] else row["rank"])
    notes = []
    for (detail, remedy), ranks in list(found.items())[:_NOTES]:
        known = sorted(rank for rank in ranks if isinstance(rank, int))
        where = f"{ranks_in_words(known)}: " if known and len(trace.ranks) > 1 else ""
        notes.append(" ".join(_as_sentence(part) for part in (f"{where}{detail}", remedy) if part))
    return tuple(notes)


def _as_sentence(text: str) -> str:
    is_word = text.split()[0].isalpha()  # a call is written as it is
    return f"{capitalised(text)}." if is_word else f"{text}."
