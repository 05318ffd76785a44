"""The verdict: what costs the job most time, as two or three cards above everything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pandas as pd
import traitlets as t

from hta_widgets.analysis.findings.headline import title
from hta_widgets.analysis.findings.sections import CHECKED, LATER, OPEN, SAVES, UNKNOWN, VERDICT
from hta_widgets.analysis.findings.together import saved_together
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.expressions import parse_all
from hta_widgets.analysis.wholes import whole_of
from hta_widgets.formatting import counted, duration, in_words, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_analysis
from hta_widgets.widgets.computed import Computed
from hta_widgets.widgets.evidence import evidence_ns
from hta_widgets.widgets.notes import notes_on
from hta_widgets.widgets.selection import Integers, Selection, Window

__all__ = ["Verdict"]

_KIND = "overview"
_MOST = 3

_HOW = {
    "replay": "replayed",
    "bound": "a bound, replayed",
    "analytic": "a bound, not replayed",
}


@dataclass(frozen=True)
class _Told:
    sentence: str
    cards: list[dict[str, Any]]
    together: str
    further: str
    kinds: list[str]
    edits: list[str]


class Verdict(Computed):
    """What to change first, why, and what it saves: the first findings of `analysis.overview`.

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        selection: the `Selection` to share with other parts.
    """

    _view = t.Unicode("verdict").tag(sync=True)
    _depends: ClassVar = ("ranks", "iterations", "window", "streams")
    _from_browser: ClassVar = ("shown",)
    _patient = True

    ranks = Integers(help="ranks that the findings are about; () means all")
    iterations = Integers(help="iterations that the findings are about; () means all that can be judged")
    window = Window(help="(start, end) in ns that the findings are about; None means all time")
    streams = Integers(help="streams that the findings are about; () means all")
    sentence = t.Unicode(help="the verdict in one sentence").tag(sync=True)
    cards: t.List[Any] = t.List(
        help="the first findings: [{title, text, figure, caption, per_step, how, span, saving, suggestion, "
        "caveat, replayed, evidence}]"
    ).tag(sync=True)
    together = t.Unicode(help="how long a step takes now, and once the changes of the cards are made").tag(
        sync=True
    )
    further = t.Unicode(help="what else there is: more findings, what was checked, what is unknown").tag(
        sync=True
    )
    shown = t.Int(-1, min=-1, help="the card whose evidence is shown; -1 for none").tag(sync=True)
    kinds: t.List[str] = t.List(t.Unicode(), help="panels that the findings point to, the first first")
    _edits: Sequence[str] = ()  # of each card; "" where a replay makes none
    _judged = Scope()  # what the cards are about

    def __init__(self, trace: Any, *, selection: Selection | dict[str, Any] | None = None) -> None:
        super().__init__(trace, selection=selection)

    def _question(self) -> Scope:
        scope: Scope = super()._question()
        if self.shown >= 0:  # showing a finding selects its rank and iteration, and must not change it
            same = replace(scope, ranks=self._judged.ranks, iterations=self._judged.iterations)
            scope = self._judged if same == self._judged else scope
        self._judged = scope
        return scope

    def _refresh(self, change: Any = None) -> None:
        if change is None or self.shown < 0 or self._judged != self._question():
            super()._refresh(change)

    def _compute(self, question: Scope) -> _Told:
        frame = cached_analysis(self.trace, _KIND, question)
        notes = notes_on(self.trace, _KIND, question, frame)
        rows = [row for _, row in frame.iterrows()]
        wholes = (at for at, row in enumerate(rows) if not row["part_of"])
        found = [at for at in wholes if rows[at]["severity"] not in (CHECKED, OPEN)]
        unknown = [at for at, row in enumerate(rows) if row["severity"] == OPEN]
        first = (found or unknown)[:_MOST]
        saving = frame.iloc[[at for at in first if rows[at]["section"] == SAVES]]
        most = max((_percent(rows[at], "saving_high_ns") for at in first), default=0.0)
        return _Told(
            ANALYSES[_KIND].sentence(frame),
            [_card(self.trace, rows[at], notes[at], most, _parts(frame, rows[at])) for at in first],
            _together(self.trace, question, saving),
            _further(self.trace, question, frame, max(0, len(found) - _MOST)),
            [kind for kind in dict.fromkeys(frame["kind"]) if kind],
            [rows[at]["edits"] for at in first],
        )

    def _show(self, told: _Told) -> None:
        if told.cards != self.cards:
            self.shown = -1
        self.sentence, self.cards, self.further = told.sentence, told.cards, told.further
        self.together = told.together
        self.kinds, self._edits = told.kinds, told.edits

    def edits_of(self, card: int) -> list[Edit]:
        """The changes whose saving a card tells, as the panel "what_if" takes them.

        Raises:
            LookupError: there is no such card, or no edit makes its change.
        """
        if not 0 <= card < len(self._edits) or not self._edits[card]:
            raise LookupError("no replay makes that change")
        return list(parse_all(self._edits[card]))

    def change_trace(self, trace: Trace) -> None:
        """Judge the same job read another way; what is shown is shown no longer."""
        self.shown = -1
        super().change_trace(trace)


def _parts(frame: pd.DataFrame, row: pd.Series) -> str:
    """` Part of it: zeroing gradients (8.23 %).`; "" for a finding without parts."""
    parts = frame[frame["part_of"] == row["topic"]]
    names = [f"{title(part).lower()} ({percent(part['share_pct'])})" for _, part in parts.iterrows()]
    return f" Part of it: {in_words(names)}." if names else ""


def _card(trace: Trace, row: pd.Series, note: dict[str, Any], most: float, parts: str) -> dict[str, Any]:
    rank = f": rank {row['rank']}" if pd.notna(row["rank"]) and len(trace.ranks) > 1 else ""
    figure, caption = _figure(row)
    evidence = {
        name: note[name] for name in ("kind", "ranks", "iterations", "names", "focus") if name in note
    }
    return {
        "title": f"{title(row)}{rank}",
        "severity": row["severity"],
        "text": _beyond(row["text"], title(row)) + parts,
        "figure": figure,
        "caption": caption,
        "per_step": _per_step(row),
        "how": _how(row),
        "span": _span(row, most),
        "saving": row["saving"],
        "suggestion": row["suggestion"],
        "caveat": _caveat(row),
        "replayed": bool(row["edits"]),  # "What if" can begin with its change
        # what is said of the recording as a whole lies nowhere in particular
        "evidence": evidence | {"window": evidence_ns(trace, row)} if evidence else None,
    }


def _about(trace: Trace, question: Scope) -> str:
    """`iteration 3 on rank 2, over 1 step, 20.0 ms`: what the cards are about, where not about everything."""
    ranks, iterations = question.ranks or (), question.iterations or ()
    chosen = f"iteration {iterations[0]}" if len(iterations) == 1 else ""
    on = "" if not ranks else f"rank {ranks[0]}" if len(ranks) == 1 else counted(len(ranks), "rank")
    named = " on ".join(filter(None, (chosen, on)))
    return ", ".join(filter(None, (named, whole_of(trace, _KIND, question)))) or "the selection"


def _beyond(text: str, said: str) -> str:
    """A text without what its title says already."""
    rest = text.removeprefix(f"{said}: ")
    return text if rest == text else f"{rest[0].upper()}{rest[1:]}"


def _caveat(row: pd.Series) -> str:
    """What the suggestion takes, and what may go wrong with it."""
    needs, risk = row["needs"], row["risk"]
    told = [f"It needs: {needs[0].lower()}{needs[1:]}"] if needs else []
    return " ".join([*told, f"Risk: {risk}"] if risk else told)


def _figure(row: pd.Series) -> tuple[str, str]:
    """The one number of a card, and what it is."""
    share = percent(row["share_pct"])
    if row["section"] == SAVES:
        return f"\N{MINUS SIGN}{percent(row['saving_pct'])}", (
            "of the time" if row["method"] == "replay" else "of the time, at most"
        )
    if row["topic"] == "queue_full":  # the time of the host, of which there is enough
        return share, "of the time the host waits; it costs nothing"
    if row["section"] == LATER:
        return percent(0.0), f"saved now, though it costs {share} of the time"
    if row["section"] == UNKNOWN and row["share_pct"]:
        return share, "of the time; what can be saved of it is unknown"
    if row["section"] == VERDICT:
        return share, "of the time"
    return "", ""


def _per_step(row: pd.Series) -> str:
    """What is saved of a step, on average; "" where no steps are marked, or nothing is said of a saving."""
    if row["section"] != SAVES or pd.isna(row["steps"]):
        return ""
    return f"{duration(round(int(row['saving_ns']) / int(row['steps'])))} per step"


def _together(trace: Trace, question: Scope, rows: pd.DataFrame) -> str:
    """`Both together: 19.0 ms → 15.2 ms per step (1.25×)`; "" where that cannot be said."""
    marked = rows["steps"].notna().all()
    both = saved_together(trace, question, rows) if marked else None
    if both is None or both.ns >= both.whole_ns:
        return ""
    steps = int(rows["steps"].iloc[0])
    before, after = (duration(round(ns / steps)) for ns in (both.whole_ns, both.whole_ns - both.ns))
    on_rank = f" on rank {rows['saving_rank'].iloc[0]}" if len(trace.ranks) > 1 else ""
    times = both.whole_ns / (both.whole_ns - both.ns)
    all_ = "Both" if len(rows) == 2 else f"All {len(rows)}"
    return f"{all_} together{on_rank}: {before} → {'at best ' * both.bound}{after} per step ({times:.2f}×)"


def _how(row: pd.Series) -> str:
    """How the saving was found, with its range where it is an estimate."""
    how = _HOW.get(row["method"], "")
    if row["section"] != SAVES or row["method"] != "replay":
        return how
    low, high = (percent(_percent(row, column)) for column in ("saving_low_ns", "saving_high_ns"))
    return f"{how}: {low} to {high}" if low != high else how


def _percent(row: pd.Series, column: str) -> float:
    """One of the savings, in % of the time."""
    if row["section"] != SAVES or not row["saving_ns"]:
        return 0.0
    return float(row["saving_pct"]) * int(row[column]) / int(row["saving_ns"])


def _span(row: pd.Series, most: float) -> list[float]:
    """The least, the estimate and the most that is saved, in % of the most of any card; or [].

    A change may also cost time, at the least; that is in words only, for the bar begins at nothing.
    """
    if row["section"] != SAVES or not most:
        return []
    columns = ("saving_low_ns", "saving_ns", "saving_high_ns")
    return [max(0.0, round(100.0 * _percent(row, column) / most, 2)) for column in columns]


def _further(trace: Trace, question: Scope, frame: pd.DataFrame, more: int) -> str:
    told = [_about(trace, question)] if question != Scope() else []
    told += [counted(more, "more finding")] if more else []
    told += ["other causes checked, nothing found"] if frame["severity"].eq(CHECKED).any() else []
    unknown = int(frame["severity"].eq(OPEN).sum())
    told += [f"{counted(unknown, 'question')} open for lack of data"] if unknown else []
    return "; ".join(told)
