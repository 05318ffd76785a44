"""Everything that a trace tells about one event."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hta_widgets.analysis.calls.phases import PHASES, phases
from hta_widgets.analysis.communication.collectives import collectives
from hta_widgets.analysis.inspect.arguments import arguments_of, name_parts
from hta_widgets.analysis.inspect.around import (
    callees,
    callers,
    module_of,
    operator_of,
    partners,
    python_of,
    self_ns,
    work_in,
)
from hta_widgets.analysis.inspect.gone import gone
from hta_widgets.analysis.inspect.launch import launch_of
from hta_widgets.analysis.inspect.missing import why_missing
from hta_widgets.analysis.inspect.record import EventFacts, Gone, Launch, Peer, Role, Roof, Several
from hta_widgets.analysis.inspect.refs import ref, ref_or_none, row_of, several
from hta_widgets.analysis.inspect.roof import roof_of
from hta_widgets.analysis.inspect.same_name import same_name
from hta_widgets.analysis.serving.roles import REMEDY, roles_of
from hta_widgets.analysis.serving.table import is_server
from hta_widgets.engine import checkpoint
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL


def inspect_event(trace: Trace, rank: int, event: int, replay: bool = True) -> EventFacts:
    """What does a trace hold about one event?

    Args:
        trace: the job.
        rank: its rank.
        event: its number there, the ``event_id`` of `Trace.events`.
        replay: also say what would end sooner without it, which takes longest.

    Returns:
        An `EventFacts`, whose `to_dict()` is plain values:

        - event (`EventRef`: rank, event_id, name in full, event_class, lane, start_ns, dur_ns), category,
          process, thread (str), device, stream (int or None), end_ns, self_ns (ns; without the calls that it
          made), iteration (None: none), phase (forward, backward, optimizer or other, as in `operators`).
        - parts: what the name of device work says, the fields of `kernel_classes`; arguments: all that the
          file has (name as there, value, unit).
        - launch: the launching call, latency_ns and its parts as in `launch_stats`, and what else that call
          launched; launched: the device work that a host call, and the calls in it, launched.
        - operator, module: what it is, ran in, or was launched by; of autograd's calls the module of the
          forward operator. role: its part of the model, if it is device work of a server's step.
          python: the Python functions around it, innermost first, each with file, line and function; those
          of python_of, the forward operator, where autograd's thread has none.
        - parents: the calls around it, innermost first; children: those that it made; previous, next: on its
          stream, or beside it in its caller.
        - forward, backward: the operators of the other pass, tied by autograd's sequence number.
        - peers: the same collective on other ranks, as `collectives` matches them.
        - same_name: how long events of its name take on its rank, and its place among them.
        - roofline: that of the operator call which it belongs to, where a formula exists.
        - gone: the time of the recording and of its iteration, replayed without it, as `what_if` does.
        - missing: for each of these names that has no answer, why.

        Of many events the first 50 are listed, and all are counted.

    Raises:
        KeyError: there is no such rank, or no event of this number with a duration.
    """
    rank_trace = trace.rank(rank)
    row = row_of(rank_trace, event)
    around = callers(rank_trace, row)
    missing: dict[str, str] = {}
    launch = launch_of(rank_trace, row)
    if isinstance(launch, str):
        missing["launch"] = launch
    operator, module = operator_of(rank_trace, row), module_of(rank_trace, row)
    forward, backward = partners(rank_trace, [row, *around])
    python = python_of(rank_trace, [row, *around])
    through = -1
    if not python and forward >= 0:
        python, through = python_of(rank_trace, [forward, *callers(rank_trace, forward)]), forward
    checkpoint()
    roof = roof_of(rank_trace, row)
    if isinstance(roof, str):
        missing["roofline"] = roof
    role = _role(rank_trace, row)
    if isinstance(role, str):
        missing["role"] = role
    on_device = bool(rank_trace.is_device[row])
    previous, following = _neighbours(rank_trace, row, around)
    facts = EventFacts(
        event=ref(rank_trace, row),
        category=rank_trace.categories[rank_trace.category[row]],
        process=rank_trace.pids[rank_trace.pid[row]],
        thread=rank_trace.tids[rank_trace.tid[row]],
        device=_or_none(int(rank_trace.device[row]), NULL),
        stream=_or_none(int(rank_trace.stream[row]), NULL),
        end_ns=int(rank_trace.end[row]),
        self_ns=self_ns(rank_trace, row),
        iteration=_or_none(int(rank_trace.iteration[row]), -1),
        phase=PHASES[phases(rank_trace).of[row]],
        parts=name_parts(rank_trace, row),
        arguments=arguments_of(rank_trace, row),
        launch=launch if isinstance(launch, Launch) else None,
        launched=Several() if on_device else several(rank_trace, work_in(rank_trace, row)),
        operator=ref_or_none(rank_trace, operator),
        module=ref_or_none(rank_trace, module),
        role=role if isinstance(role, Role) else None,
        python=python,
        python_of=ref_or_none(rank_trace, through) if python else None,
        parents=tuple(ref(rank_trace, caller) for caller in around),
        children=several(rank_trace, callees(rank_trace, row)),
        previous=ref_or_none(rank_trace, previous),
        next=ref_or_none(rank_trace, following),
        forward=ref_or_none(rank_trace, forward),
        backward=several(rank_trace, backward),
        peers=_peers(trace, rank_trace, row, missing),
        same_name=same_name(rank_trace, row),
        roofline=roof if isinstance(roof, Roof) else None,
        gone=None,
        missing=missing,
    )
    missing |= why_missing(rank_trace, row, facts)
    return with_replay(trace, facts) if replay else facts


def with_replay(trace: Trace, facts: EventFacts) -> EventFacts:
    """The same facts with the replay, or why there is none."""
    rank_trace = trace.rank(facts.event.rank)
    found = gone(rank_trace, row_of(rank_trace, facts.event.event_id))
    if isinstance(found, Gone):
        return replace(facts, gone=found)
    return replace(facts, missing={**facts.missing, "gone": found})


def _neighbours(rank_trace: RankTrace, row: int, around: list[int]) -> tuple[int, int]:
    """The rows before and after on the stream; of a host call those beside it in its caller. -1 for none."""
    if rank_trace.is_device[row]:
        lane = rank_trace.is_device & (rank_trace.stream == rank_trace.stream[row])
        rows = np.flatnonzero(lane & (rank_trace.device == rank_trace.device[row]))
    elif around:
        rows = callees(rank_trace, around[0])
    else:
        return -1, -1
    rows = rows[np.lexsort((rank_trace.event_id[rows], rank_trace.start[rows]))]
    at = int(np.flatnonzero(rows == row)[0])
    return int(rows[at - 1]) if at else -1, int(rows[at + 1]) if at + 1 < len(rows) else -1


def _role(rank_trace: RankTrace, row: int) -> Role | str | None:
    """Its part of the model, or why that is not known; None for what is no work of a server's step."""
    if not is_server(rank_trace) or not rank_trace.is_device[row]:
        return None
    known = roles_of(rank_trace)
    at = np.flatnonzero(known.rows == row)
    if not len(at):
        return None
    here = int(at[0])
    if not known.role[here]:
        return f"{'; '.join(known.refused)}: {REMEDY}"
    captured = known.captured[here]
    return Role(
        role=str(known.role[here]),
        layer=_or_none(int(known.layer[here]), -1),
        known_by=str(known.known_by[here]),
        operator=captured.operator if captured else "",
        module=str(known.module[here]),
    )


def _peers(trace: Trace, rank_trace: RankTrace, row: int, missing: dict[str, str]) -> tuple[Peer, ...]:
    if not rank_trace.is_device[row] or rank_trace.event_class[row] != EventClass.COMMUNICATION:
        missing["peers"] = "it is no communication kernel"
        return ()
    frame = collectives(trace)
    own = frame[(frame["rank"] == rank_trace.rank) & (frame["event_id"] == rank_trace.event_id[row])].iloc[0]
    found = frame[(frame["match"] == own["match"]).fillna(False) & (frame["rank"] != rank_trace.rank)]
    if found.empty:
        missing["peers"] = (
            "only one rank is open"
            if len(trace.ranks) == 1
            else "no kernel of another rank certainly belongs to the same collective"
        )
    peers = []
    for rank, event, start in zip(found["rank"], found["event_id"], found["start_ns"], strict=True):
        other = trace.rank(int(rank))
        later = int(start) - int(own["start_ns"])
        peers.append(Peer(ref(other, row_of(other, int(event))), later, str(own["match_key"])))
    return tuple(peers)


def _or_none(value: int, null: int) -> int | None:
    return None if value == null else value
