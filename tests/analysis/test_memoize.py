"""Answers that are remembered as long as what they are about."""

from __future__ import annotations

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from hta_widgets.analysis.core.memoize import memoize_per_rank


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


def test_threads_that_ask_at_once_get_the_same_object() -> None:
    start = threading.Barrier(8)

    @memoize_per_rank()
    def answer(owner: _Owner) -> object:
        start.wait()  # nobody has an answer before all have asked
        return object()

    owner, found = _Owner(), []
    threads = [threading.Thread(target=lambda: found.append(answer(owner))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_in_turn_one_thread_computes_what_the_others_ask_for() -> None:
    asked: list[int] = []

    @memoize_per_rank(in_turn=True)
    def answer(owner: _Owner) -> object:
        asked.append(1)
        time.sleep(0.05)  # the others ask meanwhile
        return object()

    owner = _Owner()
    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(lambda _: answer(owner), range(4)))
    assert len(found) == len(asked) == 1


def test_in_turn_the_next_thread_tries_where_one_failed() -> None:
    """Also an owner of whom the answer to one question needs that to another."""
    asked: list[int] = []

    @memoize_per_rank(last=4, in_turn=True)
    def answer(owner: _Owner, number: int) -> int:
        asked.append(number)
        if asked.count(3) == 1:
            raise ValueError
        return number + answer(owner, number - 1) if number else 0

    owner = _Owner()
    with pytest.raises(ValueError):
        answer(owner, 3)
    assert answer(owner, 3) == 6 and asked == [3, 3, 2, 1, 0]
