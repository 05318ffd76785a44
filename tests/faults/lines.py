"""Which tests run a line: each file of tests is run once with coverage.py, which notes the test."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from coverage import CoverageData

from tests.support import ROOT

_BUDGET = 20.0  # seconds of the tests that judge a line


class Lines:
    """What is known of lines, kept in a folder: for each file of tests its lines and its seconds."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._of: dict[str, dict[int, list[tuple[float, str]]]] = {}

    def files(self) -> list[str]:
        """All files of tests whose lines can be noted."""
        found = sorted((ROOT / "tests").rglob("test_*.py"))
        return [str(path.relative_to(ROOT)) for path in found if "browser" not in path.parts]

    def begin(self, file: str) -> Path:
        """Where coverage.py is to note the lines of a file of tests."""
        data = self._kept(file, ".coverage")
        data.unlink(missing_ok=True)
        return data

    def keep(self, file: str, seconds: Mapping[str, float], red: list[str]) -> str:
        """What is noted of a file of tests counts from now on; how many tests that are, in words."""
        digest = hashlib.sha256((ROOT / file).read_bytes()).hexdigest()
        green = {test: time for test, time in seconds.items() if test not in red}
        about = {"digest": digest, "seconds": green}
        self._kept(file, ".json").write_text(json.dumps(about), encoding="utf-8")
        return f"{len(green)} tests"

    def knows(self, file: str) -> bool:
        """Whether the lines of this version of a file of tests are noted."""
        about = self._kept(file, ".json")
        digest = hashlib.sha256((ROOT / file).read_bytes()).hexdigest()
        return about.exists() and json.loads(about.read_text(encoding="utf-8"))["digest"] == digest

    def tests(self, file: str, line: int) -> list[str]:
        """The quickest tests that run a line, in as many seconds as it is worth; none that only import it."""
        if file not in self._of:
            self._of[file] = self._read(file)
        chosen, so_far = [], 0.0
        for seconds, test in sorted(self._of[file].get(line, ())):
            so_far += seconds
            if chosen and so_far > _BUDGET:
                break
            chosen.append(test)
        return chosen

    def _read(self, file: str) -> dict[int, list[tuple[float, str]]]:
        found: dict[int, list[tuple[float, str]]] = {}
        for about in sorted(self._folder.glob("*.json")):
            seconds = json.loads(about.read_text(encoding="utf-8"))["seconds"]
            data = CoverageData(str(about.with_suffix(".coverage")))
            data.read()
            for line, tests in data.contexts_by_lineno(file).items():
                found.setdefault(line, []).extend((seconds[test], test) for test in tests if test in seconds)
        return found

    def _kept(self, file: str, suffix: str) -> Path:
        return self._folder / f"{file.removesuffix('.py').replace('/', '-')}{suffix}"
