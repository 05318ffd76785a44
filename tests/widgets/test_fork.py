"""Explorers work in processes that a process with an explorer starts, whatever it is doing."""

import multiprocessing
import os
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

from tests.support import EVERY_CASE, ROOT
from tests.widgets.forked import JOB, SECONDS

pytestmark = pytest.mark.slow

# In a process of its own: what other tests leave running in this one would be forked, too.
PARENT = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
from tests.widgets.forked import JOB, SECONDS, report
from hta_widgets import TraceExplorer
size = TraceExplorer(JOB).to_html(sys.argv[1] + "/parent.html").stat().st_size
for method in sys.argv[2:]:
    if method in ("fork", "spawn"):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
            found = [pool.submit(report, sys.argv[1] + "/child.html").result(timeout=2 * SECONDS)]
    else:
        import joblib
        targets = [f"{sys.argv[1]}/{method}{number}.html" for number in range(2)]
        found = joblib.Parallel(n_jobs=2, backend=method)(joblib.delayed(report)(path) for path in targets)
    assert all(abs(each - size) < 0.1 * size for each in found), method
    print(method)
"""


def test_reports_are_written_in_children(tmp_path: Path) -> None:
    """Of pools and of joblib's workers, in one process after the other."""
    methods = [each for each in ("fork", "spawn") if each in multiprocessing.get_all_start_methods()]
    if util.find_spec("joblib"):
        # loky's workers begin anew, too
        methods = [*(methods if EVERY_CASE else methods[:-1]), "multiprocessing", "loky"]
    done = subprocess.run(
        [sys.executable, "-c", PARENT, str(tmp_path), *methods],
        cwd=ROOT, capture_output=True, text=True, timeout=8 * SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == methods


CHILD = """
import os, sys, threading, time
from hta_widgets import TraceExplorer
from hta_widgets.engine import UI_LOCK
explorer = TraceExplorer(sys.argv[1])
explorer.to_html(sys.argv[2])
holding = threading.Event()
def hold():
    with UI_LOCK:
        holding.set()
        time.sleep(0.3)
threading.Thread(target=hold).start()
holding.wait()
explorer.selection.ranks = (0,)  # the parts are busy while the process is forked
pid = os.fork()
if pid == 0:
    explorer.to_html(sys.argv[3], timeout=60)
    os._exit(7)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
explorer.to_html(sys.argv[2], timeout=60)  # nor does the parent hang
os._exit(code)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_an_explorer_of_the_parent_answers_in_the_child(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", CHILD, str(JOB), str(tmp_path / "a.html"), str(tmp_path / "b.html")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=2 * SECONDS)
    assert done.returncode == 7, done.stderr
    assert (tmp_path / "b.html").stat().st_size > 10_000


def test_importing_starts_no_thread() -> None:
    code = "import hta_widgets.widgets, threading; print(threading.active_count())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS)
    assert done.stdout.strip() == "1", done.stderr
