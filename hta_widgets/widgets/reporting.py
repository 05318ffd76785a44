"""An explorer, runs side by side, a memory snapshot, or sliders for changes, as one HTML file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from hta_widgets.report import Frozen, Question, page
from hta_widgets.version import __version__
from hta_widgets.widgets.freezing import freeze, rewritten, settle
from hta_widgets.widgets.part import Part
from hta_widgets.widgets.runtime import REPORT_BUNDLES, bundle

Placed = tuple[str, Part, str]
Cut = Callable[[str], str]


def explorer_page(explorer: Part, placed: Sequence[Placed], title: str, cut: Cut) -> str:
    """The HTML document that shows an explorer's parts, once they have settled.

    Args:
        explorer: the part that contains the others.
        placed: (area, part, kind of a panel or "") in display order.
        cut: makes of every text what the document says, see `short_paths`.
    """
    parts, places, notes = _saved(placed)
    kinds = [kind for area, _, kind in placed if area == "panel"]
    state = dict(freeze(explorer)[0].state)
    available = [entry for entry in state["available_panels"] if entry["kind"] in kinds]
    parts["explorer"] = Frozen({**state, "parts": places, "panels": kinds, "available_panels": available})
    # the views of What if and of the job are many: only reports that show them carry them
    shown = {part.state["_view"] for part in parts.values()}
    views = next((view for view in ("job", "what_if") if view in shown), "explorer")
    return _page(parts, "explorer", title, notes, views, cut)


def diff_page(viewer: Part, placed: Sequence[Placed], anchors: Question, title: str, cut: Cut) -> str:
    """The HTML document that shows runs side by side, once their parts have settled.

    Args:
        viewer: the part that contains the others.
        placed: (area, part, kind of a panel or run of a timeline) in display order.
        anchors: corresponding instants over the whole runs.
        cut: makes of every text what the document says, see `short_paths`.
    """
    parts, places, notes = _saved(placed)
    for area, reference, run in places:
        if area == "timeline":  # its selection concerns that run alone
            parts[reference] = replace(parts[reference], state={**parts[reference].state, "run": run})
    parts["diff"] = Frozen({**freeze(viewer)[0].state, "parts": places}, [anchors])
    return _page(parts, "diff", title, notes, "diff", cut)


def memory_page(view: Part, placed: Sequence[Placed], title: str, cut: Cut) -> str:
    """The HTML document that shows a memory snapshot, once its panels have settled."""
    parts, places, notes = _saved(placed)
    parts["memory"] = Frozen({**freeze(view)[0].state, "parts": places})
    return _page(parts, "memory", title, notes, "diff", cut)


def own_page(part: Part, views: str, title: str, cut: Cut) -> str:
    """The HTML document that shows one part, once it has settled: sliders for changes, or a job.

    Args:
        part: what it shows.
        views: the bundle of its view, see `REPORT_BUNDLES`.
        title: the page's.
        cut: makes of every text what the document says, see `short_paths`.
    """
    parts, _, notes = _saved([("", part, "")])
    return _page(parts, next(iter(parts)), title, notes, views, cut)


def _saved(placed: Sequence[Placed]) -> tuple[dict[str, Frozen], list[list[str]], list[str]]:
    """The parts by reference, their places, and what a report of them cannot show."""
    settle([part for _, part, _ in placed])
    parts: dict[str, Frozen] = {}
    places: list[list[str]] = []
    notes: list[str] = []
    for number, (area, part, kind) in enumerate(placed):
        parts[f"part:{number}"], missing = freeze(part)
        places.append([area, f"part:{number}", kind])
        notes += missing
    return parts, places, list(dict.fromkeys(notes))


def _page(parts: dict[str, Frozen], root: str, title: str, notes: list[str], views: str, cut: Cut) -> str:
    about = {
        "made": f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}".rstrip(),
        "version": f"hta_widgets {__version__}",
        "notes": notes,
    }
    parts = {reference: rewritten(part, cut) for reference, part in parts.items()}
    return page(parts, root, title=cut(title), bundle=bundle(REPORT_BUNDLES[views]), about=about)
