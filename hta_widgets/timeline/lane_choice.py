"""Which tracks of a timeline are shown, which stay at its top, and in which groups and order they stand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from hta_widgets.timeline.lanes import Lanes
from hta_widgets.timeline.tracks import KINDS, Track

Grouping = Literal["rank", "process", "lane"]
GROUPINGS: tuple[Grouping, ...] = ("rank", "process", "lane")
_COLUMNS = {
    "group": "str",
    "rank": "int64",
    "kind": "str",
    "label": "str",
    "slices": "int64",
    "shown": "bool",
    "pinned": "bool",
}


@dataclass(frozen=True)
class LaneChoice:
    """How the tracks of a timeline are arranged."""

    # what the text `rank LABEL KIND TRACK` of a track must hold to be shown, whatever the case, with commas
    # in between; after a minus, what it must not hold
    words: str = ""
    pinned: Sequence[tuple[int, str]] = ()  # (rank, label) of the tracks that stay at the top
    # "rank", "process" (each process and device of a rank), or "lane" (the same stream, or kind of thread, of
    # all ranks)
    groups: Grouping = "rank"
    # (rank, label) of tracks that come first in their group, in this order
    order: Sequence[tuple[int, str]] = ()
    # those of which tracks are shown, in their order, before the others; None means all
    ranks: Sequence[int] | None = None


def lane_table(lanes: Lanes, labels: Mapping[int, str], choice: LaneChoice) -> pd.DataFrame:
    """The tracks of a timeline, in the order of display; those at the top stand where they would else.

    Args:
        labels: the label of each rank.
        choice: how the tracks are arranged.

    Returns:
        One row per track. Columns: group (str, the header above it), rank (int64), kind (str: stream, sync,
        annotation or thread), label (str), slices (int64), shown, pinned (bool; a pinned track is shown
        whatever the words).
    """
    at = {rank: place for place, rank in enumerate(choice.ranks or ())}
    tracks = sorted(lanes.tracks, key=lambda track: at.get(track.rank, len(at)))
    phrases = [phrase.strip() for phrase in choice.words.lower().split(",")]
    pinned, rows = set(choice.pinned), []
    for group, members in _grouped(tracks, labels, choice).items():
        for track in members:
            text = f"rank {labels.get(track.rank, track.rank)} {track.kind} {track.label}".lower()
            text = text.replace(",", " ")  # in words it ends a phrase
            kept = (track.rank, track.label) in pinned
            there = choice.ranks is None or track.rank in at
            shown = kept or (there and all(_allows(phrase, text) for phrase in phrases))
            rows.append((group, track.rank, track.kind, track.label, track.count, shown, kept))
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    return frame.astype(_COLUMNS)


def _grouped(
    tracks: Sequence[Track], labels: Mapping[int, str], choice: LaneChoice
) -> dict[str, list[Track]]:
    """The tracks under their headers."""
    if choice.groups == "lane":
        tracks = sorted(tracks, key=lambda track: KINDS.index(track.kind))
    groups: dict[str, list[Track]] = {}
    for track in tracks:
        rank = f"Rank {labels.get(track.rank, track.rank)}"
        header = {
            "rank": rank,
            "process": f"{rank} · {track.process}",
            "lane": f"{track.alike} of each rank",
        }[choice.groups]
        groups.setdefault(header, []).append(track)
    place = {name: at for at, name in enumerate(choice.order)}
    for members in groups.values():
        members.sort(key=lambda track: place.get((track.rank, track.label), len(place)))
    return groups


def _allows(phrase: str, text: str) -> bool:
    if len(phrase) > 1 and phrase.startswith("-"):
        return not _holds(text, phrase[1:].strip())
    return _holds(text, phrase)


def _holds(text: str, phrase: str) -> bool:
    """Whether the phrase occurs, and not as a part of a longer number: `stream 2` is not in `stream 20`."""
    before = r"(?<![0-9])" if phrase[:1].isdigit() else ""
    after = r"(?![0-9])" if phrase[-1:].isdigit() else ""
    return re.search(before + re.escape(phrase) + after, text) is not None
