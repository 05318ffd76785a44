"""Record every setup of the matrix: `python record_all.py`, or on a CPU `python record_all.py --device cpu`.

Runs `record.py` once for each recording, so that none inherits a warm cache, a compiled model or a process
group. What cannot be recorded here goes into OUT/manifest.json with the reason, and the rest goes on. The
output of each run is kept in OUT/logs.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from recorder import manifest
from recorder.matrix import DEVICES, backends, left_out, ranks_of, recordings
from recorder.setup import Setup

RECORD = Path(__file__).with_name("record.py")
# `record.py` takes minutes at most; a process group whose rank has died may wait for ever.
LIMIT_SECONDS = 900


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--device", choices=DEVICES, default="cuda", help="cuda means AMD GPUs too")
    made.add_argument("--out", type=Path, default=Path("recordings"), help="folder (default: %(default)s)")
    made.add_argument("--ranks", type=int, default=2, help="of the distributed setups (default: %(default)s)")
    made.add_argument("--only", nargs="+", metavar="NAME", help="recordings to make (default: all)")
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
    failed = [name for name, setup in chosen.items() if not _record(name, setup, gpus, arguments)]
    problems = manifest.problems(manifest.load(arguments.out))
    print(*problems, f"{len(chosen) - len(failed)} recorded or left out, {len(failed)} failed", sep="\n")
    return 1 if failed or problems else 0


def _record(name: str, setup: Setup, gpus: int, arguments: argparse.Namespace) -> bool:
    """Make one recording; False if it should have worked here and did not."""
    if reason := left_out(setup, arguments.device):
        manifest.leave_out(arguments.out, name, reason)
        print(f"{name}: left out: {reason}")
        return True
    reasons = []
    for words in attempts(name, setup, gpus, arguments):
        manifest.leave_out(arguments.out, name, "interrupted")
        reason = _run(words, arguments.out / "logs" / f"{name}.log")
        # The entry is written last: what happens to a process after it costs nothing.
        recording = manifest.load(arguments.out)["recordings"].get(name)
        if recording:
            print(*manifest.lines(name, recording), sep="\n", flush=True)
            return True
        reasons.append(reason)
    shares_gpu = arguments.device == "cuda" and ranks_of(setup, arguments.ranks) > gpus
    if shares_gpu:
        reasons.append(f"several ranks need as many GPUs, here {gpus}")
    manifest.leave_out(arguments.out, name, "; ".join(reasons))
    print(f"{name}: {'left out' if shares_gpu else 'failed'}: {'; '.join(reasons)}", flush=True)
    return shares_gpu


def _run(words: list[str], log: Path) -> str:
    """Run a command, its output into a file; returns its last error in one line."""
    with log.open("a") as file:
        file.write(f"$ {shlex.join(words)}\n")
        file.flush()
        try:
            code = subprocess.run(
                words, stdout=file, stderr=subprocess.STDOUT, timeout=LIMIT_SECONDS, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            return f"no end after {LIMIT_SECONDS} s"
    return next(_errors(log), f"exit code {code}")


def _errors(log: Path) -> Iterator[str]:
    """Lines of the log that name an exception, the last first."""
    for line in reversed(log.read_text(errors="replace").splitlines()):
        text = line.partition("]: ")[2] or line  # torchrun puts the rank before each line
        word = text.partition(":")[0]
        if word.endswith(("Error", "Exception")) and " " not in word and "ChildFailed" not in word:
            yield text[:300]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
