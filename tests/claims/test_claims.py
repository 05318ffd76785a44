"""Nothing that is said of any recording is false, and nothing is said that no slow reader recomputes.

A table of all faults: ``python -m tests.claims``.
"""

from __future__ import annotations

import pytest

from hta_widgets.errors import HtaWidgetsError
from tests.claims.checking import check_job
from tests.claims.recordings import EXAMPLES, SHARED, UNLIKE, path_of, why_not_checked
from tests.support import EVERY_CASE


@pytest.mark.parametrize("name", [*EXAMPLES, *SHARED] if EVERY_CASE else UNLIKE)
def test_every_claim_is_true(name: str) -> None:
    if why := why_not_checked(name):
        pytest.skip(why)
    try:
        faults = check_job(path_of(name))
    except HtaWidgetsError as error:
        pytest.skip(f"no trace: {error}")
    assert not faults, "\n".join(map(str, faults))
