"""Newest answer wins, nothing stale lands, and ranks map in order wherever they run."""

import threading
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import pytest

from hta_widgets import engine
from hta_widgets.engine import UI_LOCK, Latest, Superseded, Ticket, checkpoint, map_ranks, submit

SECONDS = 10


class Consumer:
    """Records what a `Latest` delivers."""

    def __init__(self) -> None:
        self.seen: Queue = Queue()
        self.latest = Latest(self.seen.put, self.seen.put)

    def next(self):
        return self.seen.get(timeout=SECONDS)


def drain(latest: Latest) -> None:
    """Wait until nothing of this consumer runs any more."""
    idle = threading.Event()
    threading.Thread(target=lambda: (_poll(latest), idle.set())).start()
    assert idle.wait(SECONDS)


def _poll(latest: Latest) -> None:
    while latest._running is not None:
        threading.Event().wait(0.001)


def test_checkpoint_is_silent_outside_the_engine():
    checkpoint()


def test_answer_is_delivered():
    consumer = Consumer()
    consumer.latest.submit(lambda: 42)
    assert consumer.next() == 42


def test_of_many_requests_only_the_newest_answer_lands():
    consumer, begun, go = Consumer(), threading.Event(), threading.Event()

    def slow():
        begun.set()
        go.wait(SECONDS)
        checkpoint()
        return "stale"

    consumer.latest.submit(slow)
    assert begun.wait(SECONDS)
    for number in range(50):
        consumer.latest.submit(lambda number=number: number)
    go.set()
    assert consumer.next() == 49
    drain(consumer.latest)
    assert consumer.seen.empty()


def test_a_job_without_checkpoints_cannot_deliver_a_stale_answer():
    consumer, begun, go = Consumer(), threading.Event(), threading.Event()

    def stubborn():
        begun.set()
        go.wait(SECONDS)
        return "stale"

    consumer.latest.submit(stubborn)
    assert begun.wait(SECONDS)
    consumer.latest.submit(lambda: "new")
    go.set()
    assert consumer.next() == "new"


