"""Event classes: names of today's libraries, and names that only look like theirs."""

import pytest

from hta_widgets.trace import EventClass
from hta_widgets.trace.classify import classify, register, unregister
from tests.trace.helpers import kernel, rank_of, slice_

COMMUNICATION = [
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
    "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
    "void rcclGenericKernel<1, false>(ncclDevKernelArgsStorage<4096ul>)",
    "void multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long)",
    "void c10d::symmetric_memory::(anonymous namespace)::two_shot_all_reduce_kernel<float>(float*)",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
    "void sglang::cross_device_reduce_2stage<half, 4>(int)",
    "void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<1, half>(int)",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_twoshot_sync<1>(int)",
    "void aiter::reduce_scatter_cross_device_store<float>(int)",
    "void deep_ep::intranode::dispatch<8, 768>(int4*)",
    "nvshmemi_transfer_rma_kernel",
    "void mscclpp::collective::allreduce(int)",
    "hcclAllReduce",
]
COMPUTE = [
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(int)",
    "triton_poi_fused_add_SyncBatchNorm_0",
    "triton_poi_fused_all_reduce_wait_tensor_0",
    "void batch_norm_reduce_statistics_kernel<float>(int)",
    "hipblaslt_gemm_128x128",
    "void at::native::elementwise_kernel<128, 2, at::native::all_reduce_functor_kernel>(int)",
    "void at::native::_scatter_gather_elementwise_kernel<256, 4>(int)",
    "admamid_kernel",
    "CatArrayBatchedCopy_contig",
    "Cijk_Ailk_Bljk_BBS",
    "",
]
COPIES = [
    "__amd_rocclr_copyBuffer.kd",
    "__amd_rocclr_copyBufferAligned",
    "CopyDeviceToDevice",
    "CopyHostToDevice",
    "MEMORY_COPY_DEVICE_TO_DEVICE",
]
FILLS = ["__amd_rocclr_fillBufferAligned", "FillBuffer"]


@pytest.mark.parametrize(
    ("expected", "names"),
    [
        (EventClass.COMMUNICATION, COMMUNICATION),
        (EventClass.COMPUTE, COMPUTE),
        (EventClass.MEMORY_COPY, COPIES),
        (EventClass.MEMORY_SET, FILLS),
    ],
)
def test_kernel_names(expected, names):
    assert {name: classify("kernel", name)[0] for name in names} == dict.fromkeys(names, expected)


@pytest.mark.parametrize(
    ("category", "name", "expected"),
    [
        ("gpu_memcpy", "Memcpy HtoD", EventClass.MEMORY_COPY),
        ("Memset", "Memset (Device)", EventClass.MEMORY_SET),
        ("cuda_sync", "Stream Sync", EventClass.SYNC),
        ("mtia_ccp_events", "dma_request", EventClass.MEMORY_COPY),
        ("mtia_ccp_events", "event_wait", EventClass.SYNC),
        ("mtia_ccp_events", "pe_exe", EventClass.COMPUTE),
        ("Operator", "ProfilerStep#5", EventClass.ANNOTATION),
        ("Operator", "aten::add", EventClass.HOST_OP),
        ("cpu_op", "nccl:all_reduce", EventClass.HOST_OP),
        ("xyz_runtime", "launch", EventClass.RUNTIME),
        ("gpu_user_annotation", "ProfilerStep#5", EventClass.ANNOTATION),
        ("brand_new", "x", EventClass.OTHER),
    ],
)
def test_categories(category, name, expected):
    assert classify(category, name)[0] == expected


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


def test_collective_metadata_decides_over_the_name(tmp_path):
    event = kernel("fused_thing", 0, 5)
    event["args"]["Collective name"] = "allreduce"
    assert rank_of(tmp_path, [event]).event_class.tolist() == [EventClass.COMMUNICATION]


def test_triton_launch_is_no_device_work(tmp_path):
    launch = slice_("triton_poi_fused_0", "cpu_op", 0, 90, stream=7, kernel_backend="triton")
    rank = rank_of(tmp_path, [launch, kernel("triton_poi_fused_0", 95, 1)])
    assert rank.is_device.tolist() == [False, True]
    assert rank.stream.tolist()[0] < 0
    assert rank.device_span == (95_000, 96_000)
