"""Programs that compute on the host alone, with one planted cause each; signs of a device."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_widgets.analysis.findings import host_communication_rules, host_rules
from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.shown_at import places_of
from hta_widgets.analysis.findings.story import story
from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import Event, event, job, write
from tests.claims.checking import faults_of
from tests.first_lines import first_lines
from tests.verdicts.planted.host_program import MS, US, Program

STEPS = range(1, 7)
NODE = "autograd::engine::evaluate_function: AddmmBackward0"
CALL = 10 * US
"""How long a call takes that begins a collective."""
Body = Callable[[Program, int], None]


def steps(body: Body, work_ns: int = MS) -> Program:
    """Each step does something, then is in ten operators of the forward and of the backward pass."""
    program = Program()
    for number in STEPS:
        with program.step(number):
            body(program, number)
            for _ in range(10):
                program.operator("aten::addmm", work_ns // 10)
            for _ in range(10):
                with program.inside("cpu_op", NODE):
                    program.silence(US // 10)
                    program.operator("aten::mm", 2 * work_ns // 10)
    return program


def nothing(program: Program, number: int) -> None:
    pass


def silent(program: Program, number: int) -> None:
    program.silence(6 * MS)


def told(folder: Path, *programs: Program, **head: Any) -> dict[str, dict[str, Any]]:
    rows = overview(opened(folder, *programs, **head)).to_dict("records")
    return {row["topic"]: row for row in rows}


def opened(folder: Path, *programs: Program) -> Trace:
    if len(programs) > 1:
        return job(folder, *(program.events for program in programs))
    return Trace.open({0: write(folder / "0.json", programs[0].events)}, cache=False)


def of_host(rows: dict[str, dict[str, Any]]) -> set[str]:
    rules = (*host_rules.RULES, *host_communication_rules.RULES)
    return {rule.topic for rule in rules} & rows.keys()


def test_operators_that_take_all_the_time_are_a_verdict(tmp_path: Path) -> None:
    trace = opened(tmp_path, steps(nothing))
    frame = overview(trace)
    rows = {row["topic"]: row for row in frame.to_dict("records")}
    assert of_host(rows) == {"host_operators"}
    assert rows["host_operators"]["share_pct"] == pytest.approx(100)
    assert "aside: aten::mm (66.6 %), aten::addmm (33.3 %)" in rows["host_operators"]["text"]
    assert "mostly aten::mm (66.6 %)." in first_lines(trace, frame)
    assert "not_judged" not in rows  # there is no device to ask about


def test_short_operators_are_told_as_such(tmp_path: Path) -> None:
    rows = told(tmp_path, steps(nothing, work_ns=20 * US))
    assert "30 a step take less than 5.00 µs each" in rows["host_operators"]["text"]
    assert "5.00 µs" not in told(tmp_path, steps(nothing))["host_operators"]["text"]


@pytest.mark.parametrize(("long_us", "are_most"), [(2_500, True), (3_500, False)])
def test_short_operators_beside_a_long_one(long_us: int, are_most: bool, tmp_path: Path) -> None:
    """A thousand take 3 ms: most of the time, though they take longer than 5 µs on average, or not most."""
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            program.operator("aten::mm", long_us * US)
            for _ in range(1_000):
                program.operator("aten::add", 3 * US)
    trace = opened(tmp_path, program)
    frame = overview(trace)
    assert not list(map(str, faults_of(trace, frame)))
    text = frame.set_index("topic").loc["host_operators", "text"]
    assert ("1,000 a step take less than 5.00 µs each" in text) is are_most


@pytest.mark.parametrize(
    ("iterator", "advice"),
    [("_SingleProcessDataLoaderIter", "num_workers is 0"), ("_MultiProcessingDataLoaderIter", "Raise num")],
)
def test_the_data_loader_is_told(tmp_path: Path, iterator: str, advice: str) -> None:
    def load(program: Program, number: int) -> None:
        with program.inside("user_annotation", f"enumerate(DataLoader)#{iterator}.__next__"):
            program.operator("aten::stack", 4 * MS)  # it is part of loading
            program.silence(2 * MS)

    rows = told(tmp_path, steps(load))
    assert of_host(rows) == {"host_loading"}
    row = rows["host_loading"]
    assert (row["cost_ns"], row["share_pct"]) == (6 * 6 * MS, pytest.approx(66.7, abs=0.1))
    assert row["section"] == "unknown"
    assert advice in row["suggestion"] and "pin_memory" not in row["suggestion"]


def test_a_short_wait_for_the_loader_is_not_told(tmp_path: Path) -> None:
    rows = told(tmp_path, steps(lambda program, _: program.load(50 * US)))
    assert "host_loading" not in rows


def test_a_function_outside_of_operators_is_named(tmp_path: Path) -> None:
    def augment(program: Program, number: int) -> None:
        with program.inside("python_function", "/home/x/train.py(7): augment", **{"Python id": number}):
            program.silence(6 * MS)

    row = told(tmp_path, steps(augment))["host_outside"]
    assert row["share_pct"] == pytest.approx(100 * 6 / 9, abs=0.1)
    assert "100 % of it lies in train.py(7): augment" in row["text"]
    assert row["suggestion"] == "Look at train.py(7): augment."


@pytest.mark.parametrize(
    ("caller", "said"),
    [("/home/x/train.py(7): average", "train.py(7): average"), ("torch/optim/swa_utils.py(7): update", "")],
)
def test_of_a_library_s_function_the_program_s_around_it_is_named(
    tmp_path: Path, caller: str, said: str
) -> None:
    """Where no function of the program is open, the library's own is what there is to name."""

    def copies(program: Program, number: int) -> None:
        with program.inside("python_function", caller, **{"Python id": 2 * number}):
            program.silence(10 * US)
            with program.inside("python_function", "copy.py(128): deepcopy", **{"Python id": 2 * number + 1}):
                program.silence(5 * MS)

    trace = opened(tmp_path, steps(copies))
    frame = overview(trace)
    row = frame.set_index("topic").loc["host_outside"]
    named = said or "copy.py(128): deepcopy"
    assert row["title"] == f"Time outside of operators (mostly {named})"
    assert row["suggestion"] == f"Look at {named}."
    assert f"of it lies in copy.py(128): deepcopy{f' at {said}' if said else ''}." in row["text"]
    assert not list(map(str, faults_of(trace, frame)))
    wrong = frame["claims"].str.replace(
        '"value": "/home/x/train.py(7): average"', '"value": "train.py(1): run"'
    )
    assert bool(list(faults_of(trace, frame.assign(claims=wrong)))) is bool(said)