def test_failure_reaches_fail_and_the_next_job_runs():
    consumer = Consumer()
    consumer.latest.submit(lambda: 1 // 0)
    assert isinstance(consumer.next(), ZeroDivisionError)
    consumer.latest.submit(lambda: "fine")
    assert consumer.next() == "fine"


def test_failure_of_a_superseded_job_is_not_reported():
    consumer, begun, go = Consumer(), threading.Event(), threading.Event()

    def fails_late():
        begun.set()
        go.wait(SECONDS)
        raise ValueError("stale")

    consumer.latest.submit(fails_late)
    assert begun.wait(SECONDS)
    consumer.latest.submit(lambda: "new")
    go.set()
    assert consumer.next() == "new"


def test_cancel_drops_what_runs_and_what_waits():
    consumer, begun, go = Consumer(), threading.Event(), threading.Event()
    consumer.latest.submit(lambda: (begun.set(), go.wait(SECONDS)))
    assert begun.wait(SECONDS)
    consumer.latest.submit(lambda: "waiting")
    consumer.latest.cancel()
    go.set()
    drain(consumer.latest)
    assert consumer.seen.empty()


def test_a_job_superseded_before_a_thread_took_it_does_not_block_the_next():
    release = threading.Event()
    blockers = [submit(lambda: release.wait(SECONDS)) for _ in range(engine._POOL._max_workers)]
    consumer = Consumer()
    consumer.latest.submit(lambda: "first")
    consumer.latest.submit(lambda: "second")
    release.set()
    assert consumer.next() == "second"
    assert all(blocker.result() for blocker in blockers)


def test_delivery_happens_under_front():
    held = Queue()
    latest = Latest(lambda _: held.put(_another_thread_can_take_front()), held.put)
    latest.submit(lambda: None)
    assert held.get(timeout=SECONDS) is False


def _another_thread_can_take_front() -> bool:
    answer: Queue = Queue()

    def attempt():
        taken = UI_LOCK.acquire(blocking=False)
        if taken:
            UI_LOCK.release()
        answer.put(taken)

    threading.Thread(target=attempt).start()
    return answer.get(timeout=SECONDS)


def test_submit_obeys_its_ticket():
    ticket = Ticket()
    ticket.revoke()
    with pytest.raises(Superseded):
        submit(checkpoint, ticket).result(SECONDS)


@pytest.mark.parametrize("threads", [1, 2, None])
def test_map_keeps_the_order(threads):
    assert map_ranks(lambda item: item * item, range(7), threads=threads) == [0, 1, 4, 9, 16, 25, 36]
    assert map_ranks(str, [], threads=threads) == []


@pytest.mark.parametrize("threads", [1, 2])
def test_map_reports_progress_and_progress_may_cancel(threads):
    counts = []
    map_ranks(str, range(5), threads=threads, done=counts.append)
    assert counts == [1, 2, 3, 4, 5]

    def stop(count):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        map_ranks(str, range(5), threads=threads, done=stop)


@pytest.mark.parametrize("threads", [1, 2])
def test_map_raises_the_failure_of_an_item(threads):
    with pytest.raises(ZeroDivisionError):
        map_ranks(lambda item: 1 // item, [1, 0, 1], threads=threads)


def test_failure_of_an_item_spares_those_not_yet_begun():
    begun = []

    def item(number):
        begun.append(number)
        if number == 0:
            raise ZeroDivisionError
        threading.Event().wait(0.005)

    with pytest.raises(ZeroDivisionError):
        map_ranks(item, range(200), threads=2)
    assert len(begun) < 200


@pytest.mark.parametrize("threads", [1, 2])
def test_superseded_map_stops_before_the_last_item(threads):
    ticket, done = Ticket(), []

    def item(number):
        checkpoint()
        ticket.revoke()
        done.append(number)

    with pytest.raises(Superseded):
        submit(lambda: map_ranks(item, range(100), threads=threads), ticket).result(SECONDS)
    assert len(done) < 100


def test_superseding_a_map_stops_the_items_that_run():
    ticket, begun, release, stopped = Ticket(), threading.Barrier(3), threading.Event(), []

    def item(number):
        begun.wait(SECONDS)
        while not release.wait(0.001):
            try:
                checkpoint()
            except Superseded:
                stopped.append(number)
                raise

    answer = submit(lambda: map_ranks(item, range(2), threads=2), ticket)
    begun.wait(SECONDS)
    ticket.revoke()
    try:
        with pytest.raises(Superseded):
            answer.result(SECONDS)
    finally:
        release.set()
    assert sorted(stopped) == [0, 1]


class PoolClient:
    """The part of `dask.distributed.Client` that `map_ranks` uses, on threads of this process."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(2)

    def map(self, function, items, pure):
        assert pure is False
        return [self.pool.submit(function, item) for item in items]


def test_map_hands_the_work_to_a_client():
    client = PoolClient()
    assert map_ranks(lambda item: item + 1, range(4), client=client) == [1, 2, 3, 4]
    with pytest.raises(ZeroDivisionError):
        map_ranks(lambda item: 1 // item, [1, 0], client=client)
    client.pool.shutdown()


def test_map_on_dask_distributed():
    distributed = pytest.importorskip("distributed", reason="dask.distributed is an optional dependency")
    with distributed.Client(n_workers=1, processes=False, dashboard_address=None) as client:
        assert map_ranks(str.upper, ["a", "b"], client=client) == ["A", "B"]


def test_work_that_comes_while_the_interpreter_ends_is_dropped(monkeypatch):
    ended = ThreadPoolExecutor()
    ended.shutdown()
    monkeypatch.setattr(engine, "_POOL", ended)
    delivered = []
    latest = engine.Latest(delivered.append, delivered.append)
    latest.submit(lambda: 1)
    latest.submit(lambda: 2)
    assert not delivered
