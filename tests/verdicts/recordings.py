"""The real recordings that an expert has read."""

from hta_widgets.trace import Trace
from tests.support import shared_trace
from tests.verdicts.plain_reader import Rank, read

RECORDINGS = [
    "hta/amd_trace",
    "hta/call_stack",
    "hta/cpu_only",
    "hta/critical_path/alexnet",
    "hta/critical_path/cuda_event_sync",
    "hta/critical_path/simple_add",
    "hta/cupti_profiler",
    "hta/distributed_info_unavailable",
    "hta/execution_trace",
    "hta/mtia_inference_trace",
    "hta/nccl_parser_config",
    "hta/ns_resolution_trace",
    "hta/rank_non_gpu",
    "hta/rank_unavailable",
    "hta/trace_compare/base",
    "hta/trace_compare/test",
    "hta/trace_diff/control",
    "hta/trace_diff/test",
    "hta/trace_filter",
    "hta/triton_example",
    "kineto/resnet50_num_workers_0",
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens/inference/sglang_decode",
    "tracelens/inference/vllm_decode_full",
    "tracelens/mi210/gpu_only_trace",
    "tracelens/mi300",
    "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "tracelens/mi300/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens/mi300/resnet_act_checkpoint.json.gz",
    "tracelens/torch_compile_triton",
]

# The second of two recordings of one program.
TWINS = {"hta/trace_compare/test", "hta/trace_diff/test"}

# Files of unrelated jobs, which a caller takes for the ranks of one.
SEVERAL_JOBS = "tracelens/mi300"


def opened(name: str) -> Trace:
    """A recording, as a user opens it."""
    path = shared_trace(name)
    return Trace.open(dict(enumerate(sorted(path.iterdir()))) if name == SEVERAL_JOBS else path)


def recording(name: str) -> list[Rank]:
    """The ranks of a recording; skips the test where the recordings are not."""
    return read(shared_trace(name))
