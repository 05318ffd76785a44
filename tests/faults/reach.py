"""What each file of tests sees of the faults: it is run once, with a probe in the place of each of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.faults.catalogue import Fault
from tests.faults.probes import can_be_probed
from tests.support import ROOT


@dataclass(frozen=True)
class Seen:
    """What one file of tests saw."""

    digest: str
    seconds: dict[str, float]
    """Its tests in the order in which they run."""
    red: list[str]
    reached: dict[str, dict[str, bool]]
    """By the names of faults, the tests that reach them, "" while importing; True where the value differs."""

    def differing(self, fault: Fault) -> list[str]:
        """Tests that see another value, the quickest first."""
        tests = [test for test, differs in self.reached.get(fault.name, {}).items() if differs]
        if "" in tests:
            return self.green
        return sorted((test for test in tests if test in self.green), key=self.seconds.__getitem__)

    @property
    def green(self) -> list[str]:
        """Tests that pass without any fault."""
        return [test for test in self.seconds if test not in self.red]

    def later(self, tests: list[str]) -> list[str]:
        """Tests that may use what these left: a fixture of the file, a memo, a kept answer."""
        order = list(self.seconds)
        first = min((order.index(test) for test in tests), default=len(order))
        return [test for test in order[first:] if test in self.green and test not in tests]


_Run = Callable[[dict[str, dict[str, str]], str], dict[str, Any]]
"""From the text of each module with each fault, and a file of tests, to the arguments of `Seen`."""


class Reach:
    """What files of tests see, kept in a file; `run` runs one of them and tells what it saw."""

    def __init__(self, faults: list[Fault], kept: Path, run: _Run) -> None:
        self._run, self._kept = run, kept
        self._seen: dict[str, Seen] = {}
        if kept.exists():
            for line in kept.read_text(encoding="utf-8").splitlines():
                file, seen = json.loads(line)
                self._seen[file] = Seen(**seen)
        self.changed: dict[str, dict[str, str]] = {}
        for fault in faults:
            text = "" if fault.in_front_end else (ROOT / fault.file).read_text(encoding="utf-8")
            if text and can_be_probed(text, changed := text.replace(fault.old, fault.new)):
                self.changed.setdefault(fault.file, {})[fault.name] = changed
        self._faults = json.dumps(self.changed)

    def seen(self, file: str) -> Seen:
        """What a file of tests saw; it is run if that is not known, or another version of it was."""
        text = (ROOT / file).read_text(encoding="utf-8")
        digest = hashlib.sha256((text + self._faults).encode()).hexdigest()
        if file not in self._seen or self._seen[file].digest != digest:
            self._seen[file] = Seen(digest, **self._run(self.changed, file))
            with self._kept.open("a", encoding="utf-8") as kept:
                kept.write(json.dumps([file, asdict(self._seen[file])]) + "\n")
        return self._seen[file]

    def rounds(self, fault: Fault) -> Iterator[tuple[str, ...]]:
        """Tests that may notice a fault, nearest first: those that see it, then those that run after them."""
        probed = fault.name in self.changed.get(fault.file, {})
        for file in fault.files_of_tests:
            yield tuple(self.seen(file).differing(fault) if probed else self.seen(file).green)
        for file in fault.files_of_tests if probed else ():
            yield tuple(self.seen(file).later(self.seen(file).differing(fault)))

    def told(self, fault: Fault) -> str:
        """Why a fault may have survived."""
        if fault.name not in self.changed.get(fault.file, {}):
            return "it cannot be probed"
        seen = [self.seen(file) for file in fault.files_of_tests]
        tests = sum(len(one.differing(fault)) for one in seen)
        if tests:
            return f"{tests} tests see another value"
        return (
            "no test sees another value"
            if any(fault.name in one.reached for one in seen)
            else "no test reaches it"
        )
