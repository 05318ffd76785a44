"""Where iterations come from, in what order, and how sure that is."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hta_widgets.trace import iterations
from hta_widgets.trace.step_names import ServingStep, profiler_step, serving_step
from tests.trace.helpers import kernel, rank_of, slice_


def launches(start, count=4, step=10):
    return [
        slice_("cudaLaunchKernel", "cuda_runtime", start + step * k, 2, correlation=0) for k in range(count)
    ]


def columns(frame, *names):
    return list(frame[list(names)].itertuples(index=False, name=None))


def test_profiler_steps_of_the_host_only_and_merged(tmp_path):
    rank = rank_of(
        tmp_path,
        [
            slice_("ProfilerStep#7", "user_annotation", 0, 100),
            slice_("ProfilerStep#8", "user_annotation", 100, 100),
            slice_("ProfilerStep#8", "user_annotation", 105, 90, tid=2),
            slice_("ProfilerStep#7", "gpu_user_annotation", 50, 120, tid=7),
            *launches(10),
            *launches(110),
        ],
    )
    frame = rank.iterations
    assert columns(frame, "iteration", "start_ns", "end_ns") == [(7, 0, 100_000), (8, 100_000, 200_000)]
    assert set(frame["source"]) == {"ProfilerStep"}
    assert set(frame["confidence"]) == {"high"}
    assert not frame["partial"].any()


def test_last_step_cut_by_the_recording_is_kept_and_flagged(tmp_path):
    steps = [slice_(f"ProfilerStep#{k}", "user_annotation", 100 * k, 100) for k in range(3)]
    rank = rank_of(tmp_path, [*steps, *launches(10), *launches(110), *launches(210, count=1)])
    assert rank.iterations["partial"].tolist() == [False, False, True]


@pytest.mark.parametrize(("launched", "cut"), [(4, True), (6, False)])
def test_less_than_half_of_the_work_means_a_step_was_cut(tmp_path, launched, cut):
    steps = [slice_(f"ProfilerStep#{k}", "user_annotation", 200 * k, 200) for k in range(4)]
    work = [launches(200 * k + 10, count=10) for k in (1, 2)]
    edges = [*launches(10, count=launched), *launches(610, count=launched)]
    rank = rank_of(tmp_path, [*steps, *(event for of_step in work for event in of_step), *edges])
    assert rank.iterations["partial"].tolist() == [cut, False, False, cut]


@pytest.mark.parametrize(
    ("mark", "between", "member"),
    [
        ("train_batch", 100, 0),  # work between two annotations is of the first, as the time between them is
        ("train_batch", 1, 0),
        ("ProfilerStep#{}", 100, 0),
        ("ProfilerStep#{}", 1, -1),  # the profiler's own, which ends one record and begins the next
    ],
)
def test_what_is_launched_between_two_marks_belongs_to_the_first(tmp_path, mark, between, member):
    period = 200
    events = [slice_(mark.format(k), "user_annotation", period * k, period - between) for k in range(4)]
    for k in range(4):
        for place, at in enumerate((10, 20, 30, period - between + between / 2)):
            number = 10 * k + place + 1
            events.append(
                slice_("cudaLaunchKernel", "cuda_runtime", period * k + at, 0.2, correlation=number)
            )
            events.append(kernel("gemm", period * k + at + 5, 3, correlation=number))
    rank = rank_of(tmp_path, events)
    late = rank.launch[rank.is_device][3::4]
    assert rank.iteration[rank.is_device].reshape(4, 4)[:3].tolist() == [
        [k] * 3 + [k if member == 0 else -1] for k in range(3)
    ]
    assert (rank.iteration[late] == rank.iteration[rank.is_device][3::4]).all()


def test_device_rows_belong_to_the_step_that_launched_them(tmp_path):
    rank = rank_of(
        tmp_path,
        [
            slice_("ProfilerStep#0", "user_annotation", 0, 100),
            slice_("ProfilerStep#1", "user_annotation", 100, 100),
            slice_("cudaLaunchKernel", "cuda_runtime", 90, 2, correlation=3),
            kernel("late", 150, 10, correlation=3),
            kernel("orphan", 160, 10),
            kernel("after", 900, 10),
        ],
    )
    assert rank.iteration.tolist() == [0, 1, 0, 0, 1, -1]


ANNOTATIONS = {
    # phase, requests, tokens; computed requests, prompt tokens, lengths in the cache, those that decode
    "execute_8192_context_9(sq8155sk9000sqsq1sqsk2)_generation_37(sq37sk99sqsq3sqsk4)": (
        ("mixed", 46, 8192), (None, 8155, 9099, 99),
    ),
    "execute_128_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq128sk65536sqsq512sqsk262144)": (
        ("decode", 32, 128), (None, 0, 65536, 65536),
    ),
    "execute_context_2(100)_generation_0(0)": (("prefill", 2, 100), (None, 100, None, None)),
    "execute_context_1(888_788544)_generation_0(0)": (("prefill", 1, 888), (None, 888, None, None)),
    "execute_context_2(6144)_generation_3(3)": (("mixed", 5, 6147), (None, 6144, None, None)),
    "execute_new_0_cached_3": (("decode", 3, None), (None, None, None, None)),
    "execute_diffusion_1_256x256": (("diffusion", 1, None), (None, None, None, None)),
    "denoising_step_7": (("diffusion", None, None), (None, None, None, None)),
    "step[DECODE bs=32]": (("decode", 32, 32), (None, 0, None, None)),
    "step[EXTEND bs=15 toks=15360]": (("prefill", 15, 15360), (None, 15360, None, None)),
    "step[EXTEND bs=2 toks=14721 c_sq=14721 c_sqsq=1 c_sqsk=2 c_sk=16221]": (
        ("prefill", 2, 14721), (None, 14721, 16221, None),
    ),
    "step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]": (
        ("decode", 64, 128), (None, 0, 131072, 131072),
    ),
    "step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1 g_sqsk=12]": (
        ("mixed", 2, 6), (None, 5, 20, 12),
    ),
    "step[MIXED bs=2]": (("mixed", 2, None), (None, None, None, None)),
    "step[TARGET_VERIFY bs=4 toks=16]": (("verify", 4, 16), (None, 0, None, None)),
    "step[TARGET_VERIFY bs=2 g_sq=8 g_sqsq=32 g_sqsk=120 g_sk=30]": (("verify", 2, 8), (None, 0, 30, 30)),
    "step[DRAFT_EXTEND_V2 bs=4]": (("draft", 4, None), (None, 0, None, None)),
    "step[DRAFT_EXTEND_V2 bs=2 c_sq=8 c_sqsq=32 c_sqsk=120 c_sk=30]": (
        ("draft", 2, 8), (None, 0, 30, 30),
    ),
    "step[DECODE bs=2 g_sqsq=2 g_sqsk=30 g_sk=30]": (("decode", 2, 2), (None, 0, 30, 30)),
    "step[EXTEND bs=2 toks=12 c_sqsq=80 c_sqsk=120 c_sk=20]": (("prefill", 2, 12), (None, 12, 20, None)),
    "step[IDLE bs=0]": (("idle", 0, 0), (None, 0, None, None)),
    "prefill[bs=2 tok=14721 ctx=[7803, 6918]]": (("prefill", 2, 14721), (None, 14721, None, None)),
    "prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3 sqsq=5 sqsk=6 sk=17408 tbo=1]": (
        ("prefill", 6, 17408), (None, 17408, 17408, None),
    ),
    "decode[bs=117/128 tok=117 d=117]": (("decode", 117, 117), (128, 0, None, None)),
    "decode[bs=32 spec=3]": (("decode", 32, 128), (None, 0, None, None)),
    "eager_decode[bs=3 tok=3 ctx=[12, 9, 40]]": (("decode", 3, 3), (None, 0, None, None)),
    "vllm/v1/worker/gpu_worker.py(640): execute_dummy_batch": (("idle", 0, 0), (None, None, None, None)),
    "dummy_decode[bs=16]": (("idle", 0, 0), (None, None, None, None)),
    "dummy_eager_decode[bs=1 tok=1 ctx=1]": (("idle", 0, 0), (None, None, None, None)),
    "dummy_prefill[bs=1 tok=8192 ctx=8192]": (("idle", 0, 0), (None, None, None, None)),
    "decode[bs=32 tok=128 d=32 spec=3 sqsq=512 sqsk=262144 sk=65536]": (
        ("decode", 32, 128), (None, 0, 65536, 65536),
    ),
    "decode[bs=128 tok=384 p=2 d=126 sqsq=1 sqsk=2 sk=258048]": (
        ("mixed", 128, 384), (None, None, 258048, None),
    ),
    "[Executor] _forward_step 57: 1 ctx reqs, 128 ctx tokens, 3 gen reqs": (
        ("mixed", 4, 131), (None, 128, None, None),
    ),
    "[Executor] _forward_step 57: 2 ctx reqs, 3 gen reqs": (("mixed", 5, None), (None, None, None, None)),
    "_forward_step: 0 ctx reqs, 3 gen reqs": (("decode", 3, 3), (None, 0, None, None)),
    "[Executor] _forward_step: 0 ctx reqs, 64 gen reqs": (("decode", 64, 64), (None, 0, None, None)),
    "[Executor] _forward_step 60000: 0 ctx reqs, 0 ctx tokens, 32 gen reqs": (
        ("decode", 32, 32), (None, 0, None, None),
    ),
    "[Executor] _forward_step 9: 1 ctx reqs, 64 ctx tokens, 8 gen reqs, 32 gen tokens": (
        ("mixed", 9, 96), (None, 64, None, None),
    ),
    "step[FUTURE bs=4 toks=9]": (("future", 4, 9), (None, None, None, None)),
    # numbers that are none, that contradict each other, or that no step has
    "decode[bs=1e9 tok=4]": (("decode", None, 4), (None, 0, None, None)),
    "step[DECODE bs=-5 toks=]": (("decode", None, None), (None, 0, None, None)),
    "step[DECODE bs=3 bs=7]": (("decode", None, None), (None, 0, None, None)),
    "step[DECODE bs=3.5]": (("decode", None, None), (None, 0, None, None)),
    "decode[bs=200/128 tok=200]": (("decode", 200, 200), (None, 0, None, None)),
    "step[EXTEND bs=15 toks=3]": (("prefill", 15, None), (None, None, None, None)),
    "execute_context_5(1)_generation_900(0)": (("mixed", 905, None), (None, None, None, None)),
    f"step[DECODE bs={'9' * 16}]": (("unknown", None, None), (None, None, None, None)),
    f"execute_context_0(0)_generation_{'9' * 5000}(1)": (("unknown", None, None), (None, None, None, None)),
    # a first number that is not the sum of tokens
    "execute_2_context_2(sq12sk20sqsq80sqsk120)_generation_0(sq0sk0sqsq0sqsk0)": (
        ("prefill", 2, 12), (None, 12, 20, 0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_serving_step_names(name):
    step = serving_step(name)
    expected, details = ANNOTATIONS[name]
    assert (step.phase, step.batch_size, step.tokens) == expected
    assert (step.padded, step.prompt_tokens, step.kv_tokens, step.decode_kv_tokens) == details


@pytest.mark.parametrize(
    "name",
    [
        "execute_model",
        "step",
        "step 3",
        "decode",
        "decode[x]",
        "aten::step[0]",
        "prefill_cache",
        "",
        "step[<b>DECODE</b> bs=3]",
        "[Executor] fetch: 3 requests",
        "denoising_step_",
        "step[" * 10_000,
    ],
)
def test_other_names_are_no_serving_steps(name):
    assert serving_step(name) is None


def test_what_an_inner_annotation_adds_to_the_outer_one():
    outer = serving_step("execute_new_0_cached_32")
    assert outer.filled(serving_step("step[DECODE bs=32 g_sq=32 g_sk=70]")) == ServingStep(
        "decode", 32, 32, None, 0, 0, 70, 70
    )
    assert outer.filled(serving_step("step[DECODE bs=16]")) == outer  # a part of the batch
    assert serving_step("execute_x_generation_").filled(outer) == outer


SCOPES = {
    "vLLM": [f"gpu_model_runner: {part}" for part in ("preprocess", "forward", "postprocess", "sample")],
    "vLLM 0.11": ["Preprocess", "Forward", "Postprocess", "Bookkeep"],
    "Ascend": ["prepare input", "forward", "post process", "sample_token"],
}


def scoped(names, starts=(0, 1000, 2000)):
    events = []
    for at in starts:
        for name, start, end in zip(names, (0, 110, 310, 400), (100, 300, 320, 500), strict=False):
            events.append(slice_(name, "user_annotation", at + start, end - start))
        events += launches(at + 120)
    return events


@pytest.mark.parametrize("engine", SCOPES)
def test_scopes_of_a_model_runner_are_steps(tmp_path, engine):
    frame = rank_of(tmp_path, scoped(SCOPES[engine])).iterations
    assert columns(frame, "start_ns", "source", "phase") == [
        (start * 1000, "serving step", "unknown") for start in (0, 1000, 2000)
    ]
    assert frame["host_end_ns"].tolist() == [500_000, 1_500_000, 2_500_000]


def test_scopes_that_any_program_may_have_are_no_server(tmp_path):
    frame = rank_of(tmp_path, scoped(["Preprocess", "Forward", "Backward"])).iterations
    assert set(frame["source"]) == {"annotation"}


def test_serving_steps_announced_twice_count_once(tmp_path):
    rank = rank_of(
        tmp_path,
        [
            slice_("step[DECODE bs=4]", "user_annotation", 0, 100),
            slice_("execute_4_context_0(a)_generation_4(b)", "user_annotation", 10, 80),
            slice_("step[DECODE bs=3]", "user_annotation", 20, 80),
            slice_("step[EXTEND bs=2 toks=64]", "user_annotation", 100, 50),
        ],
    )
    assert columns(rank.iterations, "iteration", "phase", "batch_size", "tokens", "source") == [
        (0, "decode", 4, 4, "serving step"),
        (1, "prefill", 2, 64, "serving step"),
    ]


def test_optimizer_steps_end_iterations(tmp_path):
    events = []
    for k in range(5):
        events += [
            *launches(1000 * k),
            slice_("Optimizer.step#SGD.step", "user_annotation", 1000 * k + 100, 50),
        ]
    frame = rank_of(tmp_path, events).iterations
    assert len(frame) == 5
    assert set(frame["source"]) == {"annotation"}
    assert frame["end_ns"].tolist() == [1000_000 * k + 150_000 for k in range(5)]


def test_repeated_annotation_that_holds_the_work(tmp_path):
    events = []
    for k in range(3):
        events += [slice_("loop body", "user_annotation", 100 * k, 90), *launches(100 * k + 5)]
        events += [slice_("nccl:all_reduce", "user_annotation", 100 * k + 6, 50)]
    frame = rank_of(tmp_path, events).iterations
    assert columns(frame, "label", "source", "confidence") == [("loop body", "annotation", "medium")] * 3


@pytest.mark.parametrize(("held", "source"), [(4, "whole trace"), (6, "annotation")])
def test_an_annotation_that_holds_little_of_the_work_is_not_the_loop(tmp_path, held, source):
    spans = [slice_("validate", "user_annotation", 1000 * k, 10 * held) for k in range(2)]
    work = [event for k in range(2) for event in launches(1000 * k + 5, count=10)]
    assert set(rank_of(tmp_path, [*spans, *work]).iterations["source"]) == {source}


def test_a_step_that_runs_into_the_next_ends_where_that_begins(tmp_path):
    steps = [slice_(f"ProfilerStep#{k}", "user_annotation", 100 * k, 120, tid=k) for k in range(2)]
    frame = rank_of(tmp_path, [*steps, *launches(10), *launches(130)]).iterations
    assert columns(frame, "start_ns", "end_ns") == [(0, 100_000), (100_000, 220_000)]


@pytest.mark.parametrize(("work", "source"), [(100, "whole trace"), (40, "periodicity")])
def test_repeats_that_hold_little_of_the_work_are_not_the_loop(tmp_path, work, source):
    body = ["embed", "layer", "norm", "layer", "norm", "layer", "norm", "head"]
    operators = [slice_(name, "cpu_op", 10 * k, 5) for k, name in enumerate(body * 4)]
    calls = [slice_("cudaLaunchKernel", "cuda_runtime", 10 * k, 2, tid=2) for k in range(work)]
    assert set(rank_of(tmp_path, [*operators, *calls]).iterations["source"]) == {source}


def test_layers_repeat_inside_of_iterations(tmp_path):
    body = ["embed", *["attention", "norm", "up", "down"] * 10, "head"]
    events = [kernel(name, 10 * k, 5) for k, name in enumerate(body * 4)]
    frame = rank_of(tmp_path, events).iterations
    assert frame["start_ns"].tolist() == [10_000 * len(body) * k for k in range(4)]


def test_periodic_work_without_any_annotation(tmp_path):
    body = ["embed", "layer", "norm", "layer", "norm", "layer", "norm", "head"]
    events = [kernel(name, 10 * k, 5) for k, name in enumerate(body * 4)]
    frame = rank_of(tmp_path, events).iterations
    assert len(frame) == 4
    assert set(frame["source"]) == {"periodicity"}
    assert set(frame["confidence"]) == {"low"}


def test_irregular_work_is_one_iteration(tmp_path):
    events = [kernel(name, 10 * k, 5) for k, name in enumerate("aabcabbbcacbaacbbcab")]
    assert columns(rank_of(tmp_path, events).iterations, "iteration", "source") == [(0, "whole trace")]


def test_restarted_profiler_numbers_stay_unique(tmp_path):
    steps = [slice_("ProfilerStep#0", "user_annotation", at, 100) for at in (0, 500)]
    assert rank_of(tmp_path, steps).iterations["iteration"].tolist() == [0, 1]


def test_the_whole_trace_holds_an_event_without_length_at_its_very_end(tmp_path):
    rank = rank_of(tmp_path, [slice_("aten::add", "cpu_op", 0, 5), slice_("mark", "user_annotation", 5, 0)])
    assert columns(rank.iterations, "source", "start_ns", "end_ns") == [("whole trace", 0, 5_001)]
    assert rank.iteration.tolist() == [0, 0]


# -- how iterations are known, and where the recording leaves them open ------------------------------


def marks(numbers: list[int], apart: float = 100) -> list[dict[str, Any]]:
    """ProfilerSteps one after the other, in which an operator runs for nine tenths of the time."""
    events = []
    for place, number in enumerate(numbers):
        events.append(slice_(f"ProfilerStep#{number}", "user_annotation", apart * place, apart))
        events.append(slice_("aten::mm", "cpu_op", apart * place + 1, 0.9 * apart))
    return events


def test_numbers_that_do_not_follow_each_other_begin_another_run(tmp_path: Path) -> None:
    """A schedule that repeats skips steps in between: the time that nothing recorded is in none of them."""
    events = marks([2, 3, 4])
    events += [{**event, "ts": event["ts"] + 5_000} for event in marks([12, 13, 14])]
    frame = rank_of(tmp_path, events).iterations
    assert frame["run"].tolist() == [0, 0, 0, 1, 1, 1]
    assert (frame["end_ns"] - frame["start_ns"]).tolist() == [100_000] * 6
    assert not frame["open"].any(), "marks say when each was over"


def test_a_step_without_end_is_partial_and_ends_with_the_recording(tmp_path: Path) -> None:
    events = marks([2, 3])
    events += [slice_("ProfilerStep#4", "user_annotation", 200, 0), slice_("aten::mm", "cpu_op", 210, 60)]
    frame = rank_of(tmp_path, events).iterations
    assert frame["iteration"].tolist() == [2, 3, 4] and frame["partial"].tolist() == [False, False, True]
    assert frame["end_ns"].tolist() == [100_000, 200_000, 270_000]


def test_the_profilers_time_at_the_end_of_the_last_step_is_not_its_own(tmp_path: Path) -> None:
    events = marks([2, 3, 4])
    events[4]["dur"] = 300  # the mark of step 4, in which nothing else is recorded
    frame = rank_of(tmp_path, events).iterations
    assert frame["end_ns"].tolist() == [100_000, 200_000, 291_000]
    assert frame["host_end_ns"].tolist()[-1] == 500_000
    assert frame["open"].tolist() == [False, False, True]


def test_names_are_read_as_often_for_many_steps_as_for_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """... also where the last step falls silent early, so that all others are looked at."""
    read: Counter[str] = Counter()

    def counted(name: str) -> int | None:
        read[name] += 1
        return profiler_step(name)

    monkeypatch.setattr(iterations, "profiler_step", counted)
    most = []
    for steps in (4, 40):
        events = marks(list(range(steps)))
        events[-2]["dur"] = 300
        assert rank_of(tmp_path, events).iterations["open"].tolist()[-2:] == [False, True]
        most.append(read["aten::mm"])
        read.clear()
    assert most[0] == most[1] <= 2


def test_silence_as_at_the_end_of_each_step_is_the_last_ones_own(tmp_path: Path) -> None:
    """Every step ends with a pause of 9 us in which nothing is recorded."""
    frame = rank_of(tmp_path, marks([2, 3, 4])).iterations
    assert frame["end_ns"].tolist()[-1] == 300_000 and not frame["open"].any()


@pytest.mark.parametrize(("apart", "known"), [([100, 100, 100], "annotated"), ([100, 300, 20], "guessed")])
def test_an_annotation_is_a_step_if_it_comes_regularly(tmp_path: Path, apart: list[int], known: str) -> None:
    events, begin = [], 0
    for after in [*apart, 100]:
        events.append(slice_("train_step", "user_annotation", begin, 15))
        events += [slice_("cudaLaunchKernel", "cuda_runtime", begin + at, 1) for at in range(1, 11)]
        begin += after
    frame = rank_of(tmp_path, events).iterations
    assert set(frame["source"]) == {"annotation"} and set(frame["known"]) == {known}
    assert frame["end_ns"].tolist()[:-1] == frame["start_ns"].tolist()[1:]
    assert frame["open"].tolist() == [False, False, False, True], (
        "time lies between spans: the last has no end"
    )
