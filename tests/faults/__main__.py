"""Puts faults in, one at a time, and tells which the tests noticed: ``python -m tests.faults --help``."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import queue
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import hatch_build
from tests.faults.catalogue import Fault, faults
from tests.faults.lines import Lines
from tests.faults.random_slips import random_slips
from tests.faults.tree import Tree
from tests.support import ROOT, SHARED_TRACES

_T = TypeVar("_T")
CAUGHT = ("caught", "caught by the wider tests", "caught by the time limit")
_LIMIT, _WIDER_LIMIT = 300, 900  # seconds; kernels may have to be compiled within it


@dataclass(frozen=True)
class Outcome:
    """What became of a fault, and of what state of the code and the tests that was."""

    name: str
    digest: str
    digest_of_tests: str
    verdict: str
    by: str
    seconds: float  # of CPU

    def holds(self, fault: Fault) -> bool:
        """Whether the fault would come to the same now: what is caught is not lost by further tests."""
        if self.digest != fault.digest(ROOT):
            return False
        return self.verdict in CAUGHT or self.digest_of_tests == fault.digest_of_tests(ROOT)


class Worker:
    """A copy of the tree with a process that runs tests in it."""

    def __init__(self, folder: Path) -> None:
        self.tree = Tree(folder)
        self.log = folder / "log"
        self._environment = {
            "PYTHONPATH": f"{folder}{os.pathsep}{self.tree.root}",
            "NUMBA_CACHE_DIR": str(self.tree.compiled),
            "HTA_WIDGETS_TRACES": str(SHARED_TRACES.resolve()),
        }
        self._pytest = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.warm"],
            cwd=self.tree.root, env=os.environ | self._environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._red: list[str] = []
        self.cpu_seconds = 0.0

    def map(self, file: str, lines: Lines) -> str:
        """Note which lines each test of a file runs; what became of that, in words."""
        data, report = lines.begin(file), self.log.with_name("report")
        report.unlink(missing_ok=True)
        limit = 4 * _WIDER_LIMIT  # to note lines takes twice as long
        code = self._pytest_run([file], limit, environment={}, lines=str(data), report=str(report))
        if not report.exists():
            return f"did not end ({code})"
        return lines.keep(file, self.tree.root, **json.loads(report.read_text(encoding="utf-8")))

    def judge(self, fault: Fault, wide: bool, noticed_by: str) -> tuple[str, str]:
        """What became of a fault, and the test that noticed it; `noticed_by`: the one that did so before."""
        rounds = [("caught", fault.tests, _LIMIT)]
        if (self.tree.root / noticed_by.partition("::")[0]).is_file() and not fault.in_front_end:
            rounds.insert(0, ("caught", (noticed_by,), _LIMIT))
        if wide and fault.wider:
            rounds.append(("caught by the wider tests", fault.wider, _WIDER_LIMIT))
        for verdict, tests, limit in rounds:
            code, by = self._noticed(fault, tests, limit)
            if code == 0 or (not by and tests == (noticed_by,)):  # gone or red today: let the others tell
                continue
            if not by:
                return "not judged", f"fails without the fault: {' '.join(tests)}"
            return ("caught by the time limit" if code == -1 else verdict), by
        return "survived", ""

    def _noticed(self, fault: Fault, tests: tuple[str, ...], limit: float) -> tuple[int, str]:
        """pytest's exit code with the fault, and the test that failed, "" if no test fails but without it."""
        while True:
            with self.tree.with_fault(fault):
                code = self.run(tests, limit)
                by = self._first_failed() if code else ""
            if code == 0:
                return code, ""
            failed = (by,) if "::" in by else tests
            if self.run(failed, _WIDER_LIMIT) == 0:
                return code, by or " ".join(tests)
            if failed == tests or by in self._red:
                return code, ""
            self._red.append(by)  # what fails without the fault, too, has not noticed it

    def run(self, tests: tuple[str, ...], limit: float) -> int:
        """0 if all tests pass, -1 if they do not end within the limit."""
        if tests[0].startswith("js/"):
            return self._vitest(tests, limit)
        deselected = [f"--deselect={test}" for test in self._red]
        return self._pytest_run(
            ["-x", *deselected, *tests], limit, environment={"PYTHONDONTWRITEBYTECODE": "1"}
        )

    def _pytest_run(
        self, arguments: list[str], limit: float, environment: dict[str, str], **further: str
    ) -> int:
        job = {
            "arguments": ["-q", "--tb=no", *_WITHOUT, *arguments],
            "environment": self._environment | environment,
            "log": str(self.log),
            "limit": limit,
            **further,
        }
        assert self._pytest.stdin and self._pytest.stdout
        self._pytest.stdin.write(json.dumps(job) + "\n")
        self._pytest.stdin.flush()
        line = self._pytest.stdout.readline()
        if not line:
            raise RuntimeError("the process that runs the tests is gone")
        code, seconds = json.loads(line)
        self.cpu_seconds += seconds
        return int(code)

    def _vitest(self, tests: tuple[str, ...], limit: float) -> int:
        npm = hatch_build.machine_npm() or hatch_build.packaged_npm()
        if npm is None:
            raise RuntimeError("faults of the front end need Node.js: python hatch_build.py")
        command = [str(Path(npm[0]).with_name("node")), "node_modules/vitest/vitest.mjs", "run", "--bail=1"]
        command.append("--no-file-parallelism")
        names = [str(Path(test).relative_to("js")) for test in tests]
        before = _cpu_of_children()
        with self.log.open("wb") as log:
            try:
                done = subprocess.run(
                    [*command, *names], cwd=self.tree.root / "js", stdout=log, stderr=log, timeout=limit,
                    env=os.environ | {"NO_COLOR": "1"}, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return -1
            finally:
                self.cpu_seconds += _cpu_of_children() - before
        return done.returncode

    def _first_failed(self) -> str:
        for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines():
            words = line.split()
            if words[:1] in (["FAILED"], ["ERROR"]) and len(words) > 1:
                return words[1] if "[" not in words[1] else line.removeprefix(f"{words[0]} ").split(" - ")[0]
            if words[:1] == ["FAIL"]:
                return " ".join(words[1:])
        return ""

    def close(self) -> None:
        assert self._pytest.stdin
        self._pytest.stdin.close()
        self._pytest.wait()


_WITHOUT = [f"-pno:{plugin}" for plugin in ("cacheprovider", "nbval", "anyio", "xdist")]


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    arguments = _arguments()
    own = hashlib.sha256(str(ROOT).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"hta_widgets-faults-{own}"
    if arguments.fresh:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    lines = Lines(folder / "lines")
    if arguments.map is not None:
        return _mapped(lines, arguments.map, folder, arguments.jobs)
    drawn = random_slips(ROOT, arguments.random, arguments.seed, lines) if arguments.random else faults()
    chosen = [
        fault
        for fault in drawn
        if (not arguments.area or fault.area in arguments.area)
        and (not arguments.only or any(part in fault.name for part in arguments.only))
    ]
    problems = {fault: problem for fault in chosen if (problem := fault.problem(ROOT))}
    for fault, problem in problems.items():
        print(f"stale      {fault.name}: {problem}")
    sound = [fault for fault in chosen if fault not in problems]
    if arguments.check:
        print(f"{len(sound):,} faults fit, {len(problems)} are stale")
        return bool(problems)
    outcomes = _all_judged(sound, folder, arguments)
    _report(sound, outcomes)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--area", action="append", help="faults of this area (may be given several times)")
    parser.add_argument("--only", action="append", default=[], help="faults whose name holds this text")
    parser.add_argument("--check", action="store_true", help="only tell which faults are stale")
    parser.add_argument(
        "--resume", action="store_true", help="keep the outcomes of what has not changed since"
    )
    parser.add_argument("--narrow", action="store_true", help="run no wider tests for what survives")
    parser.add_argument("--fresh", action="store_true", help="copy the tree and compile its kernels anew")
    parser.add_argument("--random", type=int, default=0, help="so many slips drawn at random instead")
    parser.add_argument("--seed", type=int, default=0, help="which ones are drawn")
    parser.add_argument(
        "--map",
        nargs="*",
        metavar="FILE",
        help="note which lines each test of these files runs (default: all)",
    )
    parser.add_argument("-j", dest="jobs", type=int, default=1, help="copies of the tree to work in at once")
    return parser.parse_args()


def _mapped(lines: Lines, chosen: list[str], folder: Path, jobs: int) -> int:
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for file in chosen or lines.files():
        if not lines.knows(file):
            waiting.put(file)

    def work(worker: Worker) -> None:
        for file in _each(waiting):
            worker.cpu_seconds = 0.0
            print(f"{file}: {worker.map(file, lines)} ({worker.cpu_seconds:.0f} s)", flush=True)

    _side_by_side(work, folder, jobs)
    return 0


def _side_by_side(work: Callable[[Worker], None], folder: Path, jobs: int) -> None:
    """Let as many workers do the work, each in a copy of the tree of its own."""

    def with_a_worker(number: int) -> None:
        worker = Worker(folder / str(number))
        work(worker)
        worker.close()

    threads = [threading.Thread(target=with_a_worker, args=(number,)) for number in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _each(waiting: queue.SimpleQueue[_T]) -> Iterator[_T]:
    """What waits, one after the other, for as long as something does."""
    with suppress(queue.Empty):
        while True:
            yield waiting.get_nowait()


def _all_judged(sound: list[Fault], folder: Path, arguments: argparse.Namespace) -> dict[str, Outcome]:
    kept = folder / "outcomes.jsonl"
    before = _read(kept)
    outcomes = {
        fault.name: before[fault.name]
        for fault in sound
        if arguments.resume and fault.name in before and before[fault.name].holds(fault)
    }
    waiting: queue.SimpleQueue[Fault] = queue.SimpleQueue()
    for fault in sound:
        if fault.name not in outcomes:
            waiting.put(fault)
    lock = threading.Lock()

    def work(worker: Worker) -> None:
        for fault in _each(waiting):
            worker.cpu_seconds = 0.0
            digests = fault.digest(ROOT), fault.digest_of_tests(ROOT)
            noticed_by = before[fault.name].by if fault.name in before else ""
            wide = not (arguments.random or arguments.narrow)
            verdict, by = worker.judge(fault, wide, noticed_by)
            outcome = Outcome(fault.name, *digests, verdict, by, round(worker.cpu_seconds, 1))
            with lock, kept.open("a", encoding="utf-8") as file:
                outcomes[fault.name] = outcome
                file.write(json.dumps(asdict(outcome)) + "\n")
                print(f"{outcome.verdict:<10} {fault.name}  {by}  ({outcome.seconds} s)", flush=True)

    _side_by_side(work, folder, arguments.jobs)
    return outcomes


def _read(kept: Path) -> dict[str, Outcome]:
    """The newest outcome of each fault."""
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    return {outcome.name: outcome for outcome in (Outcome(**json.loads(line)) for line in lines)}


def _report(sound: list[Fault], outcomes: dict[str, Outcome]) -> None:
    print("\narea                     caught  survived  not judged")
    for area in dict.fromkeys(fault.area for fault in sound):
        _count(area, [fault for fault in sound if fault.area == area], outcomes)
    _count("all", sound, outcomes)
    for verdict in ("survived", "not judged", "caught by the time limit", "caught by the wider tests"):
        there = [fault for fault in sound if outcomes[fault.name].verdict == verdict]
        if there:
            print(f"\n{verdict}:")
        for fault in there:
            print(f"  {fault.name}  {outcomes[fault.name].by or fault.file}")


def _count(name: str, some: list[Fault], outcomes: dict[str, Outcome]) -> None:
    verdicts = Counter(outcomes[fault.name].verdict for fault in some)
    caught, survived = sum(verdicts[verdict] for verdict in CAUGHT), verdicts["survived"]
    share = 100 * caught / max(caught + survived, 1)
    print(f"{name:<24} {caught:>6} {survived:>9} {verdicts['not judged']:>11}   {share:5.1f} %")


if __name__ == "__main__":
    raise SystemExit(main())
