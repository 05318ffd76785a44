"""Record one setup: `python record.py`, or `torchrun --nproc_per_node=2 record.py --strategy ddp`.

Writes OUT/NAME/rank-<n>.pt.trace.json.gz and the recording's entry in OUT/manifest.json. `record_all.py`
records them all.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path

from recorder import manifest
from recorder.matrix import DEVICES
from recorder.setup import Setup, add_options, setup_of


def parser() -> argparse.ArgumentParser:
    """The command line: where and how long, and one option for each field of a setup."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--device", choices=DEVICES, default="cuda", help="cuda means AMD GPUs too")
    made.add_argument("--backend", choices=("nccl", "gloo"), help="of the process group (default: what fits)")
    made.add_argument("--out", type=Path, default=Path("recordings"), help="folder (default: %(default)s)")
    made.add_argument("--name", help="of the recording (default: its strategy)")
    made.add_argument("--warmup", type=int, default=5, help="steps before anything is timed")
    made.add_argument("--repeats", type=int, default=7, help="timed runs before, and again after, profiling")
    made.add_argument("--steps", type=int, default=10, help="steps of each timed run")
    made.add_argument("--active", type=int, default=3, help="steps in the trace")
    made.add_argument("--wait", action="store_true", help="touch the device only when a line can be read")
    add_options(made.add_argument_group("what runs"))
    return made


def main(words: list[str]) -> None:
    """Record what the command line says."""
    made = parser()
    arguments = made.parse_args(words)
    try:
        setup = setup_of(arguments)
    except ValueError as error:
        made.error(str(error))
    name = arguments.name or setup.strategy
    if Path(name).name != name or name in (".", ".."):
        made.error(f"--name is a folder's name, not {name!r}")
    if min(arguments.repeats, arguments.steps, arguments.active) < 1 or arguments.warmup < 0:
        made.error("--repeats, --steps and --active start at 1, --warmup at 0")
    ranks = int(os.environ.get("WORLD_SIZE", "1"))  # torchrun's
    if (setup.strategy == "baseline") != (ranks == 1):
        wanted = "one rank" if ranks > 1 else "torchrun --nproc_per_node=2 or more"
        made.error(f"strategy {setup.strategy} needs {wanted}")
    # Only here: `--help` and wrong options must not take the seconds that importing PyTorch does.
    try:
        from recorder import machine
        from recorder.recording import Length, record
    except ModuleNotFoundError as error:
        made.error(f"recording needs PyTorch ({error})")
    # Importing PyTorch took seconds, in which another process recorded. No line: it is not this one's turn.
    if arguments.wait and not sys.stdin.readline():
        return
    if arguments.device == "cuda" and not machine.gpus():
        made.error("PyTorch sees no GPU; --device cpu records on the CPU")
    started = datetime.now(UTC).isoformat(timespec="seconds")
    length = Length(arguments.warmup, arguments.repeats, arguments.steps, arguments.active)
    folder = arguments.out / name
    with machine.place(arguments.device, arguments.backend) as here:
        if here.rank == 0:
            for old in folder.glob("rank-*.json.gz"):  # of a run with more ranks
                old.unlink()
        here.meet()
        step_time = record(setup, here, length, folder)
        here.meet()
        if here.rank == 0:
            recording = {
                "setup": manifest.plain_setup(setup),
                "command": command(name, setup, arguments, ranks),
                "started": started,
                "ranks": ranks,
                "backend": here.backend,
                "environment": machine.environment(here),
                "steps": vars(length),
                "step_time": step_time,
                "traces": manifest.traces(folder),
            }
            manifest.add(arguments.out, name, recording)
            print(*manifest.lines(name, recording), sep="\n")


def command(name: str, setup: Setup, arguments: argparse.Namespace, ranks: int) -> str:
    """The command that makes the same recording, wherever it is run: all options but the folder."""
    launcher = ["torchrun", f"--nproc_per_node={ranks}"] if ranks > 1 else ["python"]
    words = ["record.py", "--name", name]
    for option in ("device", "backend", "warmup", "repeats", "steps", "active"):
        if (value := getattr(arguments, option)) is not None:
            words += [f"--{option}", str(value)]
    return shlex.join([*launcher, *words, *setup.arguments()])


if __name__ == "__main__":
    main(sys.argv[1:])
