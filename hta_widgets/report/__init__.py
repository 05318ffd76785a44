"""Reports: what an explorer shows as an offline HTML file that needs no Python, and a run as a workbook."""

from hta_widgets.report.excel import to_excel
from hta_widgets.report.page import Frozen, Question, page, write

__all__ = ["Frozen", "Question", "page", "to_excel", "write"]
