"""Answers that are remembered as long as what they are about."""

from __future__ import annotations

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from hta_widgets.analysis.core import memoize
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.engine import Superseded, Ticket, under

_LONG = 60.0  # seconds, for what takes none


class _Owner:
    pass


def test_an_answer_is_computed_once_per_owner_and_question() -> None:
    asked: list[tuple[int, str]] = []

    @memoize_per_rank(last=2)
    def answer(owner: _Owner, number: int, word: str = "one") -> list[object]:
        asked.append((number, word))
        return [number, word]

    first, second = _Owner(), _Owner()
    assert answer(first, 1) is answer(first, 1, "one") is answer(first, number=1)
    assert answer(first, 1, "two") == [1, "two"]
    assert answer(second, 1) is not answer(first, 1)
    assert asked == [(1, "one"), (1, "two"), (1, "one")]


def test_only_the_last_results_are_remembered() -> None:
    asked: list[int] = []

    @memoize_per_rank(last=2)
    def answer(owner: _Owner, number: int) -> int:
        asked.append(number)
        return number

    owner = _Owner()
    for number in (1, 2, 1, 3, 1, 2):  # 3 drives out 2, which was asked for longer ago than 1
        assert answer(owner, number) == number
    assert asked == [1, 2, 3, 2]


def test_answers_go_with_their_owner() -> None:
    gone: list[str] = []

    class Answer:
        def __del__(self) -> None:
            gone.append("answer")

    @memoize_per_rank()
    def answer(owner: _Owner) -> Answer:
        return Answer()

    owner = _Owner()
    answer(owner)
    gc.collect()
    assert not gone
    del owner
    gc.collect()
    assert gone == ["answer"]


def test_of_threads_that_ask_at_once_one_computes() -> None:
    computed: list[object] = []
    go_on = threading.Event()

    @memoize_per_rank()
    def answer(owner: _Owner) -> object:
        computed.append(object())
        assert go_on.wait(_LONG)
        return computed[-1]

    owner = _Owner()
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(answer, owner) for _ in range(8)]
        time.sleep(0.1)
        go_on.set()
    assert len(computed) == 1
    assert all(each.result() is computed[0] for each in asked)


def test_threads_that_wait_for_each_other_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memoize, "_LONGEST_WAIT_SECONDS", 0.1)
    lock, held, computing = threading.Lock(), threading.Event(), threading.Event()

    @memoize_per_rank()
    def answer(owner: _Owner) -> str:
        if not computing.is_set():
            computing.set()
            assert held.wait(_LONG)
            with lock:
                return "first"
        return "second"

    def ask_with_lock(owner: _Owner) -> str:
        with lock:
            held.set()
            return answer(owner)

    owner = _Owner()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(answer, owner)
        assert computing.wait(_LONG)
        second = pool.submit(ask_with_lock, owner)
        assert second.result(_LONG) == first.result(_LONG) == "second"


def test_what_fails_in_one_thread_is_computed_in_another() -> None:
    computing, fail = threading.Event(), threading.Event()

    @memoize_per_rank()
    def answer(owner: _Owner) -> str:
        if not computing.is_set():
            computing.set()
            assert fail.wait(_LONG)
            raise Superseded
        return "computed"

    owner = _Owner()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(answer, owner)
        assert computing.wait(_LONG)
        second = pool.submit(answer, owner)
        time.sleep(0.05)
        fail.set()
        assert second.result(_LONG) == "computed"
        with pytest.raises(Superseded):
            first.result(_LONG)


def test_who_is_waited_for_gives_way_to_nobody_and_who_waits_can_be_superseded() -> None:
    computing, go_on = threading.Event(), threading.Event()

    @memoize_per_rank()
    def answer(owner: _Owner) -> str:
        computing.set()
        return "computed" if go_on.wait(_LONG) else ""

    owner, patient, waiting = _Owner(), Ticket(patience=100.0), Ticket()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(under, patient, lambda: answer(owner))
        assert computing.wait(_LONG)
        second = pool.submit(under, waiting, lambda: answer(owner))
        until = time.monotonic() + 5.0
        while (patience := patient.patience) and time.monotonic() < until:
            time.sleep(0.001)
        waiting.revoke()
        with pytest.raises(Superseded):
            second.result(_LONG)
        go_on.set()
        assert first.result(_LONG) == "computed"
    assert patience == 0.0
