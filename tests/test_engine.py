"""Newest answer wins, nothing stale lands, and ranks map in order wherever they run."""

import threading
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import pytest

from hta_widgets import engine
from hta_widgets.engine import UI_LOCK, Latest, Superseded, Ticket, checkpoint, submit

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


def test_work_that_comes_while_the_interpreter_ends_is_dropped(monkeypatch):
    ended = ThreadPoolExecutor()
    ended.shutdown()
    monkeypatch.setattr(engine, "_POOL", ended)
    delivered = []
    latest = engine.Latest(delivered.append, delivered.append)
    latest.submit(lambda: 1)
    latest.submit(lambda: 2)
    assert not delivered


def test_patient_work_gives_way_to_others_and_goes_on_after_them():
    patient, urgent = Consumer(), Consumer()
    begun, go, passed = threading.Event(), threading.Event(), threading.Event()

    def long():
        begun.set()
        go.wait(SECONDS)
        checkpoint()
        passed.set()
        return "patient"

    patient.latest.submit(long, patient=True)
    assert begun.wait(SECONDS)
    hold = threading.Event()
    urgent.latest.submit(lambda: hold.wait(SECONDS) and "urgent")
    go.set()
    assert not passed.wait(0.2)  # it waits at its checkpoint
    hold.set()
    assert urgent.next() == "urgent"
    assert patient.next() == "patient"
    assert engine._urgent.count == 0


def test_patient_work_that_is_asked_first_gives_way_to_what_the_same_change_asks_later():
    patient, urgent = Consumer(), Consumer()
    hold, begun = threading.Event(), threading.Event()
    with UI_LOCK:
        patient.latest.submit(lambda: begun.set() or "patient", patient=True)
        assert not begun.wait(0.1)
        urgent.latest.submit(lambda: hold.wait(SECONDS) and "urgent")
    assert not begun.wait(0.1)
    hold.set()
    assert {patient.next(), urgent.next()} == {"patient", "urgent"}


def test_patience_ends_and_what_is_superseded_does_not_wait(monkeypatch):
    monkeypatch.setattr(engine, "_PATIENCE_SECONDS", 0.05)
    patient, urgent, hold = Consumer(), Consumer(), threading.Event()
    urgent.latest.submit(lambda: hold.wait(SECONDS))
    try:
        # as if it held what the urgent one waits for
        patient.latest.submit(lambda: checkpoint() or "patient", patient=True)
        assert patient.next() == "patient"
    finally:
        hold.set()
    assert urgent.next()
    ticket = Ticket(patience=SECONDS)
    engine._urgent.change(1)
    try:
        waiting = submit(checkpoint, ticket)
        ticket.revoke()
        with pytest.raises(Superseded):
            waiting.result(SECONDS)
    finally:
        engine._urgent.change(-1)
