"""How much of the device work of each recording in a folder has a formula: the table in docs/formulas.md.

python benchmarks/formula_coverage.py ../shared/traces
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from hta_widgets import analysis
from hta_widgets.errors import HtaWidgetsError
from hta_widgets.trace.model import Trace

STATES = {
    "formula": "with a formula",
    "communication": "communication",
    "no operator": "outside operators",
    "inputs not recorded": "inputs not recorded",
    "no formula": "no formula",
}


def row_of(path: Path) -> list[float]:
    """% of the device work in each state, of all ranks of one recording."""
    frame = analysis.formula_coverage(Trace.open(path, cache=False))
    spent = frame.groupby("state")["device_ns"].sum()
    whole = int(spent.sum())
    if not whole:
        raise ValueError("no device work")
    return [100.0 * spent.get(state, 0) / whole for state in STATES]


def table(folder: Path) -> str:
    """A markdown table of all files of traces; those without device work are left out."""
    lines = [f"| recording | {' | '.join(STATES.values())} |", "|---|" + "--:|" * len(STATES)]
    for path in sorted(file for file in folder.rglob("*.json*") if file.is_file()):
        try:
            shares = row_of(path)
        except (HtaWidgetsError, ValueError) as error:
            sys.stderr.write(f"{path.relative_to(folder)}: {error}\n")
            continue
        name = str(path.relative_to(folder)).removesuffix(".gz").removesuffix(".json")
        lines.append(" | ".join([f"| `{name}`", *(f"{share:.1f} %" for share in shares)]) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Tell the share of device work with a formula.")
    parser.add_argument("folder", type=Path, help="of recordings")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print(table(parser.parse_args().folder))


if __name__ == "__main__":
    main()
