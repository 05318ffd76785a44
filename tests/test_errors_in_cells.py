"""What IPython prints below a cell in which an error of the library ends."""

from collections.abc import Callable, Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output


@pytest.fixture
def printed() -> Iterator[Callable[[str], str]]:
    shell = InteractiveShell.instance()
    shell.run_line_magic("colors", "NoColor")

    def run(code: str) -> str:
        with capture_output() as captured:
            shell.run_cell(code)
        return captured.stdout.strip()

    yield run
    InteractiveShell.clear_instance()


def test_a_wrong_path_is_one_line(printed: Callable[[str], str]) -> None:
    for call in ("TraceExplorer('/no/such/folder')", "Trace.open('/no/such/folder')"):
        text = printed(f"from hta_widgets import Trace, TraceExplorer\n{call}")
        assert text.startswith("TraceNotFoundError: ") and "/no/such/folder" in text
        assert text.count("\n") == 0


def test_the_readers_own_lines_stay(printed: Callable[[str], str]) -> None:
    text = printed(
        "from hta_widgets import Trace\ndef mine(path):\n    return Trace.open(path)\nmine('/no/such/folder')"
    )
    assert "in mine" in text and "reader" not in text and "model.py" not in text
    assert text.splitlines()[-1].startswith("TraceNotFoundError: ")


def test_other_errors_are_printed_as_ever(printed: Callable[[str], str]) -> None:
    assert "Traceback" in printed("1 / 0")
