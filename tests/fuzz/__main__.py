"""A long run: `python -m tests.fuzz --inputs 2000000`, with `--first` to go on from another seed."""

from __future__ import annotations

import argparse
import time
from collections import Counter

from tests.fuzz.campaign import supervised
from tests.fuzz.targets import TARGETS

TOLD_SECONDS = 60.0


def main() -> int:
    """Print the counts now and then, and at the end; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=2_000_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", choices=list(TARGETS))
    arguments = parser.parse_args()
    begun = told = time.monotonic()
    counts: Counter[str] = Counter()
    failures: list[str] = []
    shown = 0
    for progress in supervised(arguments.first, arguments.inputs, arguments.only):
        done, counts, failures = progress
        if time.monotonic() - told > TOLD_SECONDS:
            told = time.monotonic()
            print(f"{done:,} inputs in {told - begun:,.0f} s, {len(failures)} failures", flush=True)
        print(*failures[shown:], sep="\n", end="\n" if len(failures) > shown else "", flush=True)
        shown = len(failures)
    for outcome, count in sorted(counts.items()):
        print(f"{count:>10,}  {outcome}")
    print(f"{counts.total():>10,}  inputs in {time.monotonic() - begun:,.0f} s, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
