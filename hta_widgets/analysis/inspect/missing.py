"""Why parts of the answer about an event are empty."""

from __future__ import annotations

from hta_widgets.analysis.inspect.record import EventFacts
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

_PROFILE = "record with torch.profiler.profile"


def why_missing(rank_trace: RankTrace, row: int, facts: EventFacts) -> dict[str, str]:
    """For each part that is empty, why; what only a look at the data tells is said where it is looked at."""
    classes = rank_trace.event_class
    frames = bool((classes == EventClass.PYTHON).any())
    operators = bool((classes == EventClass.HOST_OP).any())
    on_device = bool(rank_trace.is_device[row])
    why = {
        "parts": "its name follows no convention that is known"
        if on_device
        else "only names of device work have parts",
        "arguments": "the file has none for it",
        "operator": "no operator was open around it, or around its launch"
        if operators
        else f"no operators are recorded: {_PROFILE}(activities=[ProfilerActivity.CPU, ...])",
        "module": "no nn.Module was open around it, or around its forward operator"
        if frames
        else f"calls of nn.Module are not recorded: {_PROFILE}(with_stack=True)",
        "python": "no Python function was open around it, or around its launch, on its thread"
        if frames
        else f"Python functions are not recorded: {_PROFILE}(with_stack=True)",
        "parents": "it was not launched by a recorded call" if on_device else "it is the outermost call",
        "children": "device work calls nothing" if on_device else "it made no recorded call",
        "launched": "it is device work" if on_device else "it launched no recorded device work",
    }
    filled = {
        "parts": bool(facts.parts), "arguments": bool(facts.arguments), "parents": bool(facts.parents),
        "operator": facts.operator is not None, "module": facts.module is not None,
        "python": bool(facts.python), "children": facts.children.count > 0,
        "launched": facts.launched.count > 0,
    }  # fmt: skip
    if facts.forward is None and not facts.backward.count:
        numbered = rank_trace.table.has("sequence_number")
        unpaired = (
            "no operator of the other pass has its sequence number"
            if numbered
            else "no operator has a sequence number"
        )
        why |= {"forward": unpaired, "backward": unpaired}
        filled |= {"forward": False, "backward": False}
    return {name: reason for name, reason in why.items() if not filled[name]}