def test_a_function_that_is_called_often_is_named(tmp_path: Path) -> None:
    """Each call is short, and an operator comes between them."""

    def simulate(program: Program, number: int) -> None:
        for at in range(20):
            with program.inside("python_function", "rl.py(7): env", **{"Python id": 100 * number + at}):
                program.silence(300 * US)
            program.operator("aten::item", 2 * US)

    row = told(tmp_path, steps(simulate))["host_outside"]
    assert "of it lies in rl.py(7): env." in row["text"]
    assert row["suggestion"] == "Look at rl.py(7): env."


@pytest.mark.parametrize(
    ("function", "share"),
    [("json.py(9): encode", "75.0 %"), ("train.py(1): run", "")],
    ids=["around most of it", "the loop itself"],
)
def test_what_is_around_many_short_functions_is_named(tmp_path: Path, function: str, share: str) -> None:
    """None of these has much of the time; a function around all of a step tells nothing."""
    is_loop = not share

    def pieces(program: Program, number: int) -> None:
        for at in range(3):
            with program.inside("python_function", f"json.py({at}): part", **{"Python id": 10 * number + at}):
                program.silence(1500 * US)

    def body(program: Program, number: int) -> None:
        with program.inside("python_function", function, **{"Python id": 900 + number}):
            pieces(program, number)
            if is_loop:
                program.operator("aten::addmm", 30 * MS)
        for at in range(3):
            with program.inside("python_function", f"log.py({at}): w", **{"Python id": 90 * number + at}):
                program.silence(500 * US)

    trace = opened(tmp_path, steps(body))
    frame = overview(trace)
    row = frame.set_index("topic").loc["host_outside"]
    assert (f"{share} of it lies in {function}." in row["text"]) is not is_loop
    assert (f"(mostly {function})" in row["title"]) is not is_loop
    assert not list(map(str, faults_of(trace, frame)))
    if share:
        assert faults_of(
            trace, frame.assign(claims=frame["claims"].str.replace('"value": 75', '"value": 95'))
        )


def test_time_that_nothing_names_asks_for_stacks(tmp_path: Path) -> None:
    row = told(tmp_path, steps(silent))["host_outside"]
    assert "with_stack=True" in row["suggestion"] and "longest stretch is 6.00 ms" in row["text"]


@pytest.mark.parametrize("compiled", [False, True])
def test_gaps_between_short_operators_are_not_to_be_recorded_but_to_be_fewer(
    tmp_path: Path, compiled: bool
) -> None:
    def pieces(program: Program, number: int) -> None:
        for _ in range(500):
            with program.inside("cpu_op", f"Torch-Compiled Region: {number}/0" if compiled else "aten::add"):
                program.silence(2 * US)
            program.silence(4 * US)

    row = told(tmp_path, steps(pieces))["host_outside"]
    assert "between short operators" in row["text"] and "torch.compile" in row["suggestion"]
    assert ("without graph breaks" in row["suggestion"]) is compiled


@pytest.mark.parametrize("fused", [False, True])
def test_an_optimizer_of_many_operators_is_told_unless_it_is_fused(tmp_path: Path, fused: bool) -> None:
    def update(program: Program, number: int) -> None:
        with program.inside("user_annotation", "Optimizer.step#Adam.step"):
            for _ in range(200):
                program.operator("aten::_fused_adam_" if fused else "aten::addcdiv_", 10 * US)

    rows = told(tmp_path, steps(update))
    assert ("host_optimizer" in rows) is not fused
    if not fused:
        assert rows["host_optimizer"]["cost_ns"] == 6 * 2 * MS
        assert "in 200 operators a step" in rows["host_optimizer"]["text"]


@pytest.mark.parametrize("inside", [True, False])
def test_an_optimizer_that_computes_the_loss_again_is_no_update_in_pieces(
    tmp_path: Path, inside: bool
) -> None:
    """LBFGS runs the backward pass in its step; beside one that runs before, the same operators are told."""

    def backward(program: Program) -> None:
        with program.inside("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0"):
            program.operator("aten::mm", 10 * US)

    def update(program: Program, number: int) -> None:
        if not inside:
            backward(program)
        with program.inside("user_annotation", "Optimizer.step#LBFGS.step"):
            if inside:
                backward(program)
            for _ in range(200):
                program.operator("aten::add", 10 * US)

    assert ("host_optimizer" in told(tmp_path, steps(update))) is not inside


@pytest.mark.parametrize(
    ("name", "operators", "is_told"),
    [
        ("AdamW", 12, True),
        ("Adagrad", 12, True),
        ("AdamW", 1, False),
        ("SGD", 12, False),
        ("Adamax", 12, False),
    ],
)
def test_long_operators_of_an_optimizer_are_told_where_one_pass_can_replace_many(
    tmp_path: Path, name: str, operators: int, is_told: bool
) -> None:
    def update(program: Program, number: int) -> None:
        with program.inside("user_annotation", f"Optimizer.step#{name}.step"):
            for _ in range(operators):
                program.operator("aten::mul_", 2 * MS)

    rows = told(tmp_path, steps(update))
    assert ("host_optimizer" in rows) is is_told
    if is_told:
        assert f"in {operators} operators a step" in rows["host_optimizer"]["text"]


# -- collectives ---------------------------------------------------------------------------------------


def reducing(
    late_ns: int = 0,
    transfer_ns: int = MS,
    until_ns: int = 20 * US,
    others_ns: int = 0,
    takes: str = "",
) -> Program:
    """A rank that is late by so much; in each step it reduces, as the last one or waiting for others that
    come later, goes on soon after the collective has ended, or much later, and takes the result over."""

    def reduce(program: Program, number: int) -> None:
        program.silence(late_ns)
        program.operator("c10d::allreduce_", CALL)
        ns = others_ns + transfer_ns
        program.events.append(event("user_annotation", "gloo:all_reduce", program.now, ns, tid=9))
        program.silence(ns + until_ns)
        if takes:
            program.operator("aten::as_strided", CALL)
            program.operator(takes, CALL)

    return steps(reduce)


def test_waiting_for_a_collective_is_told(tmp_path: Path) -> None:
    rows = told(tmp_path, reducing())
    assert of_host(rows) == {"host_collectives", "host_operators"}
    assert rows["host_collectives"]["cost_ns"] == 6 * (MS + CALL)
    assert "longest in gloo:all_reduce" in rows["host_collectives"]["text"]


def test_what_goes_on_long_after_a_collective_did_not_wait_for_it(tmp_path: Path) -> None:
    rows = told(tmp_path, reducing(until_ns=4 * MS))
    assert "host_collectives" not in rows
    assert rows["host_outside"]["share_pct"] == pytest.approx(100 * 5 / 8, abs=1)


COPY = "torch.distributed.ddp.reducer::copy_bucket_to_grad"


