"""An explorer as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from hta_widgets import __version__
from hta_widgets.report import Frozen, page
from hta_widgets.widgets.freezing import freeze, settle
from hta_widgets.widgets.part import Part
from hta_widgets.widgets.runtime import bundle

__all__ = ["Placed", "explorer_page"]

Placed = tuple[str, Part, str]


def explorer_page(explorer: Part, placed: Sequence[Placed], title: str) -> str:
    """The document that shows an explorer's parts as they are once they have come to rest.

    Args:
        explorer: the part that holds the others.
        placed: (area, part, kind of a panel or "") in the order in which they are shown.
        title: of the document.
    """
    settle([part for _, part, _ in placed])
    parts: dict[str, Frozen] = {}
    places: list[list[str]] = []
    notes: list[str] = []
    for number, (area, part, kind) in enumerate(placed):
        frozen, told = freeze(part)
        parts[f"part:{number}"] = frozen
        places.append([area, f"part:{number}", kind])
        notes += told
    kinds = [kind for area, _, kind in placed if area == "panel"]
    state = dict(freeze(explorer)[0].state)
    catalogue = [entry for entry in state["catalogue"] if entry["kind"] in kinds]
    parts["explorer"] = Frozen({**state, "parts": places, "panels": kinds, "catalogue": catalogue})
    facts = {
        "made": f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}".rstrip(),
        "version": f"hta_widgets {__version__}",
        "notes": notes,
    }
    return page(parts, "explorer", title=title, bundle=bundle(), facts=facts)
