"""Where ranks meet: which operations of different ranks are one collective, or a send and its receive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.matching import match
from hta_widgets.analysis.core.medians import median
from hta_widgets.arrays import Int64
from hta_widgets.engine import checkpoint
from hta_widgets.jit import kernel
from hta_widgets.trace.ordering import first_of_each, numbered, rows_of_each


@dataclass(frozen=True)
class Pair:
    """A rank's sends and the receives of another rank that they belong to: rows of the same number."""

    sender: int
    receiver: int
    sends: Int64
    receives: Int64


@dataclass(frozen=True)
class _Sequence:
    """The sends, or the receives, of a rank to one partner (if recorded) on one lane."""

    rank: int
    rows: Int64
    per_step: tuple[int, ...]
    ends: Int64
    durations: Int64
    known: tuple[int, int] | None


def matched(ops: pd.DataFrame) -> Int64:
    """The number of the collective of each operation, or -1.

    `matching.match` decides, step by step, since clocks may drift, and without trust in a common clock.
    """
    number = np.full(len(ops), -1, np.int64)
    of = ops[ops["kind"] == "collective"]
    columns = of.rename(columns={"lane": "stream"}).assign(device=0, row=of.index)
    first = 0
    for _, part in columns.groupby("step"):
        checkpoint()
        found = match(part)
        rows = found["row"].to_numpy(np.int64)
        own = found["match"].fillna(-1).to_numpy(np.int64)
        number[rows] = np.where(own >= 0, own + first, -1)
        first += int(own.max(initial=-1)) + 1
    return number


def paired(ops: pd.DataFrame) -> tuple[list[Pair], float]:
    """Which sends and receives belong together, and how doubtful that is.

    The n-th send of a rank to another is the n-th receive there. Where the recording does not name partners,
    sequences of the same group and of equal number in every step are compared: both sides of a transfer leave
    it together, so of the right sequences the ends differ by a constant in each step (the difference of the
    clocks), to less than a transfer takes. The best fit is taken first, and each sequence once. Two ranks
    that send to each other must differ by the same in both directions, else neither is taken: a rank between
    them was not recorded, and passes on what the one sends and the other receives.

    Returns:
        The pairs, and the largest ratio of a pair's misfit to that of the next best (0: no choice, 1: a
        guess).
    """
    sends, receives = (_sequences(ops[ops["kind"] == kind]) for kind in ("send", "recv"))
    fits = []
    for group in sends.keys() & receives.keys():
        for a, send in enumerate(sends[group]):
            for b, receive in enumerate(receives[group]):
                if (
                    send.rank != receive.rank
                    and send.per_step == receive.per_step
                    and _may_meet(send, receive)
                ):
                    known = send.known is not None and send.known == receive.known
                    misfit = -1.0 if known else _misfit_of(send, receive)
                    if misfit <= _transfer(send, receive):
                        fits.append((misfit, group, a, b))
    fits.sort()
    of_end: dict[tuple[object, str, int], list[tuple[float, int, int]]] = {}
    for misfit, group, a, b in fits:
        of_end.setdefault((group, "send", a), []).append((misfit, a, b))
        of_end.setdefault((group, "recv", b), []).append((misfit, a, b))
    taken: set[tuple[object, str, int]] = set()
    pairs, doubt = list[Pair](), 0.0
    inferred: dict[tuple[int, int], list[tuple[int, _Sequence, _Sequence]]] = {}
    for misfit, group, a, b in fits:
        ends = {(group, "send", a), (group, "recv", b)}
        if ends & taken:
            continue
        taken |= ends
        send, receive = sends[group][a], receives[group][b]
        if misfit >= 0:
            inferred.setdefault((send.rank, receive.rank), []).append((len(pairs), send, receive))
            others = (m for end in ends for m, *other in of_end[end] if other != [a, b])
            second = min(others, default=np.inf)
            doubt = max(doubt, misfit / second if second else 1.0)
        pairs.append(Pair(send.rank, receive.rank, send.rows, receive.rows))
    relayed = {
        number
        for (one, other), ways in inferred.items()
        for there in ways
        for back in inferred.get((other, one), [])
        if _apart(there[1:], back[1:]) > max(_transfer(*there[1:]), _transfer(*back[1:]))
        for number in (there[0], back[0])
    }
    return [pair for number, pair in enumerate(pairs) if number not in relayed], doubt