def test_a_thread_that_goes_on_with_what_was_reduced_has_waited_for_it(tmp_path: Path) -> None:
    """Where cores are short, it does so long after the collective; who is late is known all the same."""
    rows = told(
        tmp_path,
        reducing(others_ns=5 * MS, until_ns=4 * MS, takes=COPY),
        reducing(late_ns=5 * MS, until_ns=4 * MS, takes=COPY),
    )
    assert (rows["host_straggler"]["rank"], rows["host_straggler"]["cost_ns"]) == (1, 6 * 5 * MS)
    assert rows["host_collectives"]["cost_ns"] == 6 * (MS + 2 * CALL)
    assert rows["host_outside"]["cost_ns"] == pytest.approx(6 * (4 + 2.5) * MS, rel=0.01)
    (tmp_path / "other").mkdir()
    rows = told(tmp_path / "other", reducing(until_ns=4 * MS, takes="aten::copy_"))
    assert "host_collectives" not in rows


def test_what_ends_with_a_collective_by_chance_does_not_wait_for_it(tmp_path: Path) -> None:
    """The host is busy for 5 ms beside a collective that takes longer or shorter, as it comes."""

    def reduce(program: Program, number: int) -> None:
        program.operator("c10d::allreduce_", CALL)
        ns = 5 * MS if number == 3 else number % 3 * MS + MS
        program.events.append(event("user_annotation", "gloo:all_reduce", program.now, ns, tid=9))
        program.silence(5 * MS)

    rows = told(tmp_path, steps(reduce))
    assert "host_collectives" not in rows and "host_outside" in rows


def test_a_rank_that_joins_late_is_the_cause(tmp_path: Path) -> None:
    rows = told(tmp_path, reducing(others_ns=5 * MS), reducing(late_ns=5 * MS))
    row = rows["host_straggler"]
    assert row["title"] == "Waiting for rank 1"
    assert (row["rank"], row["cost_ns"]) == (1, 6 * 5 * MS)
    assert "of rank 0 waits in collectives" in row["text"] and "for rank 1, which joins last." in row["text"]
    assert "Rank 1 is outside of operators longer than the others (5.00 ms per step)" in row["text"]
    assert rows["host_collectives"]["cost_ns"] == 6 * (MS + CALL)  # what both of them transfer


def in_turn(ranks: int, late_in: Callable[[int], int]) -> list[Program]:
    """In each step one rank is late by 5 ms, of which nothing is recorded: the others wait for it."""

    def program(rank: int) -> Program:
        def reduce(program: Program, number: int) -> None:
            late = late_in(number) == rank
            program.silence(5 * MS if late else 0)
            program.operator("c10d::allreduce_", CALL)
            ns = MS if late else 6 * MS
            program.events.append(event("user_annotation", "gloo:all_reduce", program.now, ns, tid=9))
            program.silence(ns + 20 * US)

        return steps(reduce)

    return [program(rank) for rank in range(ranks)]


@pytest.mark.parametrize("ranks", [2, 3])
def test_waiting_in_turn_names_nobody_and_is_no_cost_of_collectives(tmp_path: Path, ranks: int) -> None:
    trace = opened(tmp_path, *in_turn(ranks, lambda number: number % ranks))
    frame = overview(trace)
    rows = {row["topic"]: row for row in frame.to_dict("records")}
    assert "host_straggler" not in rows
    waiting = rows["host_in_turn"]
    assert waiting["cost_ns"] == 6 * 5 * MS * (ranks - 1) // ranks
    assert "No rank stands out" in waiting["text"] and pd.isna(waiting["rank"])
    assert rows["host_collectives"]["cost_ns"] == 6 * (MS + CALL)
    assert "Waiting for the last rank to join is not part of it" in rows["host_collectives"]["text"]
    assert not list(map(str, faults_of(trace, frame)))
    false = frame["claims"].str.replace(
        '"host_caused_waiting", "value": ', '"host_caused_waiting", "value": 1'
    )
    assert faults_of(trace, frame.assign(claims=false)) and set(false) != set(frame["claims"])


def test_a_rank_that_is_late_in_nearly_all_steps_is_not_late_in_turn(tmp_path: Path) -> None:
    rows = told(tmp_path, *in_turn(3, lambda number: 0 if number == 2 else 1))
    assert "host_in_turn" not in rows
    assert rows["host_straggler"]["rank"] == 1
    assert rows["host_straggler"]["cost_ns"] == 5 * 5 * MS
    # what the ranks wait for the other one is no cost of the collectives, either
    assert rows["host_collectives"]["cost_ns"] == 6 * (MS + CALL)


def test_long_transfers_do_not_hide_who_is_late(tmp_path: Path) -> None:
    """Whom the ranks wait for is a question about waiting, not about all that collectives take."""
    rows = told(
        tmp_path,
        reducing(others_ns=5 * MS, transfer_ns=20 * MS),
        reducing(late_ns=5 * MS, transfer_ns=20 * MS),
    )
    assert (rows["host_straggler"]["rank"], rows["host_straggler"]["cost_ns"]) == (1, 6 * 5 * MS)
    assert rows["host_collectives"]["cost_ns"] == 6 * (20 * MS + CALL)


def test_where_the_last_rank_is_unknown_waiting_is_said_to_be_included(tmp_path: Path) -> None:
    one, other = in_turn(2, lambda number: number % 2)
    other.events.append(event("user_annotation", "gloo:broadcast", other.now, MS, tid=9))
    rows = told(tmp_path, one, other)
    assert not {"host_in_turn", "host_straggler"} & rows.keys()
    assert "That includes waiting for other ranks" in rows["host_collectives"]["text"]
    (tmp_path / "alone").mkdir()
    alone = told(tmp_path / "alone", one)
    assert alone["host_collectives"]["suggestion"].startswith("Record all ranks first")


def test_ranks_that_leave_a_collective_apart_do_not_wait_in_it(tmp_path: Path) -> None:
    """Both begin it together; one takes longer to end it."""
    rows = told(tmp_path, reducing(transfer_ns=6 * MS), reducing(transfer_ns=MS))
    assert not {"host_in_turn", "host_straggler"} & rows.keys()
    assert rows["host_collectives"]["cost_ns"] == 6 * (6 * MS + CALL)


def test_collectives_that_do_not_correspond_name_nobody(tmp_path: Path) -> None:
    one, other = reducing(others_ns=5 * MS), reducing(late_ns=5 * MS)
    other.events.append(event("user_annotation", "gloo:broadcast", other.now, MS, tid=9))
    assert "host_straggler" not in told(tmp_path, one, other)


def test_operators_of_the_threads_that_communicate_are_no_sign_of_a_device(tmp_path: Path) -> None:
    program = reducing()
    program.events += [event("cpu_op", "aten::add_", 100 * US + at * 2 * US, US, tid=9) for at in range(1000)]
    assert "host_collectives" in told(tmp_path, program)


