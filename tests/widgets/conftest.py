"""The bundled jobs, opened once, and a wait for parts to come to rest."""

import faulthandler
import time
from collections.abc import Callable

import pytest

from hta_widgets import Trace, examples
from tests.widgets.comparing import SETUPS


@pytest.fixture(scope="session")
def ddp() -> Trace:
    return examples.load("ddp_4ranks")


@pytest.fixture(scope="session")
def jobs() -> dict[str, Trace]:
    return {name: examples.load(name) for name in SETUPS}


@pytest.fixture
def pair(jobs: dict[str, Trace]) -> dict[str, Trace]:
    return {"one": jobs["gpt2_baseline"], "two": jobs["gpt2_ddp"]}


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Poll: answers come from other threads."""

    def wait(condition: Callable[[], bool], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() >= deadline:
                faulthandler.dump_traceback()  # what stands still is a find
                pytest.fail("did not come to rest")
            time.sleep(0.01)

    return wait
