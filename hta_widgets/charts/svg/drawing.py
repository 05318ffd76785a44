"""A few shapes as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from hta_widgets.short_paths import shorten
from hta_widgets.visible import visible

TEXT, MUTED, LINE = "#1c1e21", "#5f6368", "#d7dade"
_IN_XML = str.maketrans("\t\n\ufffe\uffff", "  ��")
_EM = 0.58  # mean width of a character, as a share of the size: text is not measured here


class Drawing:
    """Collects shapes, then becomes a document. All text is escaped."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._shapes: list[str] = []

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: int = 13,
        fill: str = TEXT,
        bold: bool = False,
        end: bool = False,
        width: float | None = None,
    ) -> None:
        """A line of text that begins (or ends) at x; what would be wider than `width` is cut."""
        if width is not None:
            most = int(width / (size * _EM))
            if most < 2:
                return
            text = text if len(text) <= most else text[: most - 1] + "…"
        extra = ' font-weight="600"' * bold + ' text-anchor="end"' * end
        self._shapes.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}"{extra}>{_plain(text)}</text>'
        )

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        *,
        opacity: float = 1,
        line: str = "",
        dashes: str = "",
        form: str = "",
    ) -> None:
        """A filled rectangle, with an outline if `line` is its colour; `form` names what it stands for."""
        extra = f' fill-opacity="{opacity}"' * (opacity < 1) + f' stroke="{line}"' * bool(line)
        extra += f' stroke-dasharray="{dashes}"' * bool(dashes) + f' data-form="{form}"' * bool(form)
        self._shapes.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"{extra}/>'
        )

    def stripes(self, x: float, y: float, width: float, height: float, stroke: str, spacing: float) -> None:
        """Lines from the lower left to the upper right of a rectangle, and its outline."""
        lines = []
        start = x - height
        while start < x + width:
            first, last = max(start, x), min(start + height, x + width)
            lines.append(f"M{first:.1f} {y + height - (first - start):.1f}L{last:.1f} "
                         f"{y + height - (last - start):.1f}")  # fmt: skip
            start += spacing
        outline = f"M{x:.1f} {y:.1f}h{width:.1f}v{height:.1f}h{-width:.1f}Z"
        self._shapes.append(
            f'<path d="{"".join(lines)}{outline}" fill="none" stroke="{stroke}" stroke-width="2"/>'
        )

    def band(
        self, x: float, y: float, width: float, heights: Sequence[tuple[float, float]], fill: str
    ) -> None:
        """An area between two steps per bin: (low, high) above the base line y."""
        if not heights:
            return
        lows, highs = ([round(-10 * height) for height in edge] for edge in zip(*heights, strict=True))
        # in bins and tenths of a unit, by differences: a third of the text that positions would take
        outline = _steps(0, highs, 1) + _steps(highs[-1], lows[::-1], -1)
        place = f"translate({x:.1f} {y:.1f}) scale({width / len(heights):.4f} .1)"
        self._shapes.append(f'<path d="M0 0{outline}Z" transform="{place}" fill="{fill}"/>')

    def document(self, height: float, description: str) -> str:
        """The SVG of all shapes on a white card."""
        width, tall = self._width, round(height)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {tall}" width="{width}" '
            f'height="{tall}" role="img" font-family="system-ui, sans-serif"><title>{_plain(description)}'
            f'</title><rect x="0.5" y="0.5" width="{width - 1}" height="{tall - 1}" rx="4" fill="#fff" '
            f'stroke="{LINE}"/>{"".join(self._shapes)}</svg>'
        )


def _plain(text: str) -> str:
    """Escaped, without what XML cannot hold."""
    return escape(visible(shorten(text)).translate(_IN_XML))


def _steps(level: int, levels: Sequence[int], way: int) -> str:
    """A path from `level` over one step per bin to the right (`way` 1) or to the left (-1)."""
    path = []
    for following, run in groupby(levels):
        path.append(f"v{following - level}h{way * len(list(run))}")
        level = following
    return "".join(path)
