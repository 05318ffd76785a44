"""The bundled four-rank job, opened once."""

import pytest

from hta_widgets import Trace, examples


@pytest.fixture(scope="session")
def ddp() -> Trace:
    return examples.load("ddp_4ranks")