def sending(own_ns: int, nested: bool = True) -> Program:
    """Each step receives for 3 ms, and sends for so long, around that or after it."""

    def exchange(program: Program, number: int) -> None:
        if nested:
            with program.inside("cpu_op", "gloo:send"):
                program.operator("gloo:recv", 3 * MS)
                program.silence(own_ns)
        else:
            program.operator("gloo:recv", 3 * MS)
            program.operator("gloo:send", own_ns)

    return steps(exchange)


@pytest.mark.parametrize(
    ("own_ns", "nested", "longest"),
    [
        (MS, True, "gloo:recv"),
        (4 * MS, True, "gloo:send"),
        (MS, False, "gloo:recv"),
        (4 * MS, False, "gloo:send"),
    ],
)
def test_what_a_send_holds_is_not_its_own_time(
    tmp_path: Path, own_ns: int, nested: bool, longest: str
) -> None:
    trace = opened(tmp_path, sending(own_ns, nested))
    frame = overview(trace)
    (row,) = frame[frame["topic"] == "host_collectives"].to_dict("records")
    assert f"longest in {longest}." in row["text"]
    assert not list(map(str, faults_of(trace, frame)))
    swapped = {"gloo:recv": "gloo:send", "gloo:send": "gloo:recv"}[longest]
    assert faults_of(trace, frame.assign(claims=frame["claims"].str.replace(longest, swapped)))


def joining(first_ns: int, late: bool) -> Program:
    """A rank that joins the first of two collectives 12 ms late, or waits for that one; it takes so long."""

    def exchange(program: Program, number: int) -> None:
        program.operator("aten::sort", 12 * MS * late + US)
        waits = 0 if late else 12 * MS
        for name, waiting, ns in (("gloo:all_reduce", waits, first_ns), ("gloo:broadcast", 0, 2 * MS)):
            program.operator("c10d::call", CALL)
            program.events.append(event("user_annotation", name, program.now, waiting + ns, tid=9))
            program.silence(waiting + ns + 20 * US)

    return steps(exchange)


@pytest.mark.parametrize(("first_ns", "longest"), [(MS, "gloo:broadcast"), (3 * MS, "gloo:all_reduce")])
def test_waiting_for_a_late_rank_is_not_the_time_of_a_collective(
    tmp_path: Path, first_ns: int, longest: str
) -> None:
    trace = opened(tmp_path, joining(first_ns, False), joining(first_ns, True))
    frame = overview(trace)
    assert f"longest in {longest}." in frame.set_index("topic").loc["host_collectives", "text"]
    assert not list(map(str, faults_of(trace, frame)))
    by_topic = {row["topic"]: row for _, row in frame.iterrows()}
    straggler, own = (
        places_of(trace, by_topic[topic], "x", "host")[0] for topic in ("host_straggler", "host_collectives")
    )
    assert straggler.label == "12.0 ms: rank 0 waits for rank 1"
    assert (straggler.rank, straggler.end_ns - straggler.start_ns) == (0, 12 * MS)
    assert own.end_ns - own.start_ns <= max(first_ns, 2 * MS) + 2 * CALL
    assert own.end_ns <= straggler.start_ns or straggler.end_ns <= own.start_ns


# -- signs of a device ---------------------------------------------------------------------------------


def on_another_thread(events: list[Event]) -> list[Event]:
    return [{**each, "tid": 2} if each["name"] in (NODE, "aten::mm") else each for each in events]


@pytest.mark.parametrize(
    "signed",
    [
        on_another_thread,
        lambda events: [*events, event("user_annotation", "nccl:all_reduce", MS, US)],
        lambda events: [*events, event("cuda_runtime", "cudaStreamSynchronize", MS, US, correlation=1)],
        lambda events: [*events, event("cpu_op", "aten::_local_scalar_dense", 100 * US, 50 * US)],
        lambda events: [each for each in events if each["cat"] != "cpu_op"],
    ],
    ids=["backward on a thread of its own", "NCCL", "a call of the runtime", "a slow read", "no operators"],
)
def test_where_a_device_may_take_part_nothing_is_said(
    tmp_path: Path, signed: Callable[[list[Event]], list[Event]]
) -> None:
    program = steps(silent)
    assert of_host(told(tmp_path, program))
    program.events = signed(program.events)
    assert not of_host(told(tmp_path, program))


# -- a device in the machine that takes no part ---------------------------------------------------------


def with_a_device(path: Path, program: Program) -> Trace:
    """The file names a device, as every file does that is written on a machine with one."""
    write(path, program.events)
    recorded = json.loads(path.read_text())
    recorded["deviceProperties"] = [{"id": 0, "name": "Tesla T4", "computeMajor": 7, "computeMinor": 5}]
    path.write_text(json.dumps(recorded))
    return Trace.open({0: path}, cache=False)


def only(name: str, ns: int) -> Program:
    program = Program()
    for _ in range(60):
        program.operator("aten::add", 10 * US)
        program.operator(name, ns)
    return program


@pytest.mark.parametrize(
    ("name", "ns", "judged"),
    [
        ("aten::mkldnn_convolution", 100 * US, True),  # a kernel of the CPU
        ("aten::uniform_", 2 * MS, True),  # a launch returns sooner
        ("aten::uniform_", 20 * US, False),  # as long as a launch takes
        ("aten::copy_", 2 * MS, False),  # it may wait for the device
        ("aten::cudnn_convolution", 2 * MS, False),
    ],
)
def test_a_device_that_is_named_may_take_no_part(tmp_path: Path, name: str, ns: int, judged: bool) -> None:
    trace = with_a_device(tmp_path / "0.json", only(name, ns))
    frame = overview(trace)
    assert ("host_operators" in set(frame["topic"])) is judged
    said = "operators on the CPU take" if judged else "here time goes is unknown"
    assert said in first_lines(trace, frame)


def test_one_long_call_may_be_the_start_of_a_device(tmp_path: Path) -> None:
    program = only("aten::add", 10 * US)
    program.operator("aten::randn", 900 * MS)
    assert "host_operators" not in set(overview(with_a_device(tmp_path / "0.json", program))["topic"])


def test_the_time_that_the_profiler_takes_itself_is_nobodys(tmp_path: Path) -> None:
    program = Program()
    for _ in range(10):
        program.operator("aten::mm", 5 * MS)
    program.events.append(event("Trace", "PyTorch Profiler (0)", 0, 10_000 * MS, tid=7))
    said = first_lines(opened(tmp_path, program))
    assert "operators on the CPU take 100 %" in said


# -- why so much is communicated ------------------------------------------------------------------------


def accumulating(no_sync: bool, forward: bool = True) -> Program:
    """Three forward and backward passes a step, two buckets of gradients."""

    def passes(program: Program, number: int) -> None:
        for which in range(3):
            program.operator("aten::zeros_like", US)
            with program.inside(
                "user_annotation", "DistributedDataParallel.forward" if forward else "forward"
            ):
                program.operator("aten::linear", 100 * US)
            for _ in range(0 if no_sync and which < 2 else 2):
                program.operator("c10d::allreduce_", MS)

    return steps(passes)


