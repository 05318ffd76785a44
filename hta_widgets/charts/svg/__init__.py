"""Static pictures of what an explorer or a comparison shows, as SVG."""

from hta_widgets.charts.svg.picture import Bar, Found, Overview, PanelPicture, Picture
from hta_widgets.charts.svg.waterfall import Fall, Step

__all__ = ["Bar", "Fall", "Found", "Overview", "PanelPicture", "Picture", "Step"]
