"""What an explorer showed, without Python: an offline HTML file, or a static picture."""

from hta_widgets.report.page import Frozen, Question, page, write
from hta_widgets.report.picture import Answer, Bar, Overview, Picture
from hta_widgets.report.waterfall import Fall, Step

__all__ = [
    "Answer",
    "Bar",
    "Fall",
    "Frozen",
    "Overview",
    "Picture",
    "Question",
    "Step",
    "page",
    "write",
]
