"""Nothing that is said of any recording is false, and nothing is said that no slow reader recomputes.

A table of all faults: ``python -m tests.claims``.
"""

from __future__ import annotations

import os

import pytest

from hta_widgets.errors import HtaWidgetsError
from tests.claims.checking import check_job
from tests.claims.recordings import EXAMPLES, SHARED, path_of, why_not_checked

# The other half of a pair: the same program as `trace_diff/control`, and the largest recording of all.
TWIN = "traces/hta/trace_diff/test/"
CHECKED = [
    name
    for name in (*EXAMPLES, *SHARED)
    if os.environ.get("HTA_WIDGETS_EVERY_CASE") or not name.startswith(TWIN)
]


@pytest.mark.parametrize("name", CHECKED)
def test_every_claim_is_true(name: str) -> None:
    if why := why_not_checked(name):
        pytest.skip(why)
    try:
        faults = check_job(path_of(name))
    except HtaWidgetsError as error:
        pytest.skip(f"no trace: {error}")
    assert not faults, "\n".join(map(str, faults))
