"""Compare recorded traces with simulated ones: `python calibrate.py recordings`, or any folder of traces.

Needs hta_widgets and no PyTorch. For a folder with a manifest each recording is compared with the bundled
simulated job that is most like it; for other traces SIMULATED names one.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import pandas as pd
from recorder import manifest
from recorder.calibration import compare, compare_fields

from hta_widgets import Trace, examples
from hta_widgets.errors import HtaWidgetsError

NAMES = ("recorded", "simulated")
# The bundled job that a setup is most like, by its strategy; serving and stalls have their own.
JOBS = {
    "baseline": "gpt2_baseline",
    "ddp": "gpt2_ddp",
    "fsdp_full_shard": "gpt2_fsdp_full_shard",
    "fsdp_shard_grad_op": "gpt2_fsdp_shard_grad_op",
}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("recorded", type=Path, help="what record.py wrote, or any trace file or folder")
    made.add_argument("simulated", nargs="?", help="a bundled example, or a trace file or folder")
    made.add_argument("--csv", type=Path, metavar="FOLDER", help="write the tables there too")
    return made


def job_like(recording: dict[str, object]) -> str:
    """The bundled simulated job that a manifest's recording is most like."""
    setup = recording["setup"]
    assert isinstance(setup, dict)
    if setup["workload"] == "serving":
        return "inference_cuda_graphs"
    if setup["data_stall_ms"]:
        return "single_gpu_dataloader_stall"
    return JOBS[setup["strategy"]]


def main(words: list[str]) -> int:
    """Print what the command line asks for; 2 if a trace cannot be read."""
    arguments = parser().parse_args(words)
    try:
        recorded = manifest.load(arguments.recorded)["recordings"]
        todo = {name: (arguments.recorded / name, job_like(item)) for name, item in recorded.items()}
        if not todo:
            todo = {arguments.recorded.name: (arguments.recorded, "gpt2_baseline")}
        for name, (folder, job) in todo.items():
            other = arguments.simulated or job
            print(f"\n{name} against {other}\n")
            _show(name, Trace.open(folder), _simulated(other), arguments.csv)
    except (HtaWidgetsError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return 0


def _simulated(name: str) -> Trace:
    return examples.load(name) if name in examples.names() else Trace.open(name)


def _show(name: str, recorded: Trace, simulated: Trace, csv: Path | None) -> None:
    table, missing = compare(recorded, simulated, NAMES)
    differing = compare_fields(recorded, simulated, NAMES)
    with pd.option_context("display.width", 200, "display.max_rows", None, "display.max_columns", None):
        print(table.map(_number).to_string())
        print("\nShare of the events of a category that have a field, where the two differ:\n")
        print("none" if differing.empty else differing.round(2).to_string())
    for what, why in missing.items():
        print(f"\n{what}: {why}")
    if csv:
        csv.mkdir(parents=True, exist_ok=True)
        table.to_csv(csv / f"{name}.distributions.csv")
        differing.to_csv(csv / f"{name}.fields.csv")


def _number(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if value >= 100 or value.is_integer() else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
