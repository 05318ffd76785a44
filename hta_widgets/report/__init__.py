"""What an explorer showed, without Python: an offline HTML file, or a static picture."""

from hta_widgets.report.page import Frozen, Question, page, write
from hta_widgets.report.picture import Answer, Bar, Overview, Picture

__all__ = ["Answer", "Bar", "Frozen", "Overview", "Picture", "Question", "page", "write"]