def test_gradients_that_are_reduced_after_each_of_several_passes_are_counted(tmp_path: Path) -> None:
    row = told(tmp_path, accumulating(no_sync=False))["host_collectives"]
    assert "after each of the 3 forward passes of a step. That makes 6 calls, where 2 would do" in row["text"]
    assert "no_sync()" in row["suggestion"]


@pytest.mark.parametrize("program", [accumulating(no_sync=True), accumulating(no_sync=False, forward=False)])
def test_gradients_that_are_reduced_once_or_in_unknown_passes_are_not(
    tmp_path: Path, program: Program
) -> None:
    row = told(tmp_path, program)["host_collectives"]
    assert "forward passes" not in row["text"] and "no_sync" not in row["suggestion"]


def gathering(program: Program, number: int) -> None:
    with (
        program.inside("cpu_op", "RegisterPostBackwardFunctionBackward"),
        program.inside("user_annotation", "FSDP::post_backward_reduce (0)"),
    ):
        program.operator("aten::copy_", 4 * MS)
        program.silence(2 * MS)


def test_fsdp_is_communication_whatever_node_of_autograd_it_runs_in(tmp_path: Path) -> None:
    rows = told(tmp_path, steps(gathering))
    assert rows["host_collectives"]["cost_ns"] == 6 * 6 * MS
    assert "raise the batch" in rows["host_collectives"]["suggestion"]
    assert "host_operators" not in rows


def reducing_once(program: Program, number: int) -> None:
    with program.inside("user_annotation", "DistributedDataParallel.forward"):
        program.operator("aten::linear", 100 * US)
    program.operator("c10d::allreduce_", 6 * MS)


def receiving(program: Program, number: int) -> None:
    program.operator("gloo:all_gather", 6 * MS)


def reducing_after_loading(program: Program, number: int) -> None:
    program.load(20 * MS)
    reducing_once(program, number)


@pytest.mark.parametrize(
    ("body", "work_ns", "little"),
    [
        (gathering, 200 * US, True),
        (gathering, 600 * US, False),
        (reducing_once, 200 * US, True),
        (reducing_once, 600 * US, False),
        (receiving, 200 * US, False),  # a larger batch may be more to exchange
        (reducing_after_loading, 600 * US, False),  # the loader is what takes time
    ],
)
def test_hardly_any_compute_between_collectives(
    tmp_path: Path, body: Body, work_ns: int, little: bool
) -> None:
    trace = opened(tmp_path, steps(body, work_ns))
    frame = overview(trace)
    row = frame.set_index("topic").loc["host_collectives"]
    assert ("Operators that compute take only" in row["text"]) is little
    assert ("(operators that compute take" in first_lines(trace, frame)) is little
    assert not little or "raise the batch" in row["suggestion"]
    assert not list(faults_of(trace, frame))


def test_sends_of_a_pipeline_name_the_stage_with_most_to_compute(tmp_path: Path) -> None:
    def stage(work: int, wait: int) -> Program:
        def pass_on(program: Program, number: int) -> None:
            program.operator("aten::conv2d", work)
            program.operator("gloo:recv", wait)

        return steps(pass_on)

    row = told(tmp_path, stage(MS, 8 * MS), stage(8 * MS, MS))["host_collectives"]
    assert "rank 1 is longest in operators" in row["text"] and "fewer layers" in row["suggestion"]
    alone = told(tmp_path, stage(MS, 8 * MS))["host_collectives"]
    assert "longest in gloo:recv" in alone["text"] and "record all" in alone["suggestion"]


