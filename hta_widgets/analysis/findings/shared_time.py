"""The time in which ranks can be compared: where their recordings differ, a mean over them is of no rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from hta_widgets.analysis.core.claim import Claim, Text, say
from hta_widgets.analysis.findings.finding import NOTE_PCT, WARNING_PCT, Evidence, Finding
from hta_widgets.analysis.findings.rule import MAIN_QUESTION, Found, Rule
from hta_widgets.formatting import capitalised, duration, ranks_in_words

if TYPE_CHECKING:
    from hta_widgets.analysis.findings.inputs import Inputs

Span = tuple[int, int]

UNLIKE: Final = 1.5
"""Times of ranks that differ by this factor are not averaged."""
_MOST: Final = 0.5
# Less work of a rank says nothing about it.
_ENOUGH_WORK: Final = 3
DIFFERENT_RECORDINGS: Final = Rule(
    topic="different_recordings",
    question=MAIN_QUESTION,
    title="Ranks recorded differently",
    judge=lambda inputs: None,
    role="aside",
    unjudged=True,
)


@dataclass(frozen=True)
class SharedTime:
    """What is judged where the recordings of ranks differ."""

    window_ns: Span | None = None  # judged on each rank; None: each has its own time
    # rank -> by how much later than the first it begins to record, or to enter `step`, ns
    late: Mapping[int, int] = field(default_factory=dict)
    # the first recorded one, which ranks enter apart. It is left out if there are others.
    step: int | None = None
    # rank -> how long it would be judged, of the ranks that are not; ns
    apart: Mapping[int, int] = field(default_factory=dict)
    lengths: Mapping[int, int] = field(default_factory=dict)  # the same of all ranks


def shared_time(
    works: Mapping[int, Span],
    recorded: Mapping[int, Span],
    work_in: Callable[[int, int, int], int],
    exchange_at: Callable[[int, int], int],
    least_pct: float = NOTE_PCT,
) -> SharedTime | None:
    """What to judge of ranks without steps, or with one; None: each its own device work, first to last.

    A rank that begins to record later makes others wait that began before it, which the job does not do; one
    that stops recording earlier is not idle afterwards. A rank that records as long as the others and works
    less is idle.

    Args:
        works: rank -> from its first device work to its last.
        recorded: rank -> from its first event to its last.
        work_in: how much device work of a rank starts between two times.
        exchange_at: when the communication of a rank ends that runs at a time; that time if none runs.
        least_pct: by less, in % of the longest, nothing begins or ends apart.
    """
    lengths = {rank: end - begin for rank, (begin, end) in works.items()}
    least = least_pct / 100 * max(lengths.values())
    begin, end = min(begin for begin, _ in works.values()), max(end for _, end in works.values())
    first = min(begin for begin, _ in recorded.values())
    late = {
        rank: recorded[rank][0] - first
        for rank, (own, _) in works.items()
        if own - begin >= least and 2 * (recorded[rank][0] - first) >= own - begin
    }
    if not late and not lengths_apart(lengths):
        return None
    waiting = False
    if late:  # those that wait for the first work go on together after it
        joined = max(works[rank][0] for rank in late)
        begin = max(exchange_at(rank, joined) for rank in works)
        waiting = begin > joined
    end = min([end, *(last for _, last in recorded.values() if end - last >= least)])
    enough = all(work_in(rank, begin, end) >= _ENOUGH_WORK for rank in works)
    if enough and (late or end - begin >= _MOST * max(lengths.values())):
        return SharedTime((begin, end), late, lengths=lengths)
    if waiting:  # the work of those that began before is hardly more than the wait
        apart = {rank: ns for rank, ns in lengths.items() if rank not in late}
        return SharedTime(late=late, apart=apart, lengths=lengths)
    return SharedTime(apart=apart, lengths=lengths) if (apart := lengths_apart(lengths)) else None


def lengths_apart(lengths: Mapping[int, int]) -> dict[int, int]:
    """The ranks whose time is so much shorter than the longest that their mean would be of neither."""
    longest = max(lengths.values(), default=0)
    return {rank: ns for rank, ns in lengths.items() if ns * UNLIKE <= longest}


def late_entry(
    step: int, first: Mapping[int, int], second: Mapping[int, int], usual_ns: float
) -> SharedTime | None:
    """The first step, if ranks enter it at different times, and the next one together; None if not.

    Args:
        step: its number.
        first, second: rank -> when its host begins the first step, and the next one.
        usual_ns: how long the later steps take.
    """
    if min(len(first), len(second)) < 2:
        return None
    spread, later = (max(of.values()) - min(of.values()) for of in (first, second))
    if 100.0 * spread < WARNING_PCT * usual_ns or 2 * later > spread:
        return None
    begin = min(first.values())
    late = {rank: at - begin for rank, at in first.items() if 2 * (at - begin) >= spread}
    return SharedTime(late=late, step=step)


def different_recordings(inputs: Inputs) -> Found | None:
    """That ranks are recorded so differently that some time, or some ranks, are not judged."""
    shared = inputs.shared
    if shared is None:
        return None
    if shared.late:
        text, headline = _late(shared)
    elif shared.apart:
        text, headline = _apart(shared)
    else:
        text, headline = _same_time(shared)
    finding = Finding(
        0,
        0.0,
        text,
        "Begin and end the recording of all ranks at the same step, after a barrier: "
        "torch.profiler.schedule(wait=1, warmup=3, active=5).",
        "",
        Evidence(),
        severity="note",
        headline=headline,
    )
    return Found(DIFFERENT_RECORDINGS, finding)


def _apart(shared: SharedTime) -> tuple[Text, str]:
    ranks, whole = tuple(sorted(shared.apart)), shared.lengths
    others = tuple(rank for rank in sorted(whole) if rank not in shared.apart)
    who = ranks_in_words(ranks)
    text = say(
        "{who} {are} not judged: {their} time is {time} at most, that of {others} {longest}, and a mean of "
        "both would be of neither.",
        who=Claim("unlike_ranks", ranks, "ranks", shown=capitalised(who), about={"others": others}),
        are="is" if len(ranks) == 1 else "are",
        their="its" if len(ranks) == 1 else "their",
        time=Claim("longest_time", max(shared.apart.values()), "ns", ranks=ranks),
        others=Claim("unlike_ranks", others, "ranks", shown=ranks_in_words(others), about={"others": ranks}),
        longest=Claim("longest_time", max(whole.values()), "ns", ranks=others),
    )
    verb = "isn't" if len(ranks) == 1 else "aren't"
    return text, f"{capitalised(who)} {verb} judged: {duration(max(shared.apart.values()))} recorded"


def _late(shared: SharedTime) -> tuple[Text, str]:
    ranks, most = tuple(sorted(shared.late)), max(shared.late.values())
    who = capitalised(ranks_in_words(ranks))
    s = "s" * (len(ranks) == 1)
    up_to = "up to " * (len(ranks) > 1)
    subject = Claim("recorded_late", ranks, "ranks", shown=who)
    later = Claim("recorded_later", most, "ns", "", ranks)
    began = f"begin{s} to record"
    if shared.step is not None:
        about = {"step": shared.step}
        subject, later = replace(subject, about=about), replace(later, about=about)
        began = f"enter{s} the first step"
    said = say(f"{{who}} {began} {up_to}{{later}} after the others.", who=subject, later=later)
    if shared.apart:
        apart = tuple(sorted(shared.apart))
        said += say(
            " What is recorded of {apart} is little but the wait for that, and not judged: the job does not "
            "lose it.",
            apart=Claim("not_judged_ranks", apart, "ranks"),
        )
    elif shared.window_ns is None:
        step = Claim("left_out_step", (shared.step or 0,), "steps")
        said += say(
            " The cause lies before the recording: step {step} is left out of what is said here.", step=step
        )
    else:
        time = Claim("judged_time", shared.window_ns[1] - shared.window_ns[0], "ns")
        said += say(
            " What these wait meanwhile, the job does not lose: what is said here is about the {time} that "
            "all ranks record.",
            time=time,
        )
    return said, f"{who} {began} {up_to}{duration(most)} after the others"


def _same_time(shared: SharedTime) -> tuple[Text, str]:
    assert shared.window_ns is not None
    least, most = min(shared.lengths.values()), max(shared.lengths.values())
    text = say(
        "From its first device work to its last, a rank takes {least} to {most}. All are judged over the "
        "same {time}, which all of them record: a rank without work is idle.",
        least=Claim("shortest_work", least, "ns"),
        most=Claim("longest_work", most, "ns"),
        time=Claim("judged_time", shared.window_ns[1] - shared.window_ns[0], "ns"),
    )
    return text, f"Ranks work for {duration(least)} to {duration(most)}"