def _sequences(of: pd.DataFrame) -> dict[tuple[str, str], list[_Sequence]]:
    """By group: the operations of each rank, lane and partner, in order."""
    group, members = (of[name].fillna("").to_numpy(object) for name in ("process_group", "group_ranks"))
    rank, lane, sender, receiver = ends = [
        of[name].to_numpy(np.int64, na_value=-1) for name in ("rank", "lane", "sender", "receiver")
    ]
    step, end, duration = (of[name].to_numpy(np.int64) for name in ("step", "end_ns", "dur_ns"))
    number = numbered(*(pd.factorize(key)[0] for key in (group, members, *ends)))
    first, rows = first_of_each(number), rows_of_each(number)
    found: dict[tuple[str, str], list[_Sequence]] = {}
    for at in np.lexsort((receiver[first], sender[first], lane[first], rank[first])).tolist():
        own, one = rows[at], first[at]
        sequence = _Sequence(
            int(rank[one]),
            of.index.to_numpy(np.int64)[own],
            tuple(np.bincount(step[own], minlength=int(step.max()) + 1).tolist()),
            end[own],
            duration[own],
            (int(sender[one]), int(receiver[one])) if min(sender[one], receiver[one]) >= 0 else None,
        )
        found.setdefault((group[one], members[one]), []).append(sequence)
    return found


def _may_meet(send: _Sequence, receive: _Sequence) -> bool:
    if send.known and receive.known:
        return send.known == receive.known
    known = send.known or receive.known
    return known is None or known == (send.rank, receive.rank)


def _transfer(send: _Sequence, receive: _Sequence) -> float:
    """How long a transfer takes, as far as both sides tell: who comes last does not wait. ns."""
    return float(np.median(np.minimum(send.durations, receive.durations)))


def _apart(there: tuple[_Sequence, _Sequence], back: tuple[_Sequence, _Sequence]) -> float:
    """By how much two clocks differ as seen in one direction from the other, ns: the median of the steps."""
    differ = []
    for send, receive in (there, back):
        step = np.repeat(np.arange(len(send.per_step)), send.per_step)
        differ.append(pd.Series(receive.ends - send.ends).groupby(step).median())
    return float((differ[0] + differ[1]).abs().median())


def _misfit_of(send: _Sequence, receive: _Sequence) -> float:
    return float(misfit_ns(send.ends, receive.ends, np.array(send.per_step, np.int64)))


@kernel
def misfit_ns(sends: Int64, receives: Int64, per_step: Int64) -> float:
    """How far the ends differ from a constant difference in each step: the median, ns."""
    off = (sends - receives).astype(np.float64)
    begin = 0
    for count in per_step:
        if count:
            usual = median(off[begin : begin + count])
            for at in range(begin, begin + count):
                off[at] = abs(off[at] - usual)
            begin += count
    return median(off)


def joined_up(collective: Int64, pairs: list[Pair]) -> Int64:
    """One number per meeting, from 0, or -1."""
    meeting = collective.copy()
    next_number = int(meeting.max(initial=-1)) + 1
    for pair in pairs:
        numbers = next_number + np.arange(len(pair.sends))
        meeting[pair.sends], meeting[pair.receives] = numbers, numbers
        next_number += len(numbers)
    return meeting


def transfers(ops: pd.DataFrame, meeting: Int64) -> Int64:
    """What each operation takes by itself, ns: at a meeting the shortest duration of its members.

    The last to arrive does not wait and all leave together, so no clock is needed. Elsewhere it is the
    duration.
    """
    own = ops["dur_ns"].to_numpy(np.int64).copy()
    member = meeting >= 0
    shortest = np.full(int(meeting.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(shortest, meeting[member], own[member])
    own[member] = shortest[meeting[member]]
    return own
