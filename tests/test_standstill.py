"""A test run that stands still ends by itself and says where: in a test, in its teardown, at the end."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT

pytestmark = pytest.mark.slow

WHERE = {
    "test": "def test_it(): threading.Event().wait()",
    "teardown": """
@pytest.fixture
def late():
    yield
    threading.Event().wait()
def test_it(late):
    assert False
""",
    "end": "def test_it(): threading.Thread(target=threading.Event().wait).start()",
}


WAYS = [(where, workers) for where in WHERE for workers in ((), ("-n", "1"))]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, bool], subprocess.Popen[str]]]:
    """All of them at once: they mostly wait."""
    started = {
        (where, bool(workers)): run_that_stands_still(tmp_path_factory.mktemp(where), where, workers)
        for where, workers in WAYS
    }
    yield started
    for process in started.values():
        process.kill()
        process.communicate()


# none of the plugins that have no part in it, which take longer to import than it takes
PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "xdist.plugin"]
ALONE = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def lay_out(folder: Path, end_seconds: float, timeout_seconds: int, **tests: str) -> None:
    """Tests with our watch over them, and nothing of the package."""
    watch = (ROOT / "tests" / "conftest.py").read_text()
    for ours, theirs in (
        ("END_SECONDS = 120.0", f"END_SECONDS = {end_seconds}"),
        ("from tests.support import tried", "tried = int"),
    ):
        assert ours in watch
        watch = watch.replace(ours, theirs)
    (folder / "conftest.py").write_text(watch)
    (folder / "pytest.ini").write_text(
        f"[pytest]\nfaulthandler_timeout = {timeout_seconds}\nfaulthandler_exit_on_timeout = true\n"
    )
    for name, text in tests.items():
        (folder / f"test_{name}.py").write_text(text)


def run_that_stands_still(folder: Path, where: str, workers: tuple[str, ...]) -> subprocess.Popen[str]:
    lay_out(folder, 1.0, 2, it=f"import threading\nimport pytest\n{WHERE[where]}\n")
    return subprocess.Popen(
        [*PYTEST, *workers, str(folder)],
        cwd=folder,
        env=ALONE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("workers", [False, True], ids=["alone", "xdist"])
@pytest.mark.parametrize("where", WHERE)
def test_a_run_that_stands_still_ends(
    runs: dict[tuple[str, bool], subprocess.Popen[str]], where: str, workers: bool
) -> None:
    done = runs[where, workers]
    said, _ = done.communicate(timeout=400)
    assert "Timeout (0:00:0" in said
    assert "most recent call first" in said
    if not workers:
        assert done.returncode == 1
    elif where != "end":  # there pytest has its results already, and only the worker is ended
        assert "crashed while running" in said


def test_a_worker_that_waits_for_another_is_left_alone(tmp_path: Path) -> None:
    slow = "import time\ndef test_it(): time.sleep(10)\n"
    lay_out(tmp_path, 5.0, 60, quick="def test_it(): pass\n", slow=slow)
    command = [*PYTEST, "-n", "2", "--dist", "loadfile", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=ALONE, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0 and "2 passed" in done.stdout
    assert "Timeout" not in done.stdout + done.stderr


def test_the_clock_is_set() -> None:
    settings = (ROOT / "pyproject.toml").read_text()
    assert "faulthandler_timeout = 600\n" in settings
    assert "faulthandler_exit_on_timeout = true\n" in settings
