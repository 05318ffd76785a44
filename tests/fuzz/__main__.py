"""A long run: `python -m tests.fuzz --inputs 2000000`, with `--first` to go on from another seed."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections import Counter
from collections.abc import Callable

from tests.fuzz.targets import SHARES, TARGETS

HANG_SECONDS = 5.0


def run(inputs: int, first: int = 0, only: str | None = None) -> tuple[Counter[str], list[str]]:
    """Fuzz with so many seeds: how often each outcome came, and what failed."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    for name, target in TARGETS.items():
        if only not in (None, name):
            continue
        for seed in range(first, first + max(1, round(inputs * (1.0 if only else SHARES[name])))):
            begun = time.monotonic()
            try:
                outcome = target(seed)
            except AssertionError as error:
                outcome = "wrong"
                failures.append(f"{name} {seed}: {error}")
            except Exception as error:
                outcome = "untyped"
                failures.append(f"{name} {seed}: {type(error).__name__}: {error}")
            counts[f"{name}: {outcome}"] += 1
            if time.monotonic() - begun > HANG_SECONDS and (seconds := _seconds(target, seed)) > HANG_SECONDS:
                counts[f"{name}: hangs"] += 1
                failures.append(f"{name} {seed}: {seconds:.1f} s")
    return counts, failures


def _seconds(target: Callable[[int], str], seed: int) -> float:
    """How long an input takes the second time: the first may have compiled, which is no hang."""
    begun = time.monotonic()
    with contextlib.suppress(Exception):
        target(seed)
    return time.monotonic() - begun


def main() -> int:
    """Print the counts; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=2_000_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", choices=list(TARGETS))
    arguments = parser.parse_args()
    counts, failures = run(arguments.inputs, arguments.first, arguments.only)
    for outcome, count in sorted(counts.items()):
        print(f"{count:>10,}  {outcome}")
    print(*failures[:20], sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
