"""Compare what hta_widgets foresees with what was measured: `python savings.py`, or `--write` for the docs.

Needs hta_widgets and no PyTorch. Reads the recordings of the H100, here and among the bundled examples.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from recorder.comparison import compare
from recorder.tables import constants, savings

PAGE = Path(__file__).parents[2] / "docs" / "measured_savings.md"
MARK = "<!-- written by examples/recording/savings.py -->\n"


def written(page: str, tables: list[str]) -> str:
    """A page with these tables, each between two marks."""
    parts = page.split(MARK)
    if len(parts) != 2 * len(tables) + 1:
        raise ValueError(f"{len(tables)} tables need {2 * len(tables)} marks, the page has {len(parts) - 1}")
    parts[1::2] = [f"\n{table}\n" for table in tables]
    return MARK.join(parts)


def main(words: list[str]) -> None:
    """Print the tables, or write them into the page."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--write", action="store_true", help=f"write them into docs/{PAGE.name}")
    arguments = made.parse_args(words)
    tables = [savings(compare()), constants()]
    print(*tables, sep="\n")
    if arguments.write:
        PAGE.write_text(written(PAGE.read_text(), tables))


if __name__ == "__main__":
    main(sys.argv[1:])
