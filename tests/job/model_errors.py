"""How far the replay of jobs is from their recordings, and from the slowdown that is known: docs/what_if.md.

python -m tests.job.model_errors            # writes the table
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from hta_widgets import examples
from hta_widgets.analysis import slowdown
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from tests.job.conversion import MS, recorded
from tests.job.labelled import answers
from tests.verdicts.planted.late_ranks import SLOW, one
from tests.verdicts.planted.rank_programs import Pace, Play, data_parallel, pipeline

PAGE = Path(__file__).parents[2] / "docs" / "what_if.md"
MARK = "<!-- written by tests/job/model_errors.py -->\n"
STEPS = 8
HEAD = """| job | recorded | model error | ranks' errors | slowdown | range | known | error |
|---|---|--:|--:|--:|--:|--:|--:|
"""

UNKIND = {
    "as it was": {},
    "clocks off by milliseconds": {"clock_ns": 5 * MS},
    "clocks off by seconds": {"clock_ns": 1000 * MS},
    "clocks drift by 20 ppm": {"drift": 2e-5},
    "layer norms' reduction in the replicas' group": {"norm_of_replicas": True},
    "clip as a plain kernel": {"clip_is_a_kernel": True},
    "both of these": {"norm_of_replicas": True, "clip_is_a_kernel": True},
    "without rank 1": {"missing": (1,)},
    "without rank 5": {"missing": (5,)},
    "without rank 0": {"missing": (0,)},
    "without the odd ranks": {"missing": tuple(range(1, 16, 2))},
    "without the even ranks": {"missing": tuple(range(0, 16, 2))},
}


class Known(NamedTuple):
    """A job, how it was recorded, and its slowdown if that is known otherwise."""

    job: str
    recorded: str
    trace: Trace
    slowdown: float | None


def jobs(folder: Path) -> Iterator[Known]:
    """All jobs of the table; files go into the folder."""
    for name, ranks in (("AR", 16), ("ST", 8)):
        job = f"published, {ranks} ranks"
        yield Known(job, "all steps", recorded(folder / name, name), answers(name)["S"])
        for number, (how, options) in enumerate(UNKIND.items()):
            trace = recorded(folder / f"{name}{number}", name, STEPS, **options)  # type: ignore[arg-type]
            yield Known(job, f"{STEPS} steps, {how}", trace, answers(name, STEPS)["S"])
    yield from small_jobs(folder)


def small_jobs(folder: Path) -> Iterator[Known]:
    """The jobs that are simulated, or come with the library."""
    # one of four computes half as long again; ideally all take the mean: 4 ms times 1.125, and a transfer
    slow, stages = folder / "slow", folder / "stages"
    slow.mkdir()
    stages.mkdir()
    played = Play(data_parallel(one(4, 1, Pace(1.5)))).open(slow)
    yield Known("simulated, 4 data-parallel ranks", "one slow", played, (6.0 + 0.1) / (4.5 + 0.1))
    yield Known("simulated, pipeline of 4", "one slow", Play(pipeline(one(4, 1, SLOW))).open(stages), None)
    yield Known("`ddp_4ranks`", "bundled", examples.load("ddp_4ranks"), None)


def row(known: Known) -> str:
    """The line of a job."""
    start = f"| {known.job} | {known.recorded} |"
    truth = "" if known.slowdown is None else f"{known.slowdown:.3f}"
    try:
        frame = slowdown(known.trace)
    except MissingDataError as error:
        return f"{start} no answer: {error.field} | | | | {truth} | |\n"
    job = frame.iloc[0]
    errors = frame.loc[frame["scope"] == "rank", "model_error_pct"]
    spread = f"{errors.min():+.1f} to {errors.max():+.1f} %"
    low, high, found = (job[f"slowdown{end}"] for end in ("_low", "_high", ""))
    error = f"{job['model_error_pct']:+.2f} %"
    off = "" if known.slowdown is None else f"{100 * (found / known.slowdown - 1):+.2f} %"
    holds = "" if known.slowdown is None or low - 0.005 <= known.slowdown <= high + 0.005 else " (misses)"
    return f"{start} {error} | {spread} | {found:.3f} | {low:.3f} to {high:.3f}{holds} | {truth} | {off} |\n"


def table() -> str:
    """The table as Markdown."""
    with TemporaryDirectory() as folder:
        return HEAD + "".join(row(known) for known in jobs(Path(folder)))


def main() -> None:
    """Write the table into the page."""
    before, _, after = PAGE.read_text().split(MARK)
    PAGE.write_text(f"{before}{MARK}\n{table()}\n{MARK}{after}")


if __name__ == "__main__":
    main()
