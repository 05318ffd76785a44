"""Event classes: real names of today's libraries, and names that only look like theirs."""

import csv
from pathlib import Path

import pytest

from hta_widgets.trace import EventClass, Trace
from hta_widgets.trace import classify as module
from hta_widgets.trace.classify import (
    COLLECTIVE,
    DEVICE_RULES,
    OPERATOR_RULES,
    classify,
    register,
    unregister,
)
from tests.support import shared_trace
from tests.trace.helpers import kernel, rank_of, slice_

# category, name, class and where the name was read: a public source file, or one of the recordings.
TABLE = Path(__file__).with_name("kernel_names.tsv")
with TABLE.open(newline="") as file:
    NAMES = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
KNOWN = {(row["category"], row["name"]): row["class"] for row in NAMES}

# For each rule, a name that resembles what it is for and belongs to another class.
NEAR_MISSES = {
    r"^__amd_rocclr_copy": "__amd_rocclr_fillBufferAligned",
    r"^Copy(Device|Host)To(Device|Host)\b": "recat_copy_async_kernel",
    r"^MEMORY_COPY_": "perform_data_copy",
    r"^(hip)?Memcpy": "CatArrayBatchedCopy",
    r"^__amd_rocclr_fill": "__amd_rocclr_copyBuffer",
    r"^FillBuffer\b": "FillFunctor",
    r"^(hip)?Memset": "_combined_routing_memset",
    r"\b(nccl|rccl|[hH]ccl|hcom_)": "c10d::checkForNaN",
    r"\bmsccl": "cublasLt::splitKreduce_kernel",
    rf"\b(?!triton_\w*fused)\w*({COLLECTIVE})\w*(?!\w*::)": "triton_poi_fused_all_reduce_wait_tensor_0",
    r"cross_device_reduce": "aiter::local_device_load_rmsnorm",
    r"\bmultimem_": "multi_tensor_apply_kernel",
    r"\brmsNormLamport": "lamport_initialize_kernel",
    r"\bc10d::(symmetric_memory|intra_node_comm|\w+_extension)::": "c10d::checkForNaN",
    r"\b(internode|internode_ll|intranode)::(?!\w*layout)": "deep_ep::internode::get_dispatch_layout",
    r"(\b|_)ep::(\w+::)*(?!\w*(layout|_prologue|_epilogue))\w*(dispatch|combine|notify|barrier|sync)": (
        "deep_ep::elastic::combine_reduce_epilogue_impl"
    ),
    r"\bdeep_ep::(\w+::)*(pp_(send|recv)|engram_fetch|lb_(reduce_grads|prefetch_weights))": "dpsk::ep::cuda",
    r"\bEp(Dispatch|Combine)(?!CopyToStaging|QuantizeInput)": "ConvertCombineInputKernel_bf16",
    r"(?i)\b(moe)?a2a_?(prepare)?(dispatch|combine|single)": "moeA2ASanitizeExpertIdsKernel",
    r"^(void )?(dispatch|combine)Kernel\b": "groupnorm_kernel_dispatch_up",
    r"\bkernel_(dispatch|combine)_token": "flash_fwd_splitkv_mla_combine_kernel",
    r"\bnvshmem": "bytedance::flux::packed_ring_reduction",
    r"\bbarrier_on_stream_kernel": "batch_norm_reduce_statistics_kernel",
    r"\brocshmem": "paged_attention_ll4mi_reduce_kernel",
    r"\bk?userbuffers_": "lowPrecisionPreprocessKernel",
    r"^event_(record|wait)": "pe_exe",
    r"^dma(_|$)": "event_record",
    r"^collective_subgraph_execution": "cpum_exe_subgraph",
    r"^(pe_exe|job_exe|packet|cpum_exe_subgraph|merge|remote)": "dma_request",
    r"^ProfilerStep\s*[#*]": "AddmmBackward",
    r"^Optimizer\.": "torch::autograd::AccumulateGrad",
    r"^enumerate\(DataLoader\)": "aten::conv2d",
    r"^## .* ##$": "aten::copy_",
}


def classes() -> dict[tuple[str, str], tuple[EventClass, bool]]:
    return {pair: classify(*pair) for pair in KNOWN}


def test_every_name_of_the_table():
    wrong = {pair: found for pair, (found, _) in classes().items() if found.label != KNOWN[pair]}
    assert wrong == {}


