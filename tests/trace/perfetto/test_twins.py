"""Each recording as a Perfetto trace, in PyTorch's layout, gives the same answers as its JSON."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_widgets import examples
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.analysis.every_analysis import all_answers
from tests.support import EVERY_CASE, shared_input
from tests.trace.perfetto.writer import pytorch

pytestmark = pytest.mark.slow

BUNDLED = Path(examples.__file__).parent / "data"
RECORDINGS = [
    "recordings/alloc_heavy_a40",
    "recordings/cpu_ddp_slow_rank2/rank2.json.gz",
    "recordings/gemm_a5000/trace.json",
    "recordings/llama_4layers_4090/trace.json.gz",
    "recordings/loader_t4_amp/amp.pt.trace.json.gz",
    "recordings/mobilenet_cpu/trace.json.gz",
    "recordings/resnet50_t4_gpu/trace_gpu.json.gz",
    "recordings/transformer_gh200/gh.pt.trace.json.gz",
    "recordings/vgg11_a100/profiler_vgg11-iter41.json.gz",
    "traces/hta/trace_filter/sampled_rank-0.json.gz",
    "traces/tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "traces/tracelens/mi300/gaunernst_bert-small-uncased__1016001.json.gz",
    "cases/h03_overflow_mild/rank0.json",
    "cases/serving/ann_all.json.gz",  # kernels of graphs on lanes of their own
]
# one of each kind: memory, on the CPU, training with a loader, several ranks, AMD, overflow, serving
UNLIKE = [
    "recordings/alloc_heavy_a40",
    "recordings/cpu_ddp_slow_rank2/rank2.json.gz",
    "recordings/loader_t4_amp/amp.pt.trace.json.gz",
    "traces/hta/trace_filter/sampled_rank-0.json.gz",
    "traces/tracelens/mi300/gaunernst_bert-small-uncased__1016001.json.gz",
    "cases/h03_overflow_mild/rank0.json",
    "cases/serving/ann_all.json.gz",
]
# numbers of events, which are others since the twin has begins and ends, and what is drawn in that order
PLACES = {"node", "parent_node", "match"}


def document_of(path: Path) -> dict[str, Any]:
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found = json.loads(raw, parse_float=Decimal)
    return found if isinstance(found, dict) else {"traceEvents": found}


def rows(frame: pd.DataFrame) -> list[str]:
    """The rows of a frame as sorted text, without the numbers of events."""
    dropped = [name for name in frame.columns if name in PLACES or name.endswith("_id")]
    frame = frame.drop(columns=dropped)
    for name in frame.columns:
        if frame[name].dtype.kind == "f":  # sums of floats depend on their order
            frame[name] = [float(f"{value:.9g}") for value in frame[name]]
    return sorted(repr(tuple(row)) for row in frame.astype(object).itertuples(index=False))


def differences(one: Trace, other: Trace) -> list[str]:
    mine, theirs = all_answers(one, Scope()), all_answers(other, Scope())
    found = []
    for name, answer in mine.items():
        again = theirs[name]
        if isinstance(answer, str) or isinstance(again, str):
            if not (isinstance(answer, str) and isinstance(again, str)):
                found.append(f"{name}: {str(answer)[:200]!r} against {str(again)[:200]!r}")
        elif (expected := rows(answer)) != (given := rows(again)):
            wrong = [(a, b, list(answer.columns)) for a, b in zip(expected, given, strict=False) if a != b][
                :1
            ]
            found.append(f"{name}: {len(expected)} and {len(given)} rows, {wrong}")
    return found


def twin_of(path: Path, folder: Path) -> Path:
    target = folder / (path.name.split(".json")[0] + ".pftrace")
    target.write_bytes(gzip.compress(pytorch(document_of(path)), 1))
    return target


@pytest.mark.parametrize("name", RECORDINGS if EVERY_CASE else UNLIKE)
def test_a_twin_of_a_recording_gives_equal_answers(name: str, tmp_path: Path) -> None:
    path = shared_input(name)
    if path.is_dir():
        path = next(file for file in sorted(path.iterdir()) if ".json" in file.name)
    json_trace = Trace.open(path, cache=False)
    twin = Trace.open(twin_of(path, tmp_path), cache=False)
    assert json_trace.ranks == twin.ranks
    assert differences(json_trace, twin) == []


def test_a_twin_of_a_bundled_job_gives_equal_answers(tmp_path: Path) -> None:
    folder = next(path for path in sorted(BUNDLED.iterdir()) if path.is_dir())
    for path in sorted(folder.glob("*.json*")):
        twin_of(path, tmp_path)
    json_trace, twin = Trace.open(folder, cache=False), Trace.open(tmp_path, cache=False)
    assert json_trace.ranks == twin.ranks
    assert differences(json_trace, twin) == []
