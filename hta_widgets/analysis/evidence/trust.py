"""How far a recording can be trusted, and what may not be said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hta_widgets.analysis.evidence.prose import clipped
from hta_widgets.analysis.findings.withheld import all_withheld

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.records.vetoes import Veto
    from hta_widgets.trace.scope import Scope

_BECAUSE: Final = 160
_MOST_HEALTH: Final = 6
_LEVELS: Final = ("error", "warning")


def trust_of(trace: Trace, judged: Scope, verdict: str) -> dict[str, Any]:
    """Level, vetoes and health.

    Args:
        judged: the scope that the findings are about.
        verdict: why no sentence about the time of the recording could be true; "" if some can.

    The level is "none" with such a verdict; "low" where a class of statements is forbidden in what is judged;
    "medium" where a step that is left out, an error or a warning is known; else "high".
    """
    vetoes = [{"forbids": "everything", "because": clipped(verdict, _BECAUSE)}] if verdict else []
    within = all_withheld(trace, judged)
    vetoes += [{"forbids": claim, "because": clipped(why.detail, _BECAUSE)} for claim, why in within.items()]
    if "steps" not in within and (beside := _beside(trace, judged)):
        vetoes.append({"forbids": "steps", "because": beside})
    if _lacks_ranks(trace) and "ranks" not in within:
        because = "one rank of several was recorded: who is late is unknown; record all ranks"
        vetoes.append({"forbids": "ranks", "because": because})
    health = _health(trace)
    level = "none" if verdict else "low" if within else "medium" if vetoes or health else "high"
    return {"level": level, "vetoes": vetoes, "health": health}


def _beside(trace: Trace, judged: Scope) -> str:
    """Why steps beside the judged time are left out; "" where none are."""
    touching, steps = set(trace.vetoes(scope=judged)), judged.iterations
    beside = [
        veto
        for veto in trace.vetoes()
        if veto not in touching or (steps is not None and veto.iteration not in (None, *steps))
    ]
    return _because(trace, beside) if beside else ""


def _because(trace: Trace, vetoes: list[Veto]) -> str:
    first = min(vetoes, key=lambda veto: (veto.iteration is not None, veto.start_ns - veto.end_ns, veto.rank))
    said = f"rank {first.rank}: {first.reason}" if len(trace.ranks) > 1 else first.reason
    said += "; left out"
    if more := len({(veto.rank, veto.reason) for veto in vetoes}) - 1:
        said += f"; {more} more"
    return clipped(said, _BECAUSE)


def _lacks_ranks(trace: Trace) -> bool:
    size = trace.summary["world_size"]
    return len(trace.ranks) == 1 and isinstance(size, int) and size > 1


def _health(trace: Trace) -> list[dict[str, Any]]:
    """The errors and warnings, what several ranks share once."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in trace.health.to_dict("records"):
        key = (str(row["severity"]), str(row["check"]))
        if key[0] in _LEVELS:
            found.setdefault(key, {"severity": key[0], "check": key[1], "count": 0})["count"] += row["count"]
    order = sorted(found.values(), key=lambda entry: _LEVELS.index(entry["severity"]))
    return [{**entry, "count": int(entry["count"])} for entry in order[:_MOST_HEALTH]]
