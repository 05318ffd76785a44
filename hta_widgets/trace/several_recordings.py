"""How the files of a folder divide into recordings: of other jobs, or of one job at other times.

Jobs differ in the sizes that their files state; without these in when they ran, where no more than one of two
files communicates, and in their kernels. One job was recorded several times where its ranks were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, pairwise

from hta_widgets.trace.evidence import PROGRAM
from hta_widgets.trace.one_job import unrelated, world_size
from hta_widgets.trace.rank_events import Header
from hta_widgets.trace.reader.file_names import TraceFile, coordinates, rank_in_name
from hta_widgets.trace.reader.ranks import stated_rank
from hta_widgets.trace.reader.recordings import Recordings, nearest_times
from hta_widgets.trace.reader.stated import whole_number

_TIMES = "the times at which they were recorded"
_ENOUGH_NAMES = 8
"""With fewer kernels two programs share few by chance."""
_EPOCH_NS = 1_000_000_000 * 1_000_000_000
"""Times above are counted from 1970: 2001 and later."""


def recordings_of(
    files: Sequence[TraceFile],
    headers: Sequence[Header],
    positions: Sequence[int],
    proposed: Recordings | None,
) -> tuple[dict[int, TraceFile], Recordings] | None:
    """The recordings that these files are, and the file of each position; None if they are one.

    Where names propose recordings, what the files hold can only confirm these.
    """
    if len(positions) < 2:
        return None
    own = [TraceFile(files[at].source, files[at].name, files[at].folder) for at in positions]
    of = [headers[at] for at in positions]
    found = None if proposed is None else _as_proposed(own, of, proposed)
    if found is None:
        runs, why = _runs(own, of)
        if len(runs) < 2:
            return None
        called = _names(runs, own)
        if proposed is not None:
            names = {file.name: name for name, of_one in proposed.files.items() for file in of_one}
            pairs = {(key, names[own[at].name]) for key, run in enumerate(runs) for at in run}
            if not len(pairs) == len(runs) == len(proposed.files):
                return None
            called = [name for _, name in sorted(pairs)]
        found = Recordings(
            {name: [own[at] for at in run] for name, run in zip(called, runs, strict=True)}, True, why
        )
    return dict(zip(positions, own, strict=True)), found


def _as_proposed(
    files: Sequence[TraceFile], headers: Sequence[Header], proposed: Recordings
) -> Recordings | None:
    """The recordings that the names propose, where some are of different jobs and none may be of one.

    That is judged by the first file of each; those of one that are of several are told apart.
    """
    place = {file.name: at for at, file in enumerate(files)}
    named = {
        name: [place[file.name] for file in of_one if file.name in place]
        for name, of_one in proposed.files.items()
    }
    named = {name: places for name, places in named.items() if places}
    firsts = [places[0] for places in named.values()]
    own, of = [files[at] for at in firsts], [headers[at] for at in firsts]
    spans = spans_of(of)
    who = [worker_of(file, header) for file, header in zip(own, of, strict=True)]
    pairs = list(combinations(range(len(firsts)), 2))
    if any(_together(of, spans, *pair) for pair in pairs):
        return None
    if not any(_apart(own, of, spans, who, *pair) for pair in pairs):
        return None
    found: dict[str, list[TraceFile]] = {}
    for name, places in named.items():
        mine = [files[at] for at in places]
        runs, _ = _runs(mine, [headers[at] for at in places])
        called = _names(runs, mine) if len(runs) > 1 else []
        for run, number in zip(runs, called or [""], strict=True):
            inner = number if number.startswith(f"{name}/") else "/".join(filter(None, (name, number)))
            found[inner] = [mine[at] for at in run]
    return Recordings(found, True, proposed.why)


def _runs(files: Sequence[TraceFile], headers: Sequence[Header]) -> tuple[list[list[int]], str]:
    """The files of each job and time, in the order of time, and what tells them apart."""
    spans = spans_of(headers)
    jobs, why = _by_job(files, headers, spans)
    runs = [run for job in jobs for run in _by_time(job, files, headers, spans)]
    runs.sort(key=lambda run: min((spans[at] if spans else (0, 0), at) for at in run))
    return runs, why or _TIMES


def spans_of(headers: Sequence[Header]) -> list[tuple[int, int]] | None:
    """When each was recorded, since 1970; None unless that is known of all."""
    spans = []
    for header in headers:
        if header.extent is None:
            return None
        base = whole_number(header.metadata.get("baseTimeNanoseconds")) or 0
        if header.extent[0] + base < _EPOCH_NS:
            return None
        spans.append((header.extent[0] + base, header.extent[1] + base))
    return spans


def worker_of(file: TraceFile, header: Header) -> tuple[int, frozenset[tuple[str, int]]] | None:
    """Whose file it is: the rank that it or its name states, and its place in the grid."""
    rank = stated_rank(header.stated)[0]
    rank = rank_in_name(file) if rank is None else rank
    places = frozenset(coordinates(file).items())
    return None if rank is None and not places else (-1 if rank is None else rank, places)


def _names(runs: Sequence[Sequence[int]], files: Sequence[TraceFile]) -> list[str]:
    """What to call each recording: like the folder that holds it alone, its only file, or by its number."""
    folders = [{files[at].name.rpartition("/")[0].partition("/")[0] for at in run} for run in runs]
    shared = Counter(folder for of_one in folders for folder in of_one)
    numbers = [str(number) for number in range(1, len(runs) + 1)]
    names = []
    for run, of_one, number in zip(runs, folders, numbers, strict=True):
        folder = next(iter(of_one))
        alone = folder and len(of_one) == shared[folder] == 1
        names.append(folder if alone else files[run[0]].name if len(run) == 1 else number)
    return names if len(set(names)) == len(names) else numbers


def _by_job(
    files: Sequence[TraceFile], headers: Sequence[Header], spans: Sequence[tuple[int, int]] | None
) -> tuple[list[list[int]], str]:
    """The files of each job, and what tells jobs apart; all as one job where nothing does.

    Files are of one job if each is joined to the next by a pair that `_apart` does not tell apart.
    """
    who = [worker_of(file, header) for file, header in zip(files, headers, strict=True)]
    rest, jobs = list(range(len(files))), list[list[int]]()
    while rest:
        job = [rest.pop(0)]
        for one in job:  # which grows
            apart = {at for at in rest if _apart(files, headers, spans, who, one, at)}
            job += [at for at in rest if at not in apart]
            rest = [at for at in rest if at in apart]
        jobs.append(sorted(job))
    if any(len({size for at in job if (size := _size(headers[at]))}) > 1 for job in jobs):
        return [list(range(len(files)))], ""  # a file that states no size may be of two jobs
    reasons = [_apart(files, headers, spans, who, job[0], other[0]) for job, other in pairwise(jobs)]
    return jobs, " and ".join(dict.fromkeys(reasons))


def _apart(
    files: Sequence[TraceFile],
    headers: Sequence[Header],
    spans: Sequence[tuple[int, int]] | None,
    who: Sequence[object],
    one: int,
    other: int,
) -> str:
    """What shows that two files are not of one job; "" if nothing does.

    Ranks of one job that communicate may seem to run at different times, since their hosts' clocks differ.
    """
    sizes, groups = zip(
        *((_size(headers[at]), headers[at].evidence.group) for at in (one, other)), strict=True
    )
    if all(sizes):
        if sizes[0] != sizes[1]:
            return "the sizes of their jobs"
        # replicas of one server, which the names tell apart, are ranks of one job all the same
        alone = sizes[0] == 1 and not any(coordinates(files[at]) for at in (one, other))
        return "the size of their jobs, one rank each" if alone else ""
    shared = len(groups[0]) > 1 and groups[0] == groups[1]
    if shared or (None not in (who[one], who[other]) and who[one] != who[other]):
        return ""
    both = all(
        size > 1 or headers[at].evidence.communicates for size, at in zip(sizes, (one, other), strict=True)
    )
    if spans and not both and (spans[one][1] <= spans[other][0] or spans[other][1] <= spans[one][0]):
        return _TIMES
    return "their kernels" if _other_program(headers[one], headers[other]) else ""


def _together(
    headers: Sequence[Header], spans: Sequence[tuple[int, int]] | None, one: int, other: int
) -> bool:
    """Whether two files may be of one job: they share a process group and, if that is known, time."""
    groups = headers[one].evidence.group, headers[other].evidence.group
    if len(groups[0]) < 2 or groups[0] != groups[1]:
        return False
    return spans is None or (spans[one][0] < spans[other][1] and spans[other][0] < spans[one][1])


def _size(header: Header) -> int:
    """How many ranks a file says that its job has; 0 if it does not say."""
    return world_size(header.metadata) or int(header.evidence.group == (0,))


def _other_program(one: Header, other: Header) -> bool:
    mine, theirs = set(one.evidence.program), set(other.evidence.program)
    lowest = set(sorted(mine | theirs)[:PROGRAM])
    return min(len(mine), len(theirs)) >= _ENOUGH_NAMES and unrelated(mine & lowest, theirs & lowest)


def _by_time(
    job: list[int],
    files: Sequence[TraceFile],
    headers: Sequence[Header],
    spans: Sequence[tuple[int, int]] | None,
) -> list[list[int]]:
    """The files of each time at which a job was recorded."""
    if spans is None or len(job) < 2:
        return [job]
    who, times = [worker_of(files[at], headers[at]) for at in job], [spans[at] for at in job]
    keys = _by_rank(who, times) if None not in who else None
    if who.count(None) == len(who):
        keys = _by_run(max(len(headers[at].evidence.group) for at in job), times)
    if keys is None:
        return [job]
    return [[at for at, key in zip(job, keys, strict=True) if key == run] for run in sorted(set(keys))]


def _by_rank(who: Sequence[object], spans: Sequence[tuple[int, int]]) -> list[int] | None:
    """The n-th time that a rank was recorded, if some rank was several times and never twice at once."""
    if max(Counter(who).values()) < 2:
        return None
    for one in set(who):
        own = sorted(span for span, other in zip(spans, who, strict=True) if other == one)
        if any(after[0] < before[1] for before, after in pairwise(own)):
            return None
    return nearest_times(who, [start for start, _ in spans])


def _by_run(size: int, spans: Sequence[tuple[int, int]]) -> list[int] | None:
    """Which of the runs that never ran together each file is of; None unless each has `size` files."""
    order = sorted(range(len(spans)), key=lambda at: spans[at])
    keys, run, until = [0] * len(spans), 0, spans[order[0]][1]
    for at in order:
        if spans[at][0] >= until:
            run += 1
        until = max(until, spans[at][1])
        keys[at] = run
    return keys if run and set(Counter(keys).values()) == {size} else None
