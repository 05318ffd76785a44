"""Which tests run a line: each file of tests is run once with coverage.py, which notes the test."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from coverage import CoverageData

from tests.support import ROOT

_OWN_BUDGET, _BUDGET = 60.0, 40.0  # seconds, as noted with coverage.py, of those about its file and of all


class Lines:
    """What is known of lines, kept in a folder: for each file of tests its lines and its seconds."""

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._root = folder, root
        self._of: dict[str, dict[int, list[tuple[float, str]]]] = {}

    def files(self) -> list[str]:
        """All files of tests whose lines can be noted."""
        found = sorted((self._root / "tests").rglob("test_*.py"))
        return [str(path.relative_to(self._root)) for path in found if "browser" not in path.parts]

    def begin(self, file: str) -> Path:
        """Where coverage.py is to note the lines of a file of tests."""
        data = self._kept(file, ".coverage")
        data.unlink(missing_ok=True)
        return data

    def keep(self, file: str, ran_in: Path, seconds: Mapping[str, float], red: list[str]) -> str:
        """What is noted of a file of tests counts from now on; how many tests that are, in words.

        They ran in a copy of the checkout, which may have changed since.
        """
        green = {test: time for test, time in seconds.items() if test not in red}
        data = CoverageData(str(self._kept(file, ".coverage")))
        data.read()
        sources = {str(each): self._keep_text(ran_in / each) for each in data.measured_files()}
        about = {"digest": _digest(ran_in / file), "seconds": green, "sources": sources}
        self._kept(file, ".json").write_text(json.dumps(about), encoding="utf-8")
        return f"{len(green)} tests"

    def knows(self, file: str) -> bool:
        """Whether the lines of this version of a file of tests are noted."""
        about, today = self._kept(file, ".json"), _digest(self._root / file)
        return about.exists() and bool(json.loads(about.read_text(encoding="utf-8"))["digest"] == today)

    def tests(self, file: str, lines: Iterable[int], about_it: Collection[str] = ()) -> list[str]:
        """The tests that run one of these lines: those of the files about it, then all.

        Of each the quickest, as many as a line is worth.
        """
        if file not in self._of:
            self._of[file] = self._read(file)
        found = sorted({each for line in lines for each in self._of[file].get(line, ())})
        own = [(seconds, test) for seconds, test in found if test.partition("::")[0] in about_it]
        chosen = [*_affordable(own, _OWN_BUDGET), *_affordable(found, _BUDGET)]
        return list(dict.fromkeys(self._as_today(chosen, {test.partition("::")[0] for _, test in found})))

    def _as_today(self, tests: list[str], files: Collection[str]) -> Iterator[str]:
        """Of files that have changed since, all cases of a test that is still there, and what is new."""
        for test in tests:
            file, _, name = test.partition("[")[0].partition("::")
            if file not in self._changed:
                yield test
            elif name.rpartition("::")[2] in self._changed[file]:
                yield f"{file}::{name}"
        for file in sorted({*files} & {*self._changed}):
            yield from (f"{file}::{name}" for name, is_new in self._changed[file].items() if is_new)

    def _read(self, file: str) -> dict[int, list[tuple[float, str]]]:
        found: dict[int, list[tuple[float, str]]] = {}
        moved: dict[str, dict[int, int]] = {}
        for noted, data in self._all:
            seconds, source = noted["seconds"], noted["sources"].get(file)
            if source is None:
                continue
            if source not in moved:
                moved[source] = self._moved(file, source)
            today = moved[source]
            for line, tests in data.contexts_by_lineno(file).items():
                if line in today:
                    of_line = found.setdefault(today[line], [])
                    of_line.extend((seconds[test], test) for test in tests if test in seconds)
        return found

    @cached_property
    def _all(self) -> list[tuple[dict[str, Any], CoverageData]]:
        """What is noted of each file of tests, opened once."""
        found = []
        for about in sorted(self._folder.glob("*.json")):
            data = CoverageData(str(about.with_suffix(".coverage")))
            data.read()
            found.append((json.loads(about.read_text(encoding="utf-8")), data))
        return found

    @cached_property
    def _changed(self) -> dict[str, dict[str, bool]]:
        """The tests of files that are not as they were when they were noted, and whether each is new."""
        found = {}
        for noted, _ in self._all:
            before = {test.partition("[")[0].rpartition("::")[2] for test in noted["seconds"]}
            file = next(iter(noted["seconds"]), "").partition("::")[0]
            path = self._root / file
            if path.is_file() and _digest(path) != noted["digest"]:
                names = re.findall(r"^( *)def (test_\w+)", path.read_text(encoding="utf-8"), re.M)
                found[file] = {name: not indent and name not in before for indent, name in names}
        return found

    def _moved(self, file: str, source: str) -> dict[int, int]:
        """Where the lines of a source stand today, of those that are as they were when they were noted."""
        before, today = (
            path.read_text(encoding="utf-8").split("\n") for path in (self._text(source), self._root / file)
        )
        blocks = difflib.SequenceMatcher(None, before, today, autojunk=False).get_matching_blocks()
        return {old + at: new + at for old, new, size in blocks for at in range(1, size + 1)}

    def _keep_text(self, path: Path) -> str:
        """Under which digest the text of a source is kept."""
        digest = _digest(path)
        if not self._text(digest).exists():
            self._text(digest).parent.mkdir(exist_ok=True)
            self._text(digest).write_bytes(path.read_bytes())
        return digest

    def _text(self, digest: str) -> Path:
        return self._folder / "sources" / digest

    def _kept(self, file: str, suffix: str) -> Path:
        return self._folder / f"{file.removesuffix('.py').replace('/', '-')}{suffix}"


def _affordable(tests: list[tuple[float, str]], budget: float) -> Iterator[str]:
    """The quickest of these tests: of each file of tests one before a second, of each test one case.

    Where one takes too long, quicker ones still follow.
    """
    cases: Counter[str] = Counter()
    of_file: Counter[tuple[str, int]] = Counter()
    rounds = []
    for seconds, test in tests:
        function, file = test.partition("[")[0], test.partition("::")[0]
        case = cases[function]
        rounds.append((case, of_file[file, case], seconds, test))
        cases[function] += 1
        of_file[file, case] += 1
    so_far = 0.0
    for at, (_, _, seconds, test) in enumerate(sorted(rounds)):
        if not at or so_far + seconds <= budget:
            so_far += seconds
            yield test


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
