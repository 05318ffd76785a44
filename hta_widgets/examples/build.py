"""Write the bundled example traces: `python -m hta_widgets.examples.build [folder]`.

The files are committed; a test writes them again and compares.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hta_widgets.examples.jobs import JOBS
from hta_widgets.examples.simulator import simulate

DATA = Path(__file__).parent / "data"


def build(folder: Path = DATA) -> list[Path]:
    """Simulate every bundled job into `folder/<job>/`; the paths written."""
    return [path for name, job in JOBS.items() for path in simulate(job).write(folder / name)]


if __name__ == "__main__":
    for written in build(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA):
        sys.stdout.write(f"{written.stat().st_size:>9,} bytes  {written.parent.name}/{written.name}\n")
