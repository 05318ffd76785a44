"""A kernel that stands still fails the test that asks it, which says where the kernel stands."""

import pytest

from tests.browser import lab as lab_module
from tests.browser.lab import Lab

pytestmark = pytest.mark.browser


def test_a_kernel_that_stands_still_shows_its_stacks(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.open_code("import threading\ndef wait_for_ever(): threading.Event().wait()")
    with monkeypatch.context() as soon:
        soon.setattr(lab_module, "ANSWER_SECONDS", 2)
        with pytest.raises(AssertionError, match=r"no answer within 2 s[\s\S]*wait_for_ever"):
            lab.kernel("wait_for_ever()")
    lab.open_code("pass", name="next.ipynb")
    assert lab.kernel("1 + 1") == "2"
