"""The faults as data: one TOML file per area, one table per fault."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Fault:
    """One slip: ``old``, which is in ``file`` exactly once, becomes ``new``; one of ``tests`` should fail."""

    area: str
    slug: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.area}.{self.slug}"

    @property
    def in_front_end(self) -> bool:
        return self.file.startswith("js/")

    @property
    def files_of_tests(self) -> tuple[str, ...]:
        """A test may be named within its file: ``tests/test_x.py::test_y``."""
        return tuple(dict.fromkeys(test.partition("::")[0] for test in self.tests))

    @property
    def wider(self) -> tuple[str, ...]:
        """The folders of the tests, for what these do not notice."""
        if self.in_front_end:
            return ("js/test",)
        folders = {str(Path(file).parent) for file in self.files_of_tests} - {"tests"}
        return tuple(sorted(folders)) or self.files_of_tests

    def problem(self, root: Path) -> str:
        """Why the fault cannot be put into this tree, empty if it can."""
        file = root / self.file
        if not file.exists():
            return f"there is no {self.file}"
        count = file.read_text(encoding="utf-8").count(self.old)
        if count != 1:
            return f"its text occurs {count} times in {self.file}"
        missing = [test for test in self.tests if not _exists(root, test)]
        return f"there is no {missing[0]}" if missing else ""

    def digest(self, root: Path) -> str:
        """Changes with the fault and the file that it is put into."""
        return _digest(self.old, self.new, (root / self.file).read_text(encoding="utf-8"))

    def digest_of_tests(self, root: Path) -> str:
        """Changes with its tests."""
        return _digest(
            *self.tests, *((root / file).read_text(encoding="utf-8") for file in self.files_of_tests)
        )


def _exists(root: Path, test: str) -> bool:
    file, _, function = test.partition("::")
    if not function or not (root / file).is_file():
        return (root / file).is_file()
    function = function.partition("[")[0].rpartition("::")[2]
    return f"def {function}(" in (root / file).read_text(encoding="utf-8")


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def faults() -> list[Fault]:
    """All faults, area by area."""
    found = []
    for path in sorted(HERE.glob("*.toml")):
        for slug, entry in tomllib.loads(path.read_text(encoding="utf-8")).items():
            tests = tuple(entry.pop("tests"))
            found.append(Fault(path.stem, slug, tests=tests, **entry))
    return found
