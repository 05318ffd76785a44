"""A recording that takes long to open: what is shown meanwhile, and how it is stopped and begun again."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.lab import TIMELINE, Lab

pytestmark = pytest.mark.browser

# The reader, slowed down: a tenth of a file in each 0.3 s, told as it tells it itself.
SLOW = """
import time
from hta_widgets import Trace, TraceExplorer, examples
from hta_widgets.pace import Pace
pace = Pace()
read = Trace.open
def slowly(source, *, progress, **options):
    for part in range(10):
        progress(part / 10, 4, "rank0.json.gz" + pace.left(part / 40))
        time.sleep(0.3)
    return read(source, **options)
Trace.open = slowly
explorer = TraceExplorer(examples.path("ddp_4ranks"))
explorer
"""


def test_progress_is_told_with_the_time_left_and_stopped(lab: Lab) -> None:
    lab.open_code(SLOW)
    loading = lab.page.locator(".hta-loading")
    expect(loading).to_contain_text(re.compile(r"rank0\.json\.gz, about \d+ s left"), timeout=20_000)
    lab.shot("loading")
    loading.get_by_role("button", name="Cancel").click()
    lab.expect_kernel("explorer.status, explorer.message", ("empty", "Loading was cancelled."))
    lab.kernel("setattr(Trace, 'open', read)")
    lab.page.get_by_role("button", name="Load").click()
    expect(lab.page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    lab.expect_kernel("explorer.trace.ranks", [0, 1, 2, 3])
    lab.expect_no_errors()
