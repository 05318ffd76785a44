"""Which operator launches most of some kernels, in which module and from which line of the program."""

from __future__ import annotations

import re
import sys
from collections import Counter
from statistics import median

from tests.claims.job import Job, PlainRank, Record
from tests.claims.plain_kernels import KINDS, kernels_of
from tests.claims.registry import Stated, check, close

PRIMITIVE = re.compile(r"aten::(copy_|_to_copy|clone|fill_|zero_)$")
LINE = re.compile(r"\.py\(\d+\): ")
LIBRARY = re.compile(r"(^|/)(torch|triton|numpy|site-packages|dist-packages|lib/python[\d.]+)/")
OF_PYTHON = sys.stdlib_module_names - {"code", "profile", "trace"}  # programs have these names, too


def launched(job: Job, stated: Stated) -> list[tuple[Record, list[Record]]]:
    """The kernels that a claim is about, with what is open around the launch of each."""
    (rank,) = job.of(stated.ranks)
    found = [(kernel, around(rank, kernel)) for kernel in kernels_of(job, rank, stated.about)]
    if "operator" not in stated.about:
        return found
    return [pair for pair in found if operator_in(pair[1]) == stated.about["operator"]]


def around(rank: PlainRank, kernel: Record) -> list[Record]:
    call = rank.launch(kernel)
    return rank.around(call) if call else []


def operator_in(calls: list[Record]) -> str:
    """The innermost operator that does more than carry out what the one around it asks for."""
    operators = [each.name for each in calls if each.category == "cpu_op"]
    return next((name for name in operators if not PRIMITIVE.match(name)), "")


def bounded(stated: Stated) -> bool:
    """Whether the kernels read here may be more than those that the claim is about."""
    return "kind" in stated.about and KINDS[stated.about["kind"]][1] == "most"


def by_operator(job: Job, stated: Stated) -> Counter[str]:
    time: Counter[str] = Counter()
    about = {key: value for key, value in stated.about.items() if key != "operator"}
    for kernel, calls in launched(job, Stated("", "", "", ranks=stated.ranks, about=about)):
        time[operator_in(calls)] += kernel.dur
    return time


@check("largest_launcher")
def largest_launcher(job: Job, stated: Stated) -> str:
    """No operator launches more of the time of these kernels."""
    time = by_operator(job, stated)
    del time[""]
    if stated.value not in time:
        return f"{stated.value} launches none of these kernels"
    if bounded(stated) or time[stated.value] >= 0.98 * max(time.values()):
        return ""
    return f"{max(time, key=time.__getitem__)} launches more"


@check("launched_by")
def launched_by(job: Job, stated: Stated) -> str:
    """How much of their time that is."""
    time = by_operator(job, stated)
    own, whole = time[stated.about["operator"]], sum(time.values())
    if not bounded(stated):
        return close(stated, 100.0 * own / max(whole, 1), 0.03, 1.0)
    of = stated.about["whole_ns"]  # the others of the kernels read here are not among them
    low, high = 100.0 * (own - whole + of) / of, 100.0 * own / of
    return "" if low - 0.1 <= stated.value <= min(high, 100.0) + 0.1 else f"{low:.3g} to {high:.3g} %"


def of_most(stated: Stated, places: list[str]) -> str:
    """Whether a place, or one that is empty for none, is that of more than half of some launches."""
    own = places.count(str(stated.value))
    if not own:
        return f"around these launches are {sorted(set(places))[:5]}"
    if bounded(stated) or 2 * own > len(places):
        return ""
    return f"it is around {own} of {len(places)} of them"


@check("launching_module")
def launching_module(job: Job, stated: Stated) -> str:
    """A module, or modules of a class, are the innermost around most of these launches."""
    places = []
    for _, calls in launched(job, stated):
        modules = [each.name for each in calls if each.name.startswith("nn.Module: ")]
        places.append(modules[0] if modules else "")
    if not any(each == stated.value for each in places):
        places = [re.sub(r"_\d+$", "", each) for each in places]
    return of_most(stated, places)


@check("launching_line")
def launching_line(job: Job, stated: Stated) -> str:
    """Most of these launches come from this line of the program, lines of libraries aside."""
    (rank,) = job.of(stated.ranks)
    if stated.about.get("call"):
        return of_most(stated, lines_around(rank, str(stated.about["call"])))
    if not {"kind", "pattern", "units"} & set(stated.about):  # launches of something else: the line is there
        return "" if rank.named(stated.value) else "no such line is recorded"
    places = []
    for _, calls in launched(job, stated):
        lines = [each.name for each in calls if LINE.search(each.name)]
        places.append(lines[0] if lines and of_program(lines[0]) else "")
    return of_most(stated, places)


def of_program(line: str) -> bool:
    """Whether a line is of neither an installed package nor Python itself."""
    return not LIBRARY.search(line) and re.split(r"\.py\(|/", line)[0] not in OF_PYTHON


def lines_around(rank: PlainRank, name: str) -> list[str]:
    """The innermost line of the program around each call of that name; empty for none."""
    around_each = [[each.name for each in rank.around(call)] for call in rank.named(name)]
    return [
        next((line for line in names if LINE.search(line) and of_program(line)), "") for names in around_each
    ]


@check("launch_call")
def launch_call(job: Job, stated: Stated) -> str:
    """How long calls that launch kernels take: of each rank the median, of the ranks the least or median."""
    medians = []
    for rank in job.of(stated.ranks):
        calls = {call.number: call for each in rank.judged(rank.kernels) if (call := rank.launch(each))}
        medians.append(median(call.dur for call in calls.values()))
    return close(stated, {"least": min, "median": median}[stated.about["of_ranks"]](medians), 0.05, 100.0)
