"""Prepare recordings for a repository: `python publish.py recordings h100/run_1`.

Copies the manifest, measured constants, traces and memory snapshots of a run, without the folders and the
user of the machine that recorded them, as tightly compressed as gzip can, and the same bytes each time. With
`--bundled`, recordings that `recorder.bundled` names go there, under those names.
"""

from __future__ import annotations

import argparse
import gzip
import pickle
import re
import shutil
from pathlib import Path

from recorder import manifest
from recorder.bundled import BUNDLED

# Inductor's cache is named after the user; PyTorch and these scripts lie anywhere.
_FOLDERS = re.compile(rb"/(?:[\w.+-]+/)*(?=torchinductor_)torchinductor_\w+/|/tmp/(?=tmp\w+\.json)")
_INSTALLED = re.compile(r"^/.*/(?:site-packages|examples/recording)/")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("recordings", type=Path, help="what record_all.py wrote")
    made.add_argument("out", type=Path, help="folder")
    made.add_argument("--bundled", type=Path, help="folder of the examples of the package")
    made.add_argument("--only", nargs="+", metavar="NAME", help="recordings to publish (default: all)")
    return made


def trace(raw: bytes) -> bytes:
    """A gzipped trace, without folders, in the fewest bytes."""
    text = _FOLDERS.sub(b"", gzip.decompress(raw))
    return gzip.compress(text, 9, mtime=0)


def snapshot(raw: bytes) -> bytes:
    """A memory snapshot of our own (unpickling one runs what it says), without folders."""
    return pickle.dumps(_shortened(pickle.loads(raw), {}), 4)


def _shortened(value: object, made: dict[int, object]) -> object:
    # A pickle holds shared objects once: so must the new one.
    if id(value) not in made:
        if isinstance(value, dict):
            made[id(value)] = {key: _shortened(item, made) for key, item in value.items()}
        elif isinstance(value, (list, tuple)):
            made[id(value)] = type(value)(_shortened(item, made) for item in value)
        else:
            made[id(value)] = _INSTALLED.sub("", value) if isinstance(value, str) else value
    return made[id(value)]


def publish(recordings: Path, out: Path, bundled: Path | None, only: list[str] | None) -> None:
    """Copy a run."""
    out.mkdir(parents=True, exist_ok=True)
    for path in recordings.glob("*.json"):
        shutil.copyfile(path, out / path.name)
    names = [*manifest.load(recordings)["recordings"], "constants"]
    for name in names:
        if only and name not in only:
            continue
        place = bundled / BUNDLED[name] if bundled and name in BUNDLED else out / name
        for path in sorted((recordings / name).glob("rank-*")):
            place.mkdir(parents=True, exist_ok=True)
            made = snapshot if path.suffix == ".pickle" else trace
            (place / path.name).write_bytes(made(path.read_bytes()))


if __name__ == "__main__":
    arguments = parser().parse_args()
    publish(arguments.recordings, arguments.out, arguments.bundled, arguments.only)
