"""What each file of tests sees of the faults: it is run once, with a probe in the place of each of them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.faults.catalogue import Fault
from tests.faults.probes import can_be_probed
from tests.support import ROOT

_SEVERAL = 4


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


class Reach:
    """What files of tests see, kept in a file."""

    def __init__(self, faults: list[Fault], kept: Path) -> None:
        self._kept = kept
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

        self._first = Counter(file for fault in faults for file in fault.files_of_tests[:2])

    def is_probed(self, fault: Fault) -> bool:
        """Whether a probe can stand in its place."""
        return fault.name in self.changed.get(fault.file, {})

    def is_shared(self, file: str) -> bool:
        """Whether a file of tests is that near to several faults."""
        return self._first[file] >= _SEVERAL

    def known(self, file: str) -> Seen | None:
        """What a file of tests saw, if that is known of this version of it."""
        seen = self._seen.get(file)
        return seen if seen and seen.digest == self._digest(file) else None

    def keep(self, file: str, answer: dict[str, Any]) -> Seen:
        """Remember what all of a file saw."""
        self._seen[file] = Seen(self._digest(file), **answer)
        with self._kept.open("a", encoding="utf-8") as kept:
            kept.write(json.dumps([file, asdict(self._seen[file])]) + "\n")
        return self._seen[file]

    def _digest(self, file: str) -> str:
        text = (ROOT / file).read_text(encoding="utf-8")
        return hashlib.sha256((text + self._faults).encode()).hexdigest()

    def told(self, fault: Fault) -> str:
        """Why a fault may have survived."""
        if not self.is_probed(fault):
            return "it cannot be probed"
        seen = [one for file in fault.files_of_tests if (one := self.known(file))]
        if not any(fault.name in one.reached for one in seen):
            return "no test reaches it"
        tests = sum(len(one.differing(fault)) for one in seen)
        return f"{tests} tests see another value" if tests else "no test sees another value"
