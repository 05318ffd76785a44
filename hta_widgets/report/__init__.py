"""What an explorer showed, without Python: an offline HTML file."""

from hta_widgets.report.page import Frozen, Question, page, write

__all__ = ["Frozen", "Question", "page", "write"]