@pytest.mark.parametrize(("names", "named"), [(["aten::sort"], True), (["aten::sort", "aten::topk"], False)])
def test_the_operator_that_makes_a_rank_late_is_named(tmp_path: Path, names: list[str], named: bool) -> None:
    """One that takes most of what the rank takes longer; not one of several that take it together."""

    def sorting(ns: int, wait: int) -> Program:
        def step(program: Program, number: int) -> None:
            for at in range(3):
                program.operator(names[at] if at < len(names) else names[0] + "_" * (len(names) - 1), ns // 3)
            program.operator("c10d::allreduce_", CALL)
            program.events.append(event("user_annotation", "gloo:all_reduce", program.now, wait, tid=9))
            program.silence(wait + 20 * US)

        return steps(step)

    row = told(tmp_path, sorting(3 * US, 7 * MS), sorting(6 * MS, MS))["host_straggler"]
    assert ("mostly in aten::sort (6.00 ms per step)" in row["text"]) is named
    assert "Rank 1 is in operators longer than the others" in row["text"]


def test_where_a_late_rank_is_outside_of_operators_is_in_the_headline(tmp_path: Path) -> None:
    def rank(ns: int, wait: int) -> Program:
        def step(program: Program, number: int) -> None:
            with program.inside("python_function", "train.py(7): load", **{"Python id": number}):
                program.silence(ns)
            program.operator("c10d::allreduce_", CALL)
            program.events.append(event("user_annotation", "gloo:all_reduce", program.now, wait, tid=9))
            program.silence(wait + 20 * US)

        return steps(step)

    said = story(opened(tmp_path, rank(10 * US, 7 * MS), rank(6 * MS, MS))).headline
    assert "the late rank 1 (time outside of operators, mostly train.py(7): load)" in said


@pytest.mark.parametrize(("alone", "named"), [(True, "evaluate"), (False, "aten::addmm")])
def test_what_one_rank_alone_does_makes_it_late(tmp_path: Path, alone: bool, named: str) -> None:
    """Where the others do the same, if shorter, the operator says more."""

    def rank(ns: int, wait: int, evaluates: bool) -> Program:
        def step(program: Program, number: int) -> None:
            if evaluates:
                with program.inside("user_annotation", "evaluate"):
                    program.operator("aten::addmm", ns)
            program.operator("c10d::allreduce_", CALL)
            program.events.append(event("user_annotation", "gloo:all_reduce", program.now, wait, tid=9))
            program.silence(wait + 20 * US)

        return steps(step)

    trace = opened(tmp_path, rank(10 * US, 7 * MS, not alone), rank(6 * MS, MS, True))
    frame = overview(trace)
    row = frame.set_index("topic").loc["host_straggler"]
    assert ("mostly in evaluate, which no other rank runs" in row["text"]) is alone
    assert f"the late rank 1 ({named})" in story(trace).headline
    assert not list(map(str, faults_of(trace, frame)))
    if alone:
        assert faults_of(trace, frame.assign(claims=frame["claims"].str.replace('"evaluate"', '"train"')))


@pytest.mark.parametrize(
    ("shapes", "grows"),
    [
        (lambda at: [[[1, 4, 500 + at, 64], [1, 4, 1, 64]], []], True),
        (lambda at: [[[1, 4, 500, 64], [1, 4, 1, 64]], []], False),  # always as large
        (lambda at: [[[1, 4, 500 + at, 64], [1, 4, 500 + at, 64]], []], False),  # two halves
        (lambda at: None, False),  # not recorded
    ],
)
def test_a_cache_that_grows_by_joining_is_told(
    tmp_path: Path, shapes: Callable[[int], Any], grows: bool
) -> None:
    program = Program()
    for at in range(20):
        found = shapes(at)
        args = {} if found is None else {"Input Dims": found, "Input type": ["TensorList", "Scalar"]}
        program.operator("aten::cat", MS, **args)
        program.operator("aten::addmm", MS // 2)
    trace = opened(tmp_path, program)
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    rows = {row["topic"]: row for row in frame.to_dict("records")}
    assert ("growing_tensor" in rows) is grows
    if grows:
        row = rows["growing_tensor"]
        assert (row["cost_ns"], row["share_pct"]) == (20 * MS, pytest.approx(66.7, abs=0.1))
        assert "static cache" in row["suggestion"]
        lost = "20.0 ms of it is due to copies of a tensor that grows, saving not estimated"
        assert story(trace, None, frame).headline.endswith(f"; {lost}")


def answers(program: Program, number: int) -> None:
    """Of each layer two tensors grow, beside halves that are joined; the next answer begins anew."""
    types = {"Input type": ["TensorList", "Scalar"]}
    for at in range(5):
        for _ in range(4):
            joined = [[1, 4, 500 + at, 64], [1, 4, 1, 64]]
            program.operator("aten::cat", MS, **{"Input Dims": [joined, []], **types})
            halves = [[1, 4, 1, 32], [1, 4, 1, 32]]
            program.operator("aten::cat", US, **{"Input Dims": [halves, []], **types})


def test_what_grows_in_each_of_several_layers_and_answers_is_told(tmp_path: Path) -> None:
    row = told(tmp_path, steps(answers, 2 * MS))["growing_tensor"]
    assert row["cost_ns"] == 6 * 20 * MS


@pytest.mark.parametrize(
    ("body", "headline", "beside"),
    [
        (lambda program, number: program.load(6 * MS), r"6\.\d+ ms of it is due to the data loader", ""),
        (
            lambda program, number: program.silence(300 * US),
            r"operators on the CPU take [\d.]+ % of it, mostly aten::mm \([\d.]+ %\)",
            "the main thread is in operators",
        ),
        (
            nothing,
            r"operators on the CPU take [\d.]+ % of it, mostly aten::mm \([\d.]+ %\)",
            "aten::mm (66.6 %), aten::addmm (33.3 %)",
        ),
    ],
    ids=["loader", "mostly work", "work"],
)
def test_the_headline_says_how_long_a_step_takes_and_why(
    body: Body, headline: str, beside: str, tmp_path: Path
) -> None:
    found = story(opened(tmp_path, steps(body)))
    unknown = ", saving not estimated" * ("of it is due to" in headline)
    assert re.fullmatch(rf"[\d.]+ ms per step; {headline}{unknown}", found.headline)
    assert beside in found.limits
    assert "\n" not in found.headline


# -- what only some steps do, and what is compiled ------------------------------------------------------


def checked(folder: Path, *programs: Program) -> tuple[dict[str, dict[str, Any]], str]:
    """The findings by topic, of which all claims are true; and the headline."""
    trace = opened(folder, *programs)
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    return {row["topic"]: row for row in frame.to_dict("records")}, story(trace, frame=frame).headline


def validating(*numbers: int) -> Program:
    """Steps of which some load other data, and work with it."""

    def body(program: Program, number: int) -> None:
        if number in numbers:
            program.load(6 * MS, "_SingleProcessDataLoaderIter")
            program.operator("aten::addmm", MS)

    return steps(body)


def test_what_only_a_validation_loads_is_said_of_its_step(tmp_path: Path) -> None:
    rows, headline = checked(tmp_path, validating(4))
    assert rows["slow_steps"]["part_of"] == "" and rows["host_loading"]["part_of"] == "slow_steps"
    assert "It is in the data loader 6.00 ms longer." in rows["slow_steps"]["text"]
    assert "due to unusually long steps" in headline


def test_what_every_step_loads_is_no_part_of_a_long_one(tmp_path: Path) -> None:
    def body(program: Program, number: int) -> None:
        program.load(2 * MS)
        program.operator("aten::addmm", 3 * MS * (number == 4))

    rows, headline = checked(tmp_path, steps(body))
    assert rows["host_loading"]["part_of"] == "" and "due to the data loader" in headline
    assert "It is in operators 3.00 ms longer" in rows["slow_steps"]["text"]


@pytest.mark.parametrize(
    ("each_ms", "outside_ms", "work_ms", "lost_ms"),
    [
        (3, 10, 12, {"host_outside": 28, "slow_steps": 12}),  # of 22 ms, 10 are told of all steps
        (3, 0, 12, {"host_outside": 18, "slow_steps": 12}),  # near miss: it is there as long as others
        (20, 0, 12, {"host_outside": 120, "slow_steps": 12}),  # and for most of its time
        (4, 12, 10, {"host_outside": 36}),  # most of 22 ms is told of all steps
        (0.1, 10, 12, {"slow_steps": 22}),  # only the long step is outside of operators
    ],
)
def test_a_long_step_is_not_counted_twice(
    each_ms: float, outside_ms: int, work_ms: int, lost_ms: dict[str, int], tmp_path: Path
) -> None:
    def body(program: Program, number: int) -> None:
        program.silence(int(each_ms * MS))
        if number == 4:
            program.silence(outside_ms * MS)
            program.operator("aten::addmm", work_ms * MS)

    trace = opened(tmp_path, steps(body))
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    told = story(trace, frame=frame)
    lost = {told.advice[part.finding].topic: part.ns for part in told.parts if part.form == "unknown"}
    assert lost == pytest.approx({topic: ms * MS / len(STEPS) for topic, ms in lost_ms.items()}, rel=0.01)
    assert sum(part.ns for part in told.parts) == told.whole_ns


@pytest.mark.parametrize(("long_ms", "named"), [(80, True), (20, False)])
def test_a_mean_that_is_of_no_step_is_said(tmp_path: Path, long_ms: int, named: bool) -> None:
    def body(program: Program, number: int) -> None:
        program.silence((long_ms if number == 4 else 4) * MS)

    headline = story(opened(tmp_path, steps(body))).headline
    assert "due to time outside of operators" in headline
    assert ("(most of it in 1 of 6 steps)" in headline) is named


def test_a_long_step_of_one_rank_is_not_said_of_the_mean_of_all(tmp_path: Path) -> None:
    def rank(long_ms: int) -> Program:
        return steps(lambda program, number: program.silence((long_ms if number == 4 else 10) * MS))

    headline = story(opened(tmp_path, rank(100), rank(10), rank(10), rank(10))).headline
    assert "due to time outside of operators" in headline and "most of it in" not in headline


def test_of_several_ranks_a_long_step_costs_all_of_it(tmp_path: Path) -> None:
    """Which of them loses what in all steps differs: nothing is left out."""

    def body(program: Program, number: int) -> None:
        program.silence(13 * MS if number == 4 else 3 * MS)
        program.operator("aten::addmm", 12 * MS if number == 4 else US)

    row = told(tmp_path, steps(body), steps(body))["slow_steps"]
    assert row["cost_ns"] == pytest.approx(22 * MS, rel=0.01)


def test_what_most_steps_load_makes_none_unusual(tmp_path: Path) -> None:
    rows, headline = checked(tmp_path, validating(1, 3, 4, 5, 6))
    assert "slow_steps" not in rows and "due to the data loader" in headline


@pytest.mark.parametrize(("operators", "more"), [(1, "no more operators"), (40, "39 more operators")])
def test_a_step_whose_operators_take_longer_has_more_of_them_or_not(
    operators: int, more: str, tmp_path: Path
) -> None:
    def body(program: Program, number: int) -> None:
        for _ in range(operators if number == 4 else 1):
            program.operator("aten::relu", 8 * MS // operators if number == 4 else US)

    rows, _ = checked(tmp_path, steps(body))
    assert more.replace("39 more operators", "39 operators more") in rows["slow_steps"]["text"]


@pytest.mark.parametrize(("rows", "is_larger"), [(640, True), (64, False)])
def test_a_step_may_be_long_for_larger_inputs(rows: int, is_larger: bool, tmp_path: Path) -> None:
    def body(program: Program, number: int) -> None:
        shapes = [[rows if number == 4 else 64, 64], [64, 64]]
        inputs = {"Input Dims": shapes, "Input type": ["float", "float"]}
        program.operator("aten::mm", 8 * MS if number == 4 else US, **inputs)

    row = checked(tmp_path, steps(body))[0]["slow_steps"]
    assert (", on inputs 5.50 times as large." in row["text"]) is is_larger
    assert ("bucketed by length" in row["suggestion"]) is is_larger


def test_the_region_that_holds_most_of_what_is_outside_is_in_the_headline(tmp_path: Path) -> None:
    def body(program: Program, number: int) -> None:
        with program.inside("user_annotation", "save_checkpoint"):
            program.silence(6 * MS)

    assert "due to time outside of operators (mostly save_checkpoint)" in checked(tmp_path, steps(body))[1]

    def both(program: Program, number: int) -> None:
        for name in ("save_checkpoint", "augment", "log"):
            with program.inside("user_annotation", name):
                program.silence(2 * MS)

    assert "mostly" not in checked(tmp_path, steps(both))[1]

    def loop(program: Program, number: int) -> None:
        with program.inside("user_annotation", "train_step"):
            program.silence(6 * MS)
            program.operator("aten::addmm", 6 * MS)

    row = checked(tmp_path, steps(loop))[0]["host_outside"]
    assert "train_step" not in row["text"] + row["title"] + row["suggestion"]


def test_many_short_operators_are_what_is_outside_of_them(tmp_path: Path) -> None:
    """Also where the system takes the core away now and then."""

    def pieces(program: Program, number: int) -> None:
        for at in range(3_000):
            program.operator("aten::add", 2 * US)
            program.silence(2 * US + 10 * MS * (at == 1_000))

    row = checked(tmp_path, steps(pieces, work_ns=20 * US))[0]["host_outside"]
    assert "between short operators" in row["text"] and "torch.compile" in row["suggestion"]


@pytest.mark.parametrize(("pause_ms", "python"), [(3, True), (6, False)])
def test_a_pause_is_more_than_python_between_operators_where_these_are_few(
    tmp_path: Path, pause_ms: int, python: bool
) -> None:
    """From one of 500 operators to the next it would be 8 µs, or 14: so much Python does not take."""

    def pieces(program: Program, number: int) -> None:
        for at in range(500):
            program.operator("aten::add", 2 * US)
            program.silence(2 * US + pause_ms * MS * (at == 100))

    row = told(tmp_path, steps(pieces, work_ns=20 * US))["host_outside"]
    assert ("between short operators" in row["text"]) is python


def test_an_optimizer_is_one_loss_with_what_it_does_between_operators(tmp_path: Path) -> None:
    def update(program: Program, number: int) -> None:
        with program.inside("user_annotation", "Optimizer.step#Adam.step"):
            for _ in range(200):
                program.operator("aten::addcdiv_", 10 * US)
                program.silence(8 * US)

    rows, _ = checked(tmp_path, steps(update))
    assert rows["host_outside"]["part_of"] == "host_optimizer" and rows["host_optimizer"]["part_of"] == ""
    assert "Most of the time lies in Optimizer.step#Adam.step (54.5 %)" in rows["host_operators"]["text"]


def compiles(program: Program, number: int) -> None:
    with program.inside("cpu_op", "_compile.compile_inner (dynamo_timed)"):
        program.operator("aten::empty_strided", MS)
        program.silence(29 * MS)


@pytest.mark.parametrize(("numbers", "advice"), [((2,), "before it is recorded"), (STEPS, "recompiles")])
def test_compiling_is_no_work(numbers: Any, advice: str, tmp_path: Path) -> None:
    rows, headline = checked(
        tmp_path, steps(lambda program, number: compiles(program, number) if number in numbers else None)
    )
    row = rows["host_compiling"]
    assert row["cost_ns"] == len(numbers) * 30 * MS and advice in row["suggestion"]
    assert f"in {len(numbers)} of 6 steps" in row["text"]
    assert ("slow_steps" in rows) is (len(numbers) == 1)
    if len(numbers) == 1:
        assert "It compiles " in rows["slow_steps"]["text"]
        assert rows["slow_steps"]["suggestion"].startswith("Code is compiled in these steps")
    assert "due to torch.compile" in headline


def test_code_that_is_compiled_already_is_work(tmp_path: Path) -> None:
    def body(program: Program, number: int) -> None:
        with program.inside("cpu_op", "Torch-Compiled Region: 0/0"):
            program.operator("aten::mm", MS)

    assert "host_compiling" not in checked(tmp_path, steps(body))[0]


@pytest.mark.parametrize("grows", [True, False])
def test_a_program_that_does_more_in_each_step(tmp_path: Path, grows: bool) -> None:
    """The last step is as long, and runs as many operators; the others grow towards it, or are alike."""

    def more(program: Program, number: int) -> None:
        often = (number if grows else 1) * 4 if number < max(STEPS) else 60
        for _ in range(often):
            program.operator("aten::stack", MS // 2)

    found = told(tmp_path, steps(more, work_ns=20 * MS))
    assert "Iteration 6 takes" in found["slow_steps"]["text"]  # longer than the others grow
    assert ("growing_steps" in found) is grows
    if grows:
        assert "the first runs 34 operators, the last 90 operators." in found["growing_steps"]["text"]


@pytest.mark.parametrize(
    ("late_in", "named"), [((1,), " 100 % of it lies in iteration 1."), ((1, 2), ""), (tuple(STEPS), "")]
)
@pytest.mark.parametrize(("part", "what"), [("outside", "no operator"), ("loading", "the data loader")])
def test_a_loss_of_few_steps_is_told_as_one(
    tmp_path: Path, part: str, what: str, late_in: tuple[int, ...], named: str
) -> None:
    """The steps take differently long, so that none of them is unusual."""

    def body(program: Program, number: int) -> None:
        program.operator("aten::addmm", 4 * number * MS)
        if number in late_in:
            (program.load if part == "loading" else program.silence)(12 * MS // len(late_in))

    trace = opened(tmp_path, steps(body))
    frame = overview(trace)
    assert not list(map(str, faults_of(trace, frame)))
    row = frame.set_index("topic").loc[f"host_{part}"]
    assert what in row["text"] and ("of it lies in iteration" in row["text"]) is bool(named)
    assert named in row["text"]
    if part == "outside":
        assert ("in 1 of 6 steps: 2.00 ms" in story(trace).limits) is bool(named)
    if named:
        false = frame["claims"].str.replace('"steps": [1]', '"steps": [2]')
        assert set(false) != set(frame["claims"]) and faults_of(trace, frame.assign(claims=false))


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("aten::_slow_conv2d_forward", "oneDNN"),
        ("aten::mkldnn_convolution", "channels_last"),
        ("aten::copy_", ".contiguous()"),
        ("aten::softmax", "Look at these operators"),
    ],
)
def test_advice_for_the_longest_operators(tmp_path: Path, name: str, advice: str) -> None:
    def body(program: Program, number: int) -> None:
        program.operator(name, 10 * MS)
        program.operator("aten::cumsum", 3 * MS)

    assert advice in told(tmp_path, steps(body, work_ns=0))["host_operators"]["suggestion"]


def test_advice_for_the_second_longest_operator_says_so(tmp_path: Path) -> None:
    def body(program: Program, number: int) -> None:
        program.operator("aten::grid_sampler", 10 * MS)
        program.operator("aten::normal_", 3 * MS)

    row = told(tmp_path, steps(body, work_ns=0))["host_operators"]
    assert row["suggestion"] == "For aten::normal_: draw random numbers once for several steps, or fewer."


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        ("<built-in function collect>", "gc.freeze()"),
        ("<built-in method load of _pickle.Unpickler object at 0x7f5077dafe20>", "all_gather_object"),
        ("<built-in method tensor of type object at 0x7fd2a6f8c8a0>", "torch.from_numpy"),
        ("<built-in method acquire of _thread.lock object at 0x7fd2a6f8c8a0>", "profile_all_threads"),
        ("<built-in function collected>", "Look at"),
    ],
)
def test_advice_for_what_is_outside(tmp_path: Path, function: str, advice: str) -> None:
    def body(program: Program, number: int) -> None:
        with program.inside("python_function", function, **{"Python id": number}):
            program.silence(6 * MS)

    assert advice in told(tmp_path, steps(body))["host_outside"]["suggestion"]


@pytest.mark.parametrize(("ns", "is_told"), [(200 * US, False), (400 * US, True)])
def test_little_that_nothing_names_beside_operators_is_no_finding(
    tmp_path: Path, ns: int, is_told: bool
) -> None:
    assert ("host_outside" in told(tmp_path, steps(lambda program, _: program.silence(ns)))) is is_told


# -- what operators are, and which of them lead ---------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "types", "advice"),
    [
        ("aten::mm", ["c10::BFloat16", "c10::BFloat16"], "bfloat16 already"),
        ("aten::mm", ["float", "float"], "torch.autocast"),
        ("aten::mm", None, "torch.autocast"),
        ("aten::bmm", None, "scaled_dot_product_attention"),
        ("aten::sort", ["c10::BFloat16"], "shapes and types"),
    ],
)
def test_products_in_bfloat16_are_not_told_to_use_it(
    tmp_path: Path, name: str, types: list[str] | None, advice: str
) -> None:
    args = {"Input type": types} if types else {}

    def multiply(program: Program, number: int) -> None:
        for _ in range(5):
            with program.inside("cpu_op", name, **args):
                program.silence(4 * MS)

    assert advice in told(tmp_path, steps(multiply, 100 * US))["host_operators"]["suggestion"]


