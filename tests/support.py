"""Where the test data lies, and how much of it is asked, for every test module."""

import os
import weakref
from collections.abc import Callable, Collection
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from hta_widgets import examples

if TYPE_CHECKING:
    from hta_widgets import Trace

ROOT = Path(__file__).resolve().parent.parent

# Real traces are too large and not ours to commit. They lie beside the checkout, or where the variable says.
SHARED_TRACES = Path(os.environ.get("HTA_WIDGETS_TRACES") or ROOT.parent / "shared" / "traces")

# By default the cases that are unlike, each value of each parameter once; weekly, and by hand, all of them.
EVERY_CASE = bool(os.environ.get("HTA_WIDGETS_EVERY_CASE"))

# The dtype of texts: "object" before pandas 3.
TEXT_DTYPE = str(pd.Series(dtype="str").dtype)


def crossed(*axes: Collection[Any]) -> list[tuple[Any, ...]]:
    """Each value of each axis, in as few cases as that takes; with EVERY_CASE all combinations."""
    if EVERY_CASE:
        return list(product(*axes))
    columns = [[*axis] for axis in axes]
    return [tuple(column[case % len(column)] for column in columns) for case in range(max(map(len, columns)))]


# Where a slow reader goes through every recording, longer ones are asked weekly: shorter ones are like them.
MOST_BYTES = 1 << 20


def is_asked(path: Path) -> bool:
    """Is this recording, or each file of it, short enough?"""
    files = [path, *path.rglob("*")] if path.exists() else []
    return EVERY_CASE or all(file.stat().st_size <= MOST_BYTES for file in files)


def tried(count: int) -> int:
    """How many random cases of a property are tried: by default a quarter of these."""
    return count if EVERY_CASE else -(-count // 4)


def with_its_files(opened: "Callable[[Path], Trace]") -> "Trace":
    """A trace that is opened from files in a folder, which are there as long as it is."""
    folder = TemporaryDirectory()
    trace = opened(Path(folder.name))
    weakref.finalize(trace, folder.cleanup)
    return trace


def shared_trace(name: str) -> Path:
    """Path of a real trace file or folder such as ``"hta/trace_filter"``; skips the test without it."""
    path = SHARED_TRACES / name
    if not path.exists():
        pytest.skip(f"real trace {name!r} not found: set HTA_WIDGETS_TRACES to the folder that holds it")
    return path


def shared_job(name: str) -> Path:
    """Path of a file of a recorded job with published stragglers; skips the test without it."""
    path = SHARED_TRACES.parent / "stragglers" / name
    if not path.exists():
        pytest.skip(f"recorded job {name!r} not found beside the folder of HTA_WIDGETS_TRACES")
    return path


def shared_input(name: str) -> Path:
    """Path of a small input with known answers, or of a recording, such as ``"cases/d14_dynolog_pid"``.

    Skips the test without it.
    """
    path = SHARED_TRACES.parent / name
    if not path.exists():
        pytest.skip(f"{name!r} not found beside the folder of HTA_WIDGETS_TRACES")
    return path


# Recorded jobs with device work, of every vendor and kind.
GPU_TRACES = [
    "hta/trace_filter",
    "hta/trace_diff/control",
    "hta/trace_diff/test",
    "hta/ns_resolution_trace",
    "hta/nccl_parser_config",
    "hta/critical_path/alexnet",
    "hta/critical_path/simple_add",
    "hta/critical_path/cuda_event_sync",
    "hta/amd_trace",
    "hta/mtia_inference_trace",
    "hta/triton_example",
    "kineto/resnet50_num_workers_0",
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens/inference/sglang_decode",
    "tracelens/inference/vllm_decode_full",
    "tracelens/mi210/gpu_only_trace",
    "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "tracelens/mi300/resnet_act_checkpoint.json.gz",
    "tracelens/torch_compile_triton",
]

# One of each kind of them: several ranks, synchronisation, AMD, MTIA, serving, without launches, compiled.
UNLIKE_GPU_TRACES = [
    "hta/trace_filter",
    "hta/critical_path/cuda_event_sync",
    "hta/amd_trace",
    "hta/mtia_inference_trace",
    "tracelens/inference/sglang_decode",
    "tracelens/mi210/gpu_only_trace",
    "tracelens/torch_compile_triton",
]
SOME_GPU_TRACES = GPU_TRACES if EVERY_CASE else UNLIKE_GPU_TRACES

# One of each kind of the bundled examples: a late rank, shards, a slow loader, graphs, a server, a real GPU.
UNLIKE_EXAMPLES = [
    "ddp_4ranks",
    "gpt2_fsdp_full_shard",
    "single_gpu_dataloader_stall",
    "inference_cuda_graphs",
    "continuous_batching",
    "h100_gpt2",
]
SOME_EXAMPLES = examples.names() if EVERY_CASE else UNLIKE_EXAMPLES
# Of those that are simulated: without the one of four ranks, which takes longest.
SIMULATED = [name for name in examples.names(recorded=False) if EVERY_CASE or name in UNLIKE_EXAMPLES[1:]]
