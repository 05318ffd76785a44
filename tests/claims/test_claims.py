"""Nothing that is said of any recording is false, and nothing is said that no slow reader recomputes.

A table of all faults: ``python -m tests.claims``.
"""

from __future__ import annotations

import pytest

from hta_widgets.errors import HtaWidgetsError
from tests.claims.checking import check_job
from tests.claims.recordings import EXAMPLES, SHARED, path_of

# The slow reader knows Kineto's files alone; what is said of these is held by tests of their own.
OTHER_WORDS = {
    "cases/b01_xpu_no_stream": "ids that two calls share: tests/trace/test_impossible_records.py",
    "cases/b06_npu_trace_view_str": "Ascend's rows: tests/trace/test_devices.py, test_ascend.py",
    "cases/e10_old_autograd_cuda": "torch.autograd's export: tests/trace/test_devices.py",
    "cases/f01_raw_newline_bare_quotes": "no JSON: tests/trace/test_lenient.py",
    "cases/f03_backslashes_u_n_t": "no JSON: tests/trace/test_lenient.py",
    "cases/h19_npu_direct_str": "Ascend's rows: tests/trace/test_devices.py, test_ascend.py",
    "recordings/ascend_trace_view": "Ascend's rows: tests/trace/test_devices.py, test_ascend.py",
    "recordings/autograd_profiler_torch1": "torch.autograd's export: tests/trace/test_devices.py",
}
# It believes every record, where the package estimates those that cannot be true.
REPAIRED = {"cases/a02_overflow_dur", "cases/a11_some_kernels_ts0", "cases/h03_overflow_mild"}


@pytest.mark.parametrize("name", [*EXAMPLES, *SHARED])
def test_every_claim_is_true(name: str) -> None:
    if name in OTHER_WORDS:
        pytest.skip(f"the slow reader cannot read it: {OTHER_WORDS[name]}")
    if name in REPAIRED:
        pytest.skip("records are estimated: tests/trace/test_impossible_records.py")
    try:
        faults = check_job(path_of(name))
    except HtaWidgetsError as error:
        pytest.skip(f"no trace: {error}")
    assert not faults, "\n".join(map(str, faults))
