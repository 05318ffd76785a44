"""A copy of the checkout, in which a fault can be put and taken back."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.catalogue import Fault
from tests.support import ROOT

# Not tracked, and needed by tests: they are linked, not copied.
LINKED = (".hta", "js/node_modules", "hta_widgets/widgets/static", "hta_widgets/jit/portable_code")


class Tree:
    """A copy of the checkout at `path`, brought up to date when it is made."""

    def __init__(self, path: Path) -> None:
        self.root = path / "tree"
        self.compiled = path / "numba"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout.split("\0")  # fmt: skip
        wanted = {Path(name) for name in listed if name and (ROOT / name).is_file()}
        wanted = {name for name in wanted if str(name) not in LINKED}
        for name in wanted:
            _copy(ROOT / name, self.root / name)
        for name in LINKED:
            link = self.root / name
            if (ROOT / name).exists() and not link.is_symlink():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to((ROOT / name).resolve())
        for folder, folders, files in os.walk(self.root):
            folders[:] = [one for one in folders if not one.startswith((".", "__pycache__"))]
            for file in files:
                path = Path(folder, file)
                if path.relative_to(self.root) not in wanted and not path.is_symlink():
                    path.unlink()

    @contextmanager
    def with_fault(self, fault: Fault) -> Iterator[None]:
        """Put the fault in as long as the context lasts."""
        file = self.root / fault.file
        text, before = file.read_text(encoding="utf-8"), file.stat()
        try:
            file.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
            # Python and numba tell a changed file by the seconds of its time: never those of the original
            changed = before.st_mtime + 100
            os.utime(file, (changed, changed))
            yield
        finally:
            file.write_text(text, encoding="utf-8")
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def _copy(source: Path, target: Path) -> None:
    status = source.stat()
    if target.exists():
        there = target.stat()
        if (there.st_mtime_ns, there.st_size) == (status.st_mtime_ns, status.st_size):
            return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)
