"""One colour per class of time, the same in every chart, figure and timeline.

The hues follow Okabe and Ito's set for colour-blind readers, with three shades moved until every fill stands
out from its background (contrast of at least 3:1, WCAG 1.4.11) and every pair stays apart under protanopia,
deuteranopia and tritanopia. `tests/analysis/test_palette.py` holds both. The front end mirrors these values
in `js/src/theme.css`.
"""

from __future__ import annotations

from typing import Literal

Theme = Literal["light", "dark"]

BACKGROUND: dict[Theme, str] = {"light": "#ffffff", "dark": "#111111"}

LIGHT: dict[str, str] = {
    "compute": "#0072B2",
    "communication": "#B83A00",
    "memory": "#B8860B",
    "sync": "#7B2D7B",
    "idle": "#8A9199",
    "host": "#009E73",
}

DARK: dict[str, str] = {
    "compute": "#6CBDF0",
    "communication": "#F0743E",
    "memory": "#F7DC4B",
    "sync": "#A94FC0",
    "idle": "#747C84",
    "host": "#23B587",
}


def colour(time_class: str, theme: Theme = "light") -> str:
    """The fill of a class of time (a key of `LIGHT`) as #rrggbb."""
    return (LIGHT if theme == "light" else DARK)[time_class]
