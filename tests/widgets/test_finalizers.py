"""No thread waits for another that waits for it: finalizers take no lock, and no thread starts under one."""

import ast
import gc
import json
import subprocess
import sys
import threading
import time
import weakref
from typing import Any

import pytest

from hta_widgets import Trace
from hta_widgets.engine import UI_LOCK
from hta_widgets.widgets.rank_selector import RankSelector
from tests.lock_watch import Watch
from tests.support import EVERY_CASE, ROOT
from tests.widgets.test_live_kernel import VERSIONS, bare
from tests.widgets.watched_explorers import SECONDS

pytestmark = pytest.mark.slow


def test_a_part_is_collected_while_another_thread_holds_the_lock(ddp: Trace) -> None:
    """The garbage collector runs in any thread, such as one that the holder of the lock waits for."""
    # what other tests of this process left at work may hold one part for longer, but not each new one
    assert any((held := held_under_the_lock(ddp)) is None for _ in range(3)), held


def held_under_the_lock(trace: Trace) -> list[str] | None:
    """What holds a closed part half a minute later; nothing if it was collected."""
    part = RankSelector(trace)
    there = weakref.ref(part)
    part.close()
    part.itself = part  # only the collector finds it
    collected: list[bool] = []
    part.on_collected = Finalized(collected)
    gc.disable()
    try:
        del part
        deadline = time.monotonic() + 30
        while not collected and time.monotonic() < deadline:  # a worker may still be at it
            with UI_LOCK:
                other = threading.Thread(target=gc.collect, daemon=True)
                other.start()
                other.join(20)
                assert not other.is_alive()
            time.sleep(0.5)  # for the worker, which the collector keeps waiting
    finally:
        gc.enable()
    return None if collected == [True] else [repr(each)[:300] for each in gc.get_referrers(there())]


class Finalized:
    def __init__(self, into: list[bool]) -> None:
        self._into = into

    def __del__(self) -> None:
        self._into.append(True)


# The order in which locks are taken (CONTRIBUTING.md): while one is held, only those below it may be taken,
# and those of other packages.
ORDER = [
    "hta_widgets.engine.UI_LOCK",
    "hta_widgets.engine.Latest._lock",
    "hta_widgets.engine._Urgent._lock",
    "hta_widgets.widgets.static_preview.StaticPreview._lock",
    "hta_widgets.widgets.timeline_scrubber.TimelineScrubber._windows_lock",
    "hta_widgets.analysis.core.memoize.memoize_per_rank.<locals>.decorate.lock",
    "hta_widgets.trace.rank_events.RankEvents._lock",
    "hta_widgets.trace.memory.Memory._lock",
    "hta_widgets.trace.reader.cache_budget.CacheBudget._lock",
    "hta_widgets.jit.machine_code._lock",
]


def check(seen: dict[str, Any]) -> None:
    """Nothing waited for what waits for it, and locks were taken in the written order."""
    assert seen["errors"] == []
    assert sum(seen["finalized"].values()) > 20, "parts are collected meanwhile"
    assert len(seen["finalized"]) > 1, "in several threads"
    place = {name: at for at, name in enumerate(ORDER)}
    own = [pair for pair in seen["order"] if pair[0].startswith("hta_widgets")]
    assert len(own) > 3
    for first, then in own:
        assert first in place, f"{first} has no place in the order"
        if then.startswith("hta_widgets"):
            assert place[first] < place[then], f"{then} was taken while {first} was held"
    assert not [pair for pair in seen["order"] if pair not in own and pair[1] in place]


@pytest.mark.slow
@pytest.mark.skipif(not EVERY_CASE, reason="a kernel, below, watches the same and more: once a week")
def test_explorers_take_locks_in_one_order_and_start_no_thread_under_one() -> None:
    """With garbage collected at every acquisition of a lock and in every new thread."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.widgets.watched_explorers"],
        cwd=ROOT, capture_output=True, text=True, timeout=2 * SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "LockError" not in done.stderr, done.stderr
    check(json.loads(done.stdout))


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS if EVERY_CASE else VERSIONS[:1])
def test_so_they_do_in_a_kernel(version: str) -> None:
    """Whose own locks, and those of its messages, are watched, too."""
    with bare(version) as kernel:
        printed = kernel.run(
            "import json\nfrom tests.widgets.watched_explorers import watched\nprint(json.dumps(watched(1)))"
        )
    check(json.loads(printed))


@pytest.mark.parametrize("again", [True, False])
def test_the_watch_notices_both_orders_and_waiting(again: bool) -> None:
    """Without it the test above could not fail."""
    code = f"""
import threading, types
from tests.lock_watch import LockError, install
install(collect=False)
module = types.ModuleType("hta_widgets.made_up")
exec("import threading\\na, b = threading.Lock(), threading.Lock()\\nc = threading.Lock()", module.__dict__)
module.__dict__["a"].made_at += "a"
with module.a, module.c:
    pass
try:
    if {again}:
        with module.c, module.a:
            pass
    else:
        with module.c:
            threading.Thread(target=print).start()
except LockError:
    print("noticed")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "noticed\n", done.stderr


def test_a_longer_way_round_is_noticed_too() -> None:
    watch = Watch()
    for first, then in (("a", "b"), ("b", "c"), ("a", "c")):
        watch._note(first, then)
    with pytest.raises(AssertionError, match="other way round"):
        watch._note("c", "a")


# What a finalizer may call: it gives memory back, which takes no lock.
MAY_CALL = {"machine_code.py": ["free(pointer(self._address))", "pointer(self._address)"]}


def test_every_finalizer_of_the_package_only_gives_memory_back() -> None:
    found = 0
    for file in (ROOT / "hta_widgets").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if "__del__" not in text and "finalize" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name == "__del__":
                calls = [ast.unparse(call) for call in ast.walk(node) if isinstance(call, ast.Call)]
                assert calls == MAY_CALL.get(file.name, []), file
                assert not any(isinstance(inner, ast.With) for inner in ast.walk(node)), file
                found += 1
            elif isinstance(node, ast.Attribute):
                assert node.attr != "finalize", file
    assert found == 2
