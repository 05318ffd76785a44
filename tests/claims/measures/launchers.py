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


def most_frequent(job: Job, stated: Stated, names: Counter[str]) -> str:
    if stated.value not in names:
        return f"around these launches are {list(names)[:5]}"
    if bounded(stated) or names[stated.value] >= 0.98 * max(names.values()):
        return ""
    return f"{names.most_common(1)[0][0]} is around more of them"


@check("launching_module")
def launching_module(job: Job, stated: Stated) -> str:
    """No module is the innermost around more of these launches."""
    names: Counter[str] = Counter()
    for _, calls in launched(job, stated):
        modules = [each.name for each in calls if each.name.startswith("nn.Module: ")]
        names.update(modules[:1])
    return most_frequent(job, stated, names)


@check("launching_line")
def launching_line(job: Job, stated: Stated) -> str:
    """From no line of the program more of these launches come, lines of libraries aside."""
    (rank,) = job.of(stated.ranks)
    if stated.about.get("call"):
        return most_frequent(job, stated, lines_around(rank, str(stated.about["call"])))
    if not {"kind", "pattern", "units"} & set(stated.about):  # launches of something else: the line is there
        return "" if rank.named(stated.value) else "no such line is recorded"
    names: Counter[str] = Counter()
    for _, calls in launched(job, stated):
        lines = [each.name for each in calls if LINE.search(each.name)]
        names.update(name for name in lines[:1] if of_program(name))
    return most_frequent(job, stated, names)


def of_program(line: str) -> bool:
    """Whether a line is of neither an installed package nor Python itself."""
    return not LIBRARY.search(line) and re.split(r"\.py\(|/", line)[0] not in OF_PYTHON


def lines_around(rank: PlainRank, name: str) -> Counter[str]:
    """The innermost lines of the program around calls of that name."""
    lines: Counter[str] = Counter()
    for call in rank.named(name):
        found = [each.name for each in rank.around(call) if LINE.search(each.name)]
        lines.update(list(filter(of_program, found))[:1])
    return lines


@check("launch_call")
def launch_call(job: Job, stated: Stated) -> str:
    """How long calls that launch kernels take: of each rank the median, of the ranks the least or median."""
    medians = []
    for rank in job.of(stated.ranks):
        calls = {call.number: call for each in rank.judged(rank.kernels) if (call := rank.launch(each))}
        medians.append(median(call.dur for call in calls.values()))
    return close(stated, {"least": min, "median": median}[stated.about["of_ranks"]](medians), 0.05, 100.0)
