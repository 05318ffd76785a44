"""The panels that an explorer can show, their groups, and how each is created."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import traitlets as t

from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.charts.spec import Flame, Lines, Roofline
from hta_widgets.formatting import did_you_mean
from hta_widgets.trace.model import Trace
from hta_widgets.widgets.breakdown_panel import BreakdownPanel
from hta_widgets.widgets.part import Part
from hta_widgets.widgets.selection import Selection

Expression = Callable[[], str]
Entry = dict[str, Any]

# Charts that share the timeline's axis, or need the width, take a whole row, and so do sentences.
_WIDE = (Flame, Lines, Roofline)
_WIDE_KINDS = ("overview", "step_parts")

# The entries of kinds that are not an analysis.
_OTHERS: dict[str, Entry] = {
    "job": {
        "label": "Job",
        "title": "Every rank of the job: what it does, whom it holds up, what it costs",
        "group": "Communication",
        "wide": True,
    },
    "events": {
        "label": "Events",
        "title": "The selected events one by one",
        "group": "Events",
        "wide": True,
    },
    "what_if": {
        "label": "What if",
        "title": "How long would the recording take after a change?",
        "group": "What if",
        "wide": True,
    },
}


def available_panels() -> list[Entry]:
    """`[{kind, label, title, group, wide}]`: every available panel, group by group."""
    entries: list[Entry] = [
        {
            "kind": kind,
            "label": analysis.label,
            "title": analysis.title,
            "group": analysis.group,
            "wide": isinstance(analysis.chart, _WIDE) or kind in _WIDE_KINDS,
        }
        for kind, analysis in ANALYSES.items()
    ]
    entries += [{"kind": kind, **entry} for kind, entry in _OTHERS.items()]
    groups = list(dict.fromkeys(entry["group"] for entry in entries))
    return sorted(entries, key=lambda entry: groups.index(entry["group"]))


def known_panel(kind: str) -> str:
    """`kind`, if there is such a panel.

    Raises:
        ValueError: there is none; the message lists those there are.
    """
    if kind not in ANALYSES and kind not in _OTHERS:
        known = [*ANALYSES, *_OTHERS]
        hint = did_you_mean(kind, known)
        raise ValueError(f"there is no analysis {kind!r}{hint}; the panels are {', '.join(known)}")
    return kind


def make_panel(trace: Trace, kind: str, selection: Selection, python_expression: Expression) -> Part:
    """The part that shows `kind`; `python_expression` returns the Python expression of its frame."""
    which = () if kind in _OTHERS else (kind,)
    return _part_of(kind)(trace, *which, selection=selection, python_expression=python_expression)


def _part_of(kind: str) -> Callable[..., Part]:
    """The class of a panel; those that few open are imported when one is."""
    match kind:
        case "job":
            from hta_widgets.widgets.job_view import JobView

            return JobView
        case "events":
            from hta_widgets.widgets.events_table import EventsTable

            return EventsTable
        case "what_if":
            from hta_widgets.widgets.what_if import WhatIf

            return WhatIf
        case "roofline":
            from hta_widgets.widgets.roofline_panel import RooflinePanel

            return RooflinePanel
        case "step_parts":
            from hta_widgets.widgets.steps_panel import StepsPanel

            return StepsPanel
    return BreakdownPanel


class PanelKinds(t.TraitType[tuple[str, ...], Any]):
    """Distinct kinds of panels, in the order they were opened."""

    info_text = "kinds of panels that there are"
    default_value = ()

    def validate(self, obj: t.HasTraits, value: Any) -> tuple[str, ...]:
        try:
            return kinds_of(value)
        except (TypeError, ValueError):
            self.error(obj, value)


def kinds_of(value: str | Iterable[str]) -> tuple[str, ...]:
    """One kind or several as a tuple of known ones, each once.

    Raises:
        ValueError: there is no panel of that kind.
    """
    kinds = [value] if isinstance(value, str) else value
    return tuple(dict.fromkeys(known_panel(kind) for kind in kinds))