def test_the_table_is_large_distinct_and_sourced():
    assert len(KNOWN) == len(NAMES) >= 250
    assert all(row["source"] for row in NAMES)


@pytest.mark.parametrize("table", ["DEVICE_RULES", "OPERATOR_RULES"])
def test_no_rule_could_go(monkeypatch, table):
    monkeypatch.setattr(module, "_classified", module._classified.__wrapped__)  # nothing is remembered
    before, rules = classes(), getattr(module, table)
    for rule in rules:
        monkeypatch.setattr(module, table, tuple(other for other in rules if other is not rule))
        assert classes() != before, f"no name in the table needs {rule.pattern.pattern}"


@pytest.mark.parametrize("rule", [*DEVICE_RULES, *OPERATOR_RULES], ids=lambda rule: rule.pattern.pattern)
def test_every_rule_lets_a_similar_name_of_another_class_pass(rule):
    near = NEAR_MISSES[rule.pattern.pattern]
    found = [(pair, KNOWN[pair]) for pair in KNOWN if near in pair[1]]
    assert any(label != rule.event_class.label for _, label in found), f"{near} is not in the table"


@pytest.mark.parametrize(
    ("category", "name", "expected"),
    [
        ("gpu_memcpy", "Memcpy HtoD", EventClass.MEMORY_COPY),
        ("Memset", "Memset (Device)", EventClass.MEMORY_SET),
        ("cuda_sync", "Stream Sync", EventClass.SYNC),
        ("cpu_op", "nccl:all_reduce", EventClass.HOST_OP),
        ("xyz_runtime", "launch", EventClass.RUNTIME),
        ("xyz_driver", "launch", EventClass.RUNTIME),
        ("gpu_user_annotation", "ProfilerStep#5", EventClass.ANNOTATION),
        ("brand_new", "x", EventClass.OTHER),
        ("kernel", "", EventClass.COMPUTE),
        ("kernel", "small_reduce_kernel", EventClass.COMPUTE),  # holds "all_reduce" by chance
    ],
)
def test_categories(category, name, expected):
    assert classify(category, name)[0] == expected


def test_the_data_loader_of_2021_is_an_annotation():
    rank = Trace.open(shared_trace("kineto/resnet50_num_workers_0"), cache=False).rank(0)
    loading = [code for code, name in enumerate(rank.names) if name.startswith("enumerate(DataLoader)#")]
    rows = [at for at, code in enumerate(rank.name.tolist()) if code in loading]
    assert len(rows) == 6
    assert {rank.categories[code] for code in rank.category[rows].tolist()} == {"Operator"}
    assert set(rank.event_class[rows].tolist()) == {EventClass.ANNOTATION}


def test_user_rules_come_first():
    rule = register("my_ring", EventClass.COMMUNICATION)
    try:
        assert classify("kernel", "void my_ring<4>()") == (EventClass.COMMUNICATION, True)
        assert classify("cpu_op", "my_ring")[0] == EventClass.HOST_OP
    finally:
        unregister(rule)
    assert classify("kernel", "void my_ring<4>()")[0] == EventClass.COMPUTE
    with pytest.raises(ValueError, match="host_op"):
        register("x", EventClass.HOST_OP)


def test_of_user_rules_the_latest_comes_first():
    rules = [register("my_ring", label) for label in (EventClass.MEMORY_COPY, EventClass.COMMUNICATION)]
    try:
        assert classify("kernel", "my_ring")[0] == EventClass.COMMUNICATION
    finally:
        for rule in rules:
            unregister(rule)


def test_collective_metadata_decides_over_the_name(tmp_path):
    event = kernel("fused_thing", 0, 5)
    event["args"]["Collective name"] = "allreduce"
    call = slice_("record_param_comms", "cpu_op", 0, 5, **{"Collective name": "allreduce"})
    found = rank_of(tmp_path, [event, call]).event_class.tolist()
    assert found == [EventClass.COMMUNICATION, EventClass.HOST_OP]


def test_triton_launch_is_no_device_work(tmp_path):
    launch = slice_("triton_poi_fused_0", "cpu_op", 0, 90, stream=7, kernel_backend="triton")
    rank = rank_of(tmp_path, [launch, kernel("triton_poi_fused_0", 95, 1)])
    assert rank.is_device.tolist() == [False, True]
    assert rank.stream.tolist()[0] < 0
    assert rank.device_span == (95_000, 96_000)
