"""`hta-widgets event`: everything about events that a document names as RANK:ID."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hta_widgets.analysis.evidence.budget import dumped, tokens_of
from hta_widgets.analysis.evidence.names import cleaned
from hta_widgets.analysis.inspect.event import inspect_event
from hta_widgets.cli.document import plain
from hta_widgets.cli.exits import Exit, UsageError
from hta_widgets.cli.opening import open_trace
from hta_widgets.cli.output import check_writable, text_form_of, write_lines
from hta_widgets.cli.terminal import printable
from hta_widgets.trace.model import Trace

_REF: Final = re.compile(r"(\d+):(\d+)")
_MOST: Final = 20
_FIRST: Final = 3  # of events that an answer lists
# What is left out first where an event takes more than its budget.
_LEAST: Final = (
    "same_name", "children", "launched", "peers", "backward", "parts", "previous", "next", "roofline",
    "arguments", "python", "parents", "missing", "role", "module", "operator", "gone", "launch", "forward",
)  # fmt: skip


def run(arguments: Namespace) -> Exit:
    """Run the command."""
    refs = [found for path in arguments.paths if (found := _REF.fullmatch(path))]
    paths = [path for path in arguments.paths if not _REF.fullmatch(path)]
    if not refs or not paths:
        raise UsageError("name a recording and events as RANK:ID, such as run_17/ 0:482")
    if len(refs) > _MOST:
        raise UsageError(f"at most {_MOST} events at once, not {len(refs)}")
    check_writable(arguments.output)
    form = text_form_of(arguments.json, arguments.output)
    trace = open_trace(Namespace(**{**vars(arguments), "paths": paths}))
    events = [_event(trace, int(ref[1]), int(ref[2]), arguments.budget) for ref in refs]
    if form == "json":
        write_lines(arguments.output, [dumped({"kind": "event", "events": events})])
    else:
        write_lines(arguments.output, _lines(events))
    return Exit.FINE


def _event(trace: Trace, rank: int, number: int, budget: int) -> dict[str, Any]:
    """What is known about an event, in at most `budget` tokens, without what is empty."""
    try:
        facts = inspect_event(trace, rank, number).to_dict()
    except KeyError as error:
        raise UsageError(f"{rank}:{number}: {error.args[0]}") from None
    found: dict[str, Any] = {"ref": f"{rank}:{number}", **_short(plain(facts))}
    left_out: list[str] = []
    for name in _LEAST:
        names = tokens_of(dumped({"left_out": left_out})) + 1
        if tokens_of(dumped(found)) + names <= budget:
            break
        if found.pop(name, None) is not None:
            left_out.append(name)
    if left_out:
        found["left_out"] = left_out
    return found


def _short(value: Any) -> Any:
    """Names cut, references as RANK:ID, lists to their first, and nothing that is empty."""
    if isinstance(value, str):
        return cleaned(value)
    if isinstance(value, Mapping):
        parts = {str(name): _short(each) for name, each in value.items() if name not in ("rank", "event_id")}
        if "event_id" in value:
            parts = {"ref": f"{value['rank']}:{value['event_id']}", **parts}
        return {name: each for name, each in parts.items() if each not in (None, "", [], {})}
    if isinstance(value, list):
        shown = [_short(each) for each in value[:_FIRST]]
        return [*shown, f"{len(value) - _FIRST} more"] if len(value) > _FIRST else shown
    return value


def _lines(events: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each fact, nested ones by their path."""
    for at, event in enumerate(events):
        if at:
            yield ""
        yield from (f"{name}: {printable(str(value))}" for name, value in _flat(event, ""))


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _flat(each, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _flat(each, f"{path}[{at}]")
    else:
        yield path, value
