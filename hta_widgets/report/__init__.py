"""Reports: what an explorer shows, as an offline HTML file that needs no Python."""

from hta_widgets.report.page import Frozen, Question, page, write

__all__ = ["Frozen", "Question", "page", "write"]
