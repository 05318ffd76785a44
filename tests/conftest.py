"""Every test run has a trace cache of its own, which its workers share, and an end. The user's is left alone.

Pytest itself watches each test (`faulthandler_timeout` in pyproject.toml), up to where it fails; this watches
what comes after: teardown, and the end of the process, which waits for threads.
"""

import faulthandler
import functools
import gc
import importlib
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support import tried

END_SECONDS = 120.0
WORKER_END_SECONDS = 5.0  # after 10 s pytest-xdist kills a worker, and nobody sees its stacks

_stderr = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    # An environment variable and not a fixture: notebook kernels started by nbval and JupyterLab inherit it.
    # So do workers of pytest-xdist, or each would read every recording, and judge it, for itself.
    if not hasattr(config, "workerinput"):
        directory = tempfile.mkdtemp(prefix="hta_widgets-test-cache-")
        os.environ["HTA_WIDGETS_CACHE"] = directory
        config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))
    config.stash[_stderr] = os.dup(2)  # what a test prints is caught, but not here


# Of properties that do not say how many random cases are tried.
settings.register_profile("usual", max_examples=tried(100))
settings.load_profile("usual")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What is collected stays: there is nothing for the collector to find."""
    gc.disable()
    try:
        _import_in_turn(session.config)
        return (yield)
    finally:
        gc.enable()


def _import_in_turn(config: pytest.Config) -> None:
    """Each worker begins with other files: what one has rewritten for its assertions, others find compiled.

    In a fresh checkout they would all do the same at the same time.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None or worker["workercount"] == 1:
        return
    left_out = [Path(path).resolve() for path in config.getoption("ignore") or ()]
    files = [
        path
        for folder in config.args
        for path in sorted(Path(folder).resolve().rglob("test_*.py"))
        if not any(map(path.is_relative_to, left_out))
    ]
    begin = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for path in files[begin:] + files[:begin]:
        with suppress(Exception, pytest.skip.Exception):  # pytest imports it again, and tells
            importlib.import_module(".".join(path.relative_to(config.rootpath).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """The collector need not go through 12,000 collected tests and their modules again and again.

    Nor begin after every 700 objects: what tests leave in cycles is little beside what they open.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Pytest stops its clock when a test fails."""
    _end_after(item.config, float(item.config.getini("faulthandler_timeout")))


@pytest.hookimpl(trylast=True, wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, bool, bool]:
    """What a file of tests remembers ends with it: whole recordings, which the collector would go through."""
    done = yield
    if nextitem is None or nextitem.path != item.path:
        for name, module in list(sys.modules.items()):
            if name.startswith("tests."):
                for member in list(vars(module).values()):
                    is_cached = isinstance(member, functools._lru_cache_wrapper)
                    if is_cached and member.__module__.startswith("tests."):  # the package's own stay
                        member.cache_clear()
    return done


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        _end_after(config, END_SECONDS)
        return
    # a worker of pytest-xdist waits until the slowest one is done, however long that takes: its end is later
    faulthandler.cancel_dump_traceback_later()
    threading.Thread(target=_watch_the_end, args=(config,), daemon=True).start()


def _watch_the_end(config: pytest.Config) -> None:
    threading.main_thread().join()
    _end_after(config, min(END_SECONDS, WORKER_END_SECONDS))


def _end_after(config: pytest.Config, seconds: float) -> None:
    """Print all stacks and end the process, unless it is over by then; not in a debugger."""
    if sys.gettrace() is None:
        faulthandler.dump_traceback_later(seconds, exit=True, file=config.stash[_stderr])
