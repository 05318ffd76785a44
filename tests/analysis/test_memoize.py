"""Answers that are remembered as long as what they are about."""

from __future__ import annotations

import gc
import threading

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