def test_what_one_of_several_ranks_multiplies_is_not_said_of_all(tmp_path: Path) -> None:
    def rank(kind: str) -> Program:
        def multiply(program: Program, number: int) -> None:
            with program.inside("cpu_op", "aten::mm", **{"Input type": [kind, kind]}):
                program.silence(20 * MS)

        return steps(multiply, 100 * US)

    rows = told(tmp_path, rank("c10::BFloat16"), rank("float"), rank("float"))
    assert "torch.autocast" in rows["host_operators"]["suggestion"]


def test_what_the_longest_operator_itself_loses_leads(tmp_path: Path) -> None:
    args = {"Input type": ["double", "double"], "Input Dims": [[64, 64], [64, 64]]}

    def multiply(program: Program, number: int) -> None:
        for _ in range(5):
            with program.inside("cpu_op", "aten::mm", **args):
                program.silence(4 * MS)

    assert "is due to double precision" in story(opened(tmp_path, steps(multiply, 100 * US))).headline


@pytest.mark.parametrize(("loading_ns", "leads"), [(4 * MS, False), (14 * MS, True)])
def test_an_operator_that_takes_most_leads_unless_much_is_lost(
    tmp_path: Path, loading_ns: int, leads: bool
) -> None:
    def sort(program: Program, number: int) -> None:
        program.load(loading_ns)
        program.operator("aten::sort", 30 * MS)

    trace = opened(tmp_path, steps(sort))
    screen = story(trace)
    assert ("is due to the data loader" in screen.headline) is leads
    assert ("mostly aten::sort" in screen.headline) is not leads
    assert leads or re.search(r"The data loader: 4\.\d+ ms per step, saving not estimated\.$", screen.limits)


@pytest.mark.parametrize(("name", "named"), [("Optimizer.step#SparseAdam.step", True), ("forward", False)])
def test_an_optimizer_in_which_most_time_lies_is_named(tmp_path: Path, name: str, named: bool) -> None:
    def update(program: Program, number: int) -> None:
        with program.inside("user_annotation", name):
            for each in ("aten::add", "aten::index", "aten::mul"):
                program.operator(each, 4 * MS)

    trace = opened(tmp_path, steps(update))
    assert story(trace).headline.endswith(f", mostly in {name}") is named
    assert not list(faults_of(trace, overview(trace)))
