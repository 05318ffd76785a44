"""The table of model errors in docs/what_if.md is what `tests.job.model_errors` writes."""

from pathlib import Path

from tests.job.model_errors import MARK, PAGE, row, small_jobs


def test_the_page_has_the_rows_of_small_jobs(tmp_path: Path) -> None:
    table = PAGE.read_text().split(MARK)[1]
    rows = [row(known) for known in small_jobs(tmp_path)]
    assert len(rows) == 3
    assert all(each in table for each in rows)
