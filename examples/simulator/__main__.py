"""Write the bundled example traces: `python -m examples.simulator [folder]`.

The files are committed; a test writes them again and compares.
"""

from __future__ import annotations

import sys
from pathlib import Path

from examples.simulator import simulate
from examples.simulator.bundled import JOBS

DATA = Path(__file__).resolve().parents[2] / "hta_widgets" / "examples" / "data"


def build(folder: Path = DATA) -> list[Path]:
    """Simulate every bundled job into `folder/<job>/`; the paths written."""
    return [path for name, job in JOBS.items() for path in simulate(job).write(folder / name)]


if __name__ == "__main__":
    for written in build(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA):
        sys.stdout.write(f"{written.stat().st_size:>9,} bytes  {written.parent.name}/{written.name}\n")
