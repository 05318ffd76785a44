"""One bundle for the parts of an explorer, others for what few pages show, each within its budget."""

from pathlib import Path

import pytest

from hta_widgets import RankSelector, Trace
from hta_widgets.widgets.runtime import (
    BUNDLE,
    DIFF_BUNDLE,
    JOB_BUNDLE,
    REPORT_BUNDLES,
    WHAT_IF_BUNDLE,
    runtime,
)

NOTICES = 3 * 1024  # the licences of what is bundled
# of it 6 kB for many ranks (to find, sort and group them, distributions, bands), 14 kB for steps side by
# side, their comparison, and what is shared, 13 kB for the story: the bar with labels that do not overlap,
# advice, its styles in both themes, and places that the timeline frames; 1 kB for keys that are held; 3 kB
# for forced colors, names of buttons that differ, and cumulative shares; 3 kB for the line
# of step times, and for what a line of memory is part of; 3 kB for the treemap of modules and means of lines
BUDGET = 288 * 1024
MORE_VIEWS = {
    # an explorer's views, those for many ranks among them, what stands in for a kernel, and 1 kB for long
    # timelines in half the memory
    "report_explorer.js": 290 * 1024,
    "report_what_if.js": 314 * 1024,  # and that view
    "report_job.js": 341 * 1024,  # every view that an explorer can show
}


def budget_of(bundle: Path) -> int:
    return MORE_VIEWS.get(bundle.name, BUDGET) + NOTICES


def test_parts_share_one_runtime_and_are_small(ddp: Trace) -> None:
    item, two = RankSelector(ddp), RankSelector(ddp)
    assert item._runtime is two._runtime is runtime()
    assert len(item._esm) < 300
    assert runtime().get_state()["_esm"] == BUNDLE.read_text(encoding="utf-8")  # the browser has it
    runtime().close()
    assert RankSelector(ddp)._runtime.comm is not None


@pytest.mark.parametrize(
    "bundle",
    [BUNDLE, DIFF_BUNDLE, JOB_BUNDLE, WHAT_IF_BUNDLE, *REPORT_BUNDLES.values()],
    ids=lambda bundle: bundle.name,
)
def test_bundle_is_within_its_budget(bundle: Path) -> None:
    assert bundle.stat().st_size <= budget_of(bundle)
