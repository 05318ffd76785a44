"""What a change would save: a recording's dependencies, and its replay under an edit."""

from hta_widgets.analysis.replay.marginal import marginal_savings
from hta_widgets.analysis.replay.quality import replay_quality
from hta_widgets.analysis.replay.replayed_events import replayed_events
from hta_widgets.analysis.replay.speed_map import speed_map

__all__ = ["marginal_savings", "replay_quality", "replayed_events", "speed_map"]
