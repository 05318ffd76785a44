"""Record every setup of the matrix: `python record_all.py`, or on a CPU `python record_all.py --device cpu`.

Runs `record.py` once for each recording, so that none inherits a warm cache, a compiled model or a process
group. What cannot be recorded here goes into OUT/manifest.json with the reason, and the rest goes on. The
output of each run is kept in OUT/logs.
"""

from __future__ import annotations

import argparse
import itertools
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from recorder import manifest
from recorder.matrix import DEVICES, backends, left_out, ranks_of, recordings
from recorder.setup import Setup

RECORD = Path(__file__).with_name("record.py")
# `record.py` takes minutes at most; a process group whose rank has died may wait for ever.
LIMIT_SECONDS = 300


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--device", choices=DEVICES, default="cuda", help="cuda means AMD GPUs too")
    made.add_argument("--out", type=Path, default=Path("recordings"), help="folder (default: %(default)s)")
    made.add_argument("--ranks", type=int, default=2, help="of the distributed setups (default: %(default)s)")
    made.add_argument("--only", nargs="+", metavar="NAME", help="recordings to make (default: all)")
    made.add_argument("--seconds", type=float, help="begin no recording after so many seconds")
    made.add_argument("--list", action="store_true", help="print the commands and record nothing")
    for option in ("--warmup", "--repeats", "--steps", "--active"):
        made.add_argument(option, type=int, help="as for record.py")
    return made


def command(name: str, setup: Setup, backend: str | None, arguments: argparse.Namespace) -> list[str]:
    """The command that makes a recording."""
    launcher = [sys.executable]
    ranks = ranks_of(setup, arguments.ranks)
    if ranks > 1:
        launcher += ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
    words = ["--device", arguments.device, "--out", str(arguments.out), "--name", name]
    if backend:
        words += ["--backend", backend]
    for option in ("warmup", "repeats", "steps", "active"):
        if (value := getattr(arguments, option)) is not None:
            words += [f"--{option}", str(value)]
    return [*launcher, str(RECORD), *words, *setup.arguments()]


def attempts(name: str, setup: Setup, gpus: int, arguments: argparse.Namespace) -> list[list[str]]:
    """The commands to try in order until one records."""
    tried: list[str | None] = list(backends(setup, arguments.device, arguments.ranks, gpus))
    return [command(name, setup, backend, arguments) for backend in tried or [None]]


def main(words: list[str]) -> int:
    """Record what the command line says; 0 if everything that can be recorded here was."""
    made = parser()
    arguments = made.parse_args(words)
    chosen = recordings(arguments.device)
    if unknown := set(arguments.only or ()) - set(chosen):
        made.error(f"no such recording: {', '.join(sorted(unknown))}; there are {', '.join(chosen)}")
    if arguments.ranks < 2:
        made.error("--ranks starts at 2: fewer are no distributed job")
    chosen = {name: setup for name, setup in chosen.items() if name in (arguments.only or chosen)}
    if arguments.list:
        for name, setup in chosen.items():
            print(shlex.join(attempts(name, setup, arguments.ranks, arguments)[0]))
        return 0
    try:
        # Not at the top: the matrix can be listed and tested without PyTorch.
        from recorder import machine
    except ModuleNotFoundError as error:
        made.error(f"recording needs PyTorch ({error})")
    gpus = machine.gpus()
    if arguments.device == "cuda" and not gpus:
        made.error("PyTorch sees no GPU; --device cpu records on the CPU")
    (arguments.out / "logs").mkdir(parents=True, exist_ok=True)
    failed = list(_record_each(chosen, gpus, arguments))
    problems = manifest.problems(manifest.load(arguments.out))
    print(*problems, f"{len(chosen) - len(failed)} recorded or left out, {len(failed)} failed", sep="\n")
    return 1 if failed or problems else 0


def _record_each(chosen: dict[str, Setup], gpus: int, arguments: argparse.Namespace) -> Iterator[str]:
    """Record in order; names of what should have worked here and did not.

    The next process imports PyTorch while one records, and waits for its turn on the device.
    """
    end = None if arguments.seconds is None else time.monotonic() + arguments.seconds
    names = [name for name in chosen if not _left_out(name, chosen[name], arguments)]
    waiting: dict[str, Run] = {}
    for name, following in zip(names, [*names[1:], None], strict=True):
        if end is not None and time.monotonic() > end:
            manifest.leave_out(arguments.out, name, f"no time left after {arguments.seconds:g} s")
            continue
        commands = attempts(name, chosen[name], gpus, arguments)
        first = waiting.pop(name, None) or Run(name, commands[0], arguments.out)
        if following and ranks_of(chosen[following], arguments.ranks) == 1:
            command = [*attempts(following, chosen[following], gpus, arguments)[0], "--wait"]
            waiting[following] = Run(following, command, arguments.out)
        if not _record(name, first, commands[1:], gpus, arguments):
            yield name
    for run in waiting.values():
        run.process.communicate()  # without a line to read it ends


def _left_out(name: str, setup: Setup, arguments: argparse.Namespace) -> bool:
    if reason := left_out(setup, arguments.device):
        manifest.leave_out(arguments.out, name, reason)
        print(f"{name}: left out: {reason}")
    return bool(reason)


def _record(name: str, first: Run, others: list[list[str]], gpus: int, arguments: argparse.Namespace) -> bool:
    """Make one recording; False if it should have worked here and did not."""
    reasons: list[str] = []
    for run in itertools.chain([first], (Run(name, words, arguments.out) for words in others)):
        manifest.leave_out(arguments.out, name, "interrupted")
        reason = run.end()
        # The entry is written last: what happens to a process after it costs nothing.
        recording = manifest.load(arguments.out)["recordings"].get(name)
        if recording:
            print(*manifest.lines(name, recording), sep="\n", flush=True)
            return True
        reasons.append(reason)
    shares_gpu = bool(others) and arguments.device == "cuda" and gpus < arguments.ranks
    if shares_gpu:
        reasons.append(f"several ranks need as many GPUs, here {gpus}")
    manifest.leave_out(arguments.out, name, "; ".join(reasons))
    print(f"{name}: {'left out' if shares_gpu else 'failed'}: {'; '.join(reasons)}", flush=True)
    return shares_gpu


class Run:
    """A process that makes a recording, its output in a file."""

    def __init__(self, name: str, words: list[str], out: Path) -> None:
        self.log = out / "logs" / f"{name}.log"
        with self.log.open("a") as file:
            file.write(f"$ {shlex.join(words)}\n")
            file.flush()
            self.process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=file, stderr=subprocess.STDOUT, text=True
            )

    def end(self) -> str:
        """Let the process go on until its end; returns its last error in one line."""
        try:
            self.process.communicate("now\n", timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return f"no end after {LIMIT_SECONDS} s"
        return next(_errors(self.log), f"exit code {self.process.returncode}")


def _errors(log: Path) -> Iterator[str]:
    """Lines of the log that name an exception, the last first."""
    for line in reversed(log.read_text(errors="replace").splitlines()):
        text = line.partition("]: ")[2] or line  # torchrun puts the rank before each line
        word = text.partition(":")[0]
        if word.endswith(("Error", "Exception")) and " " not in word and "ChildFailed" not in word:
            yield text[:300]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
