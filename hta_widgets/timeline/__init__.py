"""The timeline's data: slices on lanes, level of detail, and the columns that are sent to the browser."""

from hta_widgets.timeline.counter_pixels import pack_counters
from hta_widgets.timeline.doubtful import doubtful
from hta_widgets.timeline.kept_lanes import lanes_of, pyramid_of
from hta_widgets.timeline.kinds import Kinds
from hta_widgets.timeline.lane_choice import GROUPINGS, LaneChoice, lane_table
from hta_widgets.timeline.lanes import Lanes, build_lanes
from hta_widgets.timeline.matches import Matches, matching_kinds
from hta_widgets.timeline.neighbours import gap_at, relative, same_kind, shortest_gap
from hta_widgets.timeline.outline import outline
from hta_widgets.timeline.pack import Packed, pack_json, pack_slices, pack_window
from hta_widgets.timeline.path_lanes import pack_path
from hta_widgets.timeline.pyramid import Pyramid
from hta_widgets.timeline.tracks import Track
from hta_widgets.timeline.window_sums import window_sums

__all__ = [
    "GROUPINGS",
    "Kinds",
    "LaneChoice",
    "Lanes",
    "Matches",
    "Packed",
    "Pyramid",
    "Track",
    "build_lanes",
    "doubtful",
    "gap_at",
    "lane_table",
    "lanes_of",
    "matching_kinds",
    "outline",
    "pack_counters",
    "pack_json",
    "pack_path",
    "pack_slices",
    "pack_window",
    "pyramid_of",
    "relative",
    "same_kind",
    "shortest_gap",
    "window_sums",
]
