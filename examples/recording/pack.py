"""Pack recordings into a few archives: `python pack.py recordings packed --megabytes 15`.

Where files can be fetched from a machine only by number and size. Each recording stays in one archive.
"""

from __future__ import annotations

import argparse
import tarfile
from pathlib import Path


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("recordings", type=Path, help="what record_all.py wrote")
    made.add_argument("out", type=Path, help="folder of the archives")
    made.add_argument("--megabytes", type=float, default=15, help="largest archive (default: %(default)s)")
    return made


def pack(recordings: Path, out: Path, limit: float) -> list[str]:
    """Write part-0.tar, part-1.tar, ... of at most `limit` bytes; returns what is too large for any."""
    out.mkdir(parents=True, exist_ok=True)
    sizes = {
        path: sum(file.stat().st_size + 1024 for file in path.rglob("*") if file.is_file()) + 10_240
        for path in sorted(recordings.iterdir())
    }
    parts: list[list[Path]] = []
    room: list[float] = []
    too_large = []
    # The largest first, each into the first archive with room for it.
    for path, size in sorted(sizes.items(), key=lambda item: -item[1]):
        if size > limit:
            too_large.append(f"{path.name}: {size / 2**20:.1f} MiB")
            continue
        fitting = next((index for index, left in enumerate(room) if size <= left), None)
        if fitting is None:
            parts.append([])
            room.append(limit)
            fitting = len(parts) - 1
        parts[fitting].append(path)
        room[fitting] -= size
    for index, paths in enumerate(parts):
        with tarfile.open(out / f"part-{index}.tar", "w") as archive:
            for path in paths:
                archive.add(path, path.name)
    return too_large


if __name__ == "__main__":
    arguments = parser().parse_args()
    for line in pack(arguments.recordings, arguments.out, arguments.megabytes * 2**20):
        print("left out, too large:", line)
