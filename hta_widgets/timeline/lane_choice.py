"""Which tracks of a timeline are shown, and which stay at its top."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import pandas as pd

from hta_widgets.timeline.lanes import Lanes

__all__ = ["lane_table"]

_COLUMNS = {
    "rank": "int64",
    "kind": "str",
    "label": "str",
    "slices": "int64",
    "shown": "bool",
    "pinned": "bool",
}


def lane_table(
    lanes: Lanes, labels: Mapping[int, str], words: str, pinned: Collection[tuple[int, str]]
) -> pd.DataFrame:
    """The tracks of a timeline, in the order of display.

    Args:
        lanes: the slices.
        labels: the label of each rank.
        words: what the text `rank LABEL KIND TRACK` of a track must hold to be shown, whatever the case, with
            commas in between; after a minus, what it must not hold.
        pinned: (rank, label) of the tracks that stay at the top.

    Returns:
        One row per track. Columns: rank (int64), kind (str: stream, sync, annotation or thread), label (str),
        slices (int64), shown, pinned (bool; a pinned track is shown whatever the words).
    """
    phrases = [phrase.strip() for phrase in words.lower().split(",")]
    rows = []
    for track in lanes.tracks:
        text = f"rank {labels.get(track.rank, track.rank)} {track.kind} {track.label}".lower()
        text = text.replace(",", " ")  # in words it ends a phrase
        kept = (track.rank, track.label) in pinned
        shown = kept or all(_allows(phrase, text) for phrase in phrases)
        rows.append((track.rank, track.kind, track.label, track.count, shown, kept))
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    return frame.astype(_COLUMNS)


def _allows(phrase: str, text: str) -> bool:
    if len(phrase) > 1 and phrase.startswith("-"):
        return not _holds(text, phrase[1:].strip())
    return _holds(text, phrase)


def _holds(text: str, phrase: str) -> bool:
    """Whether the phrase occurs, and not as a part of a longer number: `stream 2` is not in `stream 20`."""
    before = r"(?<![0-9])" if phrase[:1].isdigit() else ""
    after = r"(?![0-9])" if phrase[-1:].isdigit() else ""
    return re.search(before + re.escape(phrase) + after, text) is not None
