"""The bundled four-rank job, opened once, and a wait for parts to come to rest."""

import time
from collections.abc import Callable

import pytest

from hta_widgets import Trace, examples


@pytest.fixture(scope="session")
def ddp() -> Trace:
    return examples.load("ddp_4ranks")


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Poll: answers come from other threads."""

    def wait(condition: Callable[[], bool], seconds: float = 20.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "did not come to rest"
            time.sleep(0.01)

    return wait
