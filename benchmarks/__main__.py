"""Measure all groups, or those that are named; fail when a ratio has fallen below its floor."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import textwrap
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from benchmarks import machine, page
from benchmarks.figure import Figure, table
from benchmarks.setup import Setup

GROUPS = {  # the peer that each is measured beside
    "small_files": "HTA",
    "large_files": "HTA",
    "methods": "HTA",
    "first_calls": "",
    "selections": "",
    "explorer": "",
    "ranks": "",
    "replay": "",
    "comparisons": "HTA",
    "beside_perfetto": "Perfetto",
    "reports": "",
    "what_if": "",
}
IN_THE_CHECKOUT = ("beside_perfetto", "reports", "what_if")  # in this process, or a notebook's
IN_CI = ("small_files", "large_files", "selections")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", choices=[[], *GROUPS], help="default: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--small", action="store_true", help="small recordings, for a look: no page is written"
    )
    parser.add_argument("--in-ci", action="store_true", help="the groups of CI, small, once")
    arguments = parser.parse_args()
    small = arguments.small or arguments.in_ci
    chosen = arguments.groups or (IN_CI if arguments.in_ci else tuple(GROUPS))
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        setup = Setup(Path(folder), 1 if arguments.in_ci else arguments.rounds, small)
        for group in chosen:
            load, begun = os.getloadavg()[0], time.monotonic()
            try:
                figures = [figure.at_pace(setup.pace) for figure in measure_of(group)(setup)]
            except (Exception, SystemExit) as error:  # the other groups can still be measured
                traceback.print_exc()
                failed.append(f"{group} was not measured: {error}")
                continue
            text = table(figures, GROUPS[group])
            print(f"\n## {group}, {(time.monotonic() - begun) / 60:.1f} min\n\n{text}", flush=True)
            if not small:
                told = textwrap.fill(
                    machine.described(install_of(group), setup.rounds, load, setup.pace), 118
                )
                page.write({group: f"{told}\n\n{text}"})
            failed += [
                f"{group} fell below a floor: {figure.what}: {figure.ratio:.2f} x, at least {figure.floor} x"
                for figure in figures
                if figure.fell
            ]
    for line in failed:
        print(line, file=sys.stderr)
    return bool(failed)


def install_of(group: str) -> str:
    """Which hta_widgets the group measures, in words."""
    return "the checkout" if group in IN_THE_CHECKOUT else "the wheel, built in isolation"


def measure_of(group: str) -> Callable[[Setup], list[Figure]]:
    """What measures a group; imported when it is its turn, since some need a browser."""
    package = "benchmarks.timeline" if group == "beside_perfetto" else "benchmarks"
    return import_module(f"{package}.{group}").measure  # type: ignore[no-any-return]


if __name__ == "__main__":
    sys.exit(main())
