"""Static pictures of what an explorer or a comparison shows, as SVG."""

from hta_widgets.charts.svg.picture import Bar, Overview, PanelPicture, Picture
from hta_widgets.charts.svg.story import FoundPicture, Segment, StoryPicture
from hta_widgets.charts.svg.waterfall import Fall, Step

__all__ = [
    "Bar", "Fall", "FoundPicture", "Overview", "PanelPicture", "Picture", "Segment", "Step", "StoryPicture",
]  # fmt: skip
