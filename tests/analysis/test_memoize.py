"""Answers that are remembered as long as what they are about."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.engine import Ticket, _urgent, checkpoint, submit


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


def _asked_at_once(answer: Callable[[], object], count: int = 8) -> list[object]:
    """What threads get that ask together."""
    together, found = threading.Barrier(count), []

    def ask() -> None:
        together.wait()
        with suppress(ValueError):
            found.append(answer())

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_of_threads_that_ask_at_once_one_computes() -> None:
    asked: list[int] = []

    @memoize_per_rank()
    def answer(owner: _Owner) -> object:
        asked.append(1)
        time.sleep(0.1)  # until all have asked
        return object()

    owner = _Owner()
    found = _asked_at_once(lambda: answer(owner))
    assert len(asked) == 1
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_who_waited_for_one_that_failed_computes() -> None:
    asked: list[int] = []

    @memoize_per_rank()
    def answer(owner: _Owner) -> object:
        asked.append(1)
        time.sleep(0.1)
        if len(asked) == 1:
            raise ValueError
        return object()

    owner = _Owner()
    found = _asked_at_once(lambda: answer(owner))
    assert len(found) == 7
    assert len(set(map(id, found))) == 1


def test_what_others_wait_for_gives_way_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else all would wait for each other until patience ends."""
    begun = threading.Event()

    @memoize_per_rank()
    def answer(owner: _Owner) -> float:
        begun.set()
        at = time.monotonic()
        checkpoint()
        return time.monotonic() - at

    owner = _Owner()
    monkeypatch.setattr(_urgent, "count", 1)
    patient = submit(lambda: answer(owner), Ticket(patience=60.0))
    begun.wait()
    assert submit(lambda: answer(owner), Ticket()).result() == patient.result() < 30.0
