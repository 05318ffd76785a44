"""Small recordings with known answers, which lie beside the real ones: all that their table says is right.

Each stands for a kind that users of profilers reported; most have steps of 1,000 us with 800 us of kernels.
What findings say of them is recomputed in `tests/claims`; these truths were known before anything ran.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hta_widgets import Trace, analysis
from hta_widgets.analysis.findings import judged_scope
from hta_widgets.errors import TraceFormatError
from tests.support import shared_input

SHARE = 0.5  # % points


@dataclass(frozen=True)
class Right:
    """What is right of one recording.

    Attributes:
        step_us: what a whole step takes; 0 if that cannot be told.
        compute: share of the judged time in which the first rank computes, in %.
        idle: the same of no work at all, of each rank.
        steps: how many whole steps are judged.
        ranks: the ranks of the job.
        says: what health must name.
        limited: conclusions are withheld, and a reason is given.
        left_out: what is said of files or recordings that were not opened.
    """

    step_us: int = 1_000
    compute: float = 80
    idle: tuple[float, ...] = (20,)
    steps: int = 3
    ranks: tuple[int, ...] = (0,)
    says: tuple[str, ...] = ()
    limited: bool = False
    left_out: str = ""


# a collective of 300 us in each step of two or four ranks that are otherwise like the rest
JOB = Right(compute=30, idle=(40, 40), ranks=(0, 1))
FOUR = Right(compute=30, idle=(40,) * 4, ranks=(0, 1, 2, 3))

RIGHT = {
    # time between steps
    "i18_sync_after_step": Right(steps=5),
    "i20_two_ranks_sync_after_step": Right(1_500, 53.3, (13.3, 40), 5, (0, 1)),
    "l01_graph_burst_corr_kept": Right(
        compute=41.6, idle=(58.4,), steps=7, says=("contradicted_iterations",), limited=True
    ),
    "a07_device_clock_ahead": Right(steps=2, says=("device_before_launch",), limited=True),
    "j05_steps_only_on_rank0": Right(compute=30, idle=(40, 40), steps=4, ranks=(0, 1)),
    "j06_ranks_record_other_steps": Right(compute=30, idle=(40, 40), steps=4, ranks=(0, 1)),
    "a05_unfinished_step_zero": Right(steps=2, says=("incomplete_steps",)),
    # records that cannot be true
    "a02_overflow_dur": Right(says=("late_end",)),
    "h03_overflow_mild": Right(compute=40, idle=(60,), steps=5, says=("late_end",)),
    "a01_zero_second_half": Right(steps=2, says=("no_time",)),
    "a11_some_kernels_ts0": Right(says=("no_time",)),
    "a09_first_steps_kernels_dropped": Right(says=("lost_launches", "incomplete_steps")),
    "h07_first_120_of_1000_lost": Right(steps=4, says=("lost_launches", "incomplete_steps")),
    "j08_one_step_of_10_lost": Right(steps=9, says=("lost_launches", "incomplete_steps")),
    "b01_xpu_no_stream": Right(idle=(15,)),
    "i13_runtime_and_driver_share_corr": Right(),
    "c05_rocm_corr0_stream64": Right(compute=40, idle=(42,)),
    "b02_xpu_kernels_missing_copies_only": Right(0, 0, (92.7,), 0, says=("lost_launches",), limited=True),
    "d01_interleaved": Right(compute=30, idle=(40,), says=("several_processes",), limited=True),
    "e08_overlapping_spans": Right(compute=75, idle=(25,)),
    "g01_oom": Right(compute=30, idle=(70,), says=("out_of_memory",)),
    "b10_hardware_counters": Right(),
    # files, ranks, devices
    "i05_vllm_dp2_tp2_noasync": FOUR,
    "d04_vllm_async": Right(compute=30, idle=(40, 40), ranks=(0, 1), left_out="front end"),
    "d14_dynolog_pid": JOB,
    "d05_sglang_merged": Right(compute=30, idle=(40, 40), ranks=(0, 1), left_out="a merged file"),
    "d15_with_et": Right(compute=30, idle=(40, 40), ranks=(0, 1), left_out="et_1.json"),
    "b06_npu_trace_view_str": Right(compute=60, idle=(23,)),
    "h19_npu_direct_str": Right(compute=60, idle=(23,)),
    "e10_old_autograd_cuda": Right(599, 60.8, (39.2,), 1),
    "i07_vllm_tp2_two_rounds": Right(compute=30, idle=(40, 40), ranks=(0, 1), left_out="--recording 1"),
    "j01_host_clock_5s_off": Right(compute=30, idle=(40, 40), steps=4, ranks=(0, 1), says=("clock",)),
    # right before, too
    "a03_overlap_27ns": Right(),
    "c01_stream_sync_row": Right(),
    "c03_noseq_shift": Right(compute=30, idle=(40, 56.7), ranks=(0, 1)),
    "c07_graph_many_streams": Right(steps=4),
    "d06_sglang_merged_alone": JOB,
    "d08_trtllm": JOB,
    "d11_plain_named_gz": JOB,
    "d13_restart_iters": Right(compute=35, idle=(35, 35), ranks=(0, 1), left_out="--recording 1"),
    "e04_sglang_roofline_steps": Right(compute=75, idle=(25,), steps=5),
    "f01_raw_newline_bare_quotes": Right(says=("malformed_event",)),
    "f03_backslashes_u_n_t": Right(says=("not_json",)),
    "g03_python_gc": Right(compute=20, idle=(80,), steps=4),
    "g05_triton_cpu_op_stream": Right(compute=75, idle=(25,)),
    "g08_flow_hex_id": Right(),
    "h08_tb_names_no_dist": JOB,
    "h12_restart_in_one_file": Right(steps=6),
    "h30_instants_ts0": Right(),
    "h33_gz_two_members": Right(compute=30, idle=(40,)),
    "i02_loss_read_after_step": Right(steps=5),
    "i04_control_step_at_loop_top": Right(steps=6),
    "i12_dynolog_with_rank": JOB,
    "k01_control_10_steps": Right(steps=10),
    "k03_vllm_dp2_tp2_global_ranks": FOUR,
}


@pytest.mark.parametrize("name", RIGHT)
def test_the_answers_are_right(name: str) -> None:
    right = RIGHT[name]
    trace = Trace.open(shared_input(f"cases/{name}"))
    assert tuple(trace.ranks) == right.ranks
    assert right.left_out in " ".join(trace.file_notes) and bool(right.left_out) <= bool(trace.file_notes)

    steps = analysis.step_times(trace)
    whole = steps[~steps["partial"] & ~steps["open"]]
    assert len(whole[whole["rank"] == 0]) == right.steps
    assert set((whole["dur_ns"] / 1_000).round()) <= {right.step_us}

    split = analysis.temporal_breakdown(trace, judged_scope(trace))
    assert split["compute_pct"].iloc[0] == pytest.approx(right.compute, abs=SHARE)
    assert split["idle_pct"].tolist() == [pytest.approx(idle, abs=SHARE) for idle in right.idle]

    assert set(right.says) <= set(trace.health["check"])
    assert (trace.trust.level == "limited") == right.limited
    wrong = trace.health.query("severity != 'info'")["check"]
    assert right.says or wrong.empty, "nothing is wrong with its records"
    asserted = analysis.overview(trace).query("share_pct > 0")["topic"]
    if right.limited:
        assert not asserted.str.startswith("idle").any(), "nothing below asserts what the headline withholds"


def test_every_recording_has_its_answer() -> None:
    there = {folder.name for folder in shared_input("cases").iterdir() if folder.is_dir()}
    assert there == {
        *RIGHT,
        "serving",
        "c09_pftrace",
    }  # rates of servers: `tests/analysis/test_serving_truths.py`


def test_what_is_no_trace_is_named() -> None:
    with pytest.raises(TraceFormatError, match="no Perfetto trace, though it is named like one"):
        Trace.open(shared_input("cases/c09_pftrace"))


def test_a_record_that_is_too_long_is_estimated() -> None:
    """What its kernels take: 12 of 200 us, and 500 of 4 us, of which ten are on record with 400."""
    for name, sums_us in (("a02_overflow_dur", [2_400]), ("h03_overflow_mild", [1_800, 200])):
        kernels = analysis.kernel_breakdown(Trace.open(shared_input(f"cases/{name}")))
        assert (kernels["sum_ns"] // 1_000).tolist() == sums_us
        assert kernels["count"].sum() == sum(sums_us) // (200 if len(sums_us) == 1 else 4)
    assert kernels["pct"].tolist() == [90, 10]


def test_spans_that_cross_hold_the_same_in_both_tables() -> None:
    trace = Trace.open(shared_input("cases/e08_overlapping_spans"))
    stacks = analysis.call_stacks(trace).query("name == 'forward_pass'")
    assert stacks["device_ns"].tolist() == [750_000] * 3
    assert (
        analysis.annotation_totals(trace).set_index("annotation").loc["forward_pass", "sum_ns"] == 2_250_000
    )


def test_clocks_of_hosts_are_set_by_the_collectives_that_ranks_leave_together() -> None:
    trace = Trace.open(shared_input("cases/j01_host_clock_5s_off"))
    assert trace.summary["duration_ns"] == 4_000_000
    clock = trace.health.query("check == 'clock'")["detail"].iloc[0]
    assert "the clock of rank 1 is 5.00 s ahead of rank 0's" in clock
