"""Explorers work in processes that a process with an explorer starts, whatever it is doing."""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.widgets.forked import JOB, SECONDS

# In a process of its own: what other tests leave running in this one would be forked, too.
PARENT = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
from tests.widgets.forked import JOB, SECONDS, report
from hta_widgets import TraceExplorer
size = TraceExplorer(JOB).to_html(sys.argv[2] + "/parent.html").stat().st_size
with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(sys.argv[1])) as pool:
    found = pool.submit(report, sys.argv[2] + "/child.html").result(timeout=2 * SECONDS)
assert abs(found - size) < 0.1 * size
"""

WITH_JOBLIB = """
import sys
import joblib
from tests.widgets.forked import JOB, report
from hta_widgets import TraceExplorer
TraceExplorer(JOB).to_html(sys.argv[1] + "/parent.html")
for backend in ("loky", "multiprocessing"):
    targets = [f"{sys.argv[1]}/{backend}{number}.html" for number in range(2)]
    sizes = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(report)(path) for path in targets)
    assert min(sizes) > 10_000
"""


def run(code: str, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=4 * SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_report_is_written_in_a_child(tmp_path: Path, method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this platform cannot {method}")
    run(PARENT, method, str(tmp_path))


def test_joblib_workers_write_reports(tmp_path: Path) -> None:
    pytest.importorskip("joblib")
    run(WITH_JOBLIB, str(tmp_path))


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
