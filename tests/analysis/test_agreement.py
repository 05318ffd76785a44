"""What a comparison calls noise, and that a step, its parts and their lines are not called differently."""

import math
import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.simulator import SimulatedJob, simulate
from hta_widgets import Scope, Trace, examples
from hta_widgets.analysis.compare import waterfall as waterfall_of
from hta_widgets.analysis.compare.agreement import judged, parts_of
from hta_widgets.analysis.compare.compare import diff
from hta_widgets.analysis.compare.entries import Line
from hta_widgets.analysis.compare.noise import difference
from hta_widgets.analysis.compare.run_table import run_table
from hta_widgets.analysis.compare.waterfall import STEP, step_waterfall
from hta_widgets.analysis.idle.split import BUSY, PARTS
from tests.analysis.kineto_file import job
from tests.analysis.test_diff import steps_of
from tests.support import EVERY_CASE, shared_trace, tried

KINDS = {
    "compute": ("compute",),
    "exposed_communication": ("communication",),
    "exposed_memory": ("memory_copy", "memory_set"),
}


@cache
def simulated(seed=1, **fields):
    fields = {"strategy": "ddp", "ranks": 2, "steps": 5, "layers": 2} | fields
    with TemporaryDirectory() as folder:
        files = simulate(SimulatedJob("job", seed=seed, **fields)).write(Path(folder))
        return Trace.open(files, cache=False)


# -- what is noise ---------------------------------------------------------------------------------


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**31), st.integers(0, 60))
@settings(max_examples=tried(20), deadline=None)
def test_noise_is_what_has_zero_in_its_interval_and_nothing_else(first, second, seed, shift):
    dice = np.random.default_rng(seed)
    found = difference(dice.normal(1_000, 20, (first, 12)), dice.normal(1_000 + shift, 20, (second, 12)))
    for low, high, significant, enough, alone, verdict in zip(
        found.low, found.high, found.significant, found.enough, found.alone, found.verdict, strict=True
    ):
        assert (verdict == "noise unknown") == math.isnan(low)
        assert (verdict == "within noise") == (low <= 0 <= high)
        assert (verdict == "significant") == significant
        assert verdict != "negligible" or not enough
        assert verdict != "inconclusive" or enough
        assert alone or not significant


def test_certain_changes_have_three_names():
    """Of thirty lines: far beyond noise, beyond that of one line only, and certain but tiny."""
    dice = np.random.default_rng(3)
    old = dice.normal(1_000, 10, size=(4, 30))
    new = dice.normal(1_000, 10, size=(4, 30))
    old[:, :3] = [
        [1_000, 1_000, 100_000],
        [1_001, 1_012, 100_001],
        [1_002, 995, 100_002],
        [1_001, 1_004, 100_001],
    ]
    new[:, :3] = old[:, :3] + [100, 30, 30]
    assert difference(old, new).verdict[:3].tolist() == ["significant", "inconclusive", "negligible"]
    assert difference(old[:, 1:2], new[:, 1:2]).verdict.tolist() == ["significant"]


def test_a_kernel_whose_time_was_rounded_may_have_changed_by_less_than_a_microsecond(tmp_path):
    """Always 4 µs, always 5 µs: that may be 4.49 and 4.51. With nanoseconds there is no such doubt."""
    runs = {}
    for name, dur in (("A", 4_000), ("B", 5_000), ("C", 9_000)):
        (tmp_path / name).mkdir()
        runs[name] = job(tmp_path / name, steps_of([("k", dur)]))
    frame = diff(runs).set_index("run")
    assert frame["significant"].to_dict() == {"A": False, "B": False, "C": True}
    assert frame.loc["B", "low_ns"] < 0 < frame.loc["B", "high_ns"]
    for name, dur in (("A", 4_001), ("B", 5_001)):
        (tmp_path / f"{name}1").mkdir()
        runs[name] = job(tmp_path / f"{name}1", steps_of([("k", dur)]))
    assert diff(runs).set_index("run").loc["B", "significant"]


# -- step, parts, lines ----------------------------------------------------------------------------


ALIKE = np.array([[-1, 1, 0.5, -0.5], [1, -1, -0.6, 0.6]])  # how the steps of both runs vary
MEMORY = PARTS.index("exposed_memory")


def case(line=1_000.0, part=1_000.0, spread=250.0, part_spread=5.0, others=600.0):
    """A part and a line of it that change; ten other parts and 199 other lines, of compute, do not."""
    dice = np.random.default_rng(11)
    parts = 9_000 + dice.normal(0, others, (2, 4, len(PARTS)))
    parts[:, :, MEMORY] = 3_000 + part_spread * ALIKE
    values = 5_000 + dice.normal(0, 60, (2, 4, 200))
    values[:, :, 0] = 2_000 + spread * ALIKE
    parts[1, :, MEMORY] += part
    values[1, :, 0] += line
    kinds = [Line("memory_copy", "copy"), *(Line("compute", f"k{n}") for n in range(1, 200))]
    return judged(parts[0], parts[1], difference(*values), parts_of(kinds))


def test_a_line_that_is_the_change_of_its_part_is_called_as_its_part_is():
    _, parts, lines = case()
    assert parts.verdict[MEMORY] == "significant" and lines.verdict[0] == "significant"
    _, parts, lines = case(part=0.0)
    assert parts.verdict[MEMORY] == "within noise" and lines.verdict[0] == "inconclusive"


@pytest.mark.parametrize(
    "other", [{"line": 700}, {"line": -1_000}, {"part": 700.0}, {"spread": 600.0}], ids=str
)
def test_a_line_that_is_something_else_than_its_part_is_not_confirmed_by_it(other):
    _, parts, lines = case(**other)
    assert parts.significant[MEMORY] and not lines.significant[0]


def test_a_part_that_is_the_sum_of_its_lines_is_called_as_they_are():
    _, parts, lines = case(spread=0.5, part_spread=300.0)
    assert lines.significant[0] and parts.verdict[MEMORY] == "significant"
    _, parts, lines = case(spread=0.5, part_spread=300.0, line=100)
    assert lines.significant[0] and parts.verdict[MEMORY] == "inconclusive"


def test_a_part_that_is_the_change_of_the_step_is_called_as_the_step_is():
    step, parts, _ = case(spread=0.5, part_spread=300.0, line=100, others=30.0)
    assert step.verdict.tolist() == ["significant"] and parts.verdict[MEMORY] == "significant"


def test_between_equal_runs_nothing_is_confirmed():
    _, parts, lines = case(line=0.0, part=0.0)
    assert not parts.significant.any() and not lines.significant.any()


def pairs():
    yield {"drift_permille": 20, "steps": 3}, {"bus_gbps": 100}, "exposed_communication"
    for steps in (3, 5, 10) if EVERY_CASE else (3, 5):
        yield {"steps": steps}, {"bus_gbps": 100}, "exposed_communication"
        yield {"steps": steps}, {"slow_kernel": ("gemm", 1300)}, "compute"


@pytest.mark.parametrize(("fields", "planted", "part"), [*pairs()])
def test_a_planted_change_gets_the_same_verdict_as_line_and_as_part(fields, planted, part):
    runs = {"before": simulated(**fields), "after": simulated(seed=2, **fields, **planted)}
    parts = step_waterfall(runs).query("run == 'after'").set_index("part")
    lines = diff(runs).query("run == 'after'")
    lines = lines[lines["kind"].isin(KINDS[part])]
    assert parts.loc[part, "verdict"] == "significant"
    assert "significant" in set(lines["verdict"])
    carried = lines.loc[lines["significant"], "change_ns"].sum()
    assert carried == pytest.approx(parts.loc[part, "change_ns"], rel=0.25)


def recorded_pairs():
    both = {name: Trace.open(shared_trace(f"hta/trace_diff/{name}")) for name in ("control", "test")}
    yield both, None
    for trace in (*both.values(), Trace.open(shared_trace("kineto/resnet50_num_workers_0"))):
        steps = sorted(set(trace.iterations["iteration"].tolist()))
        yield (
            {"even": trace, "odd": trace},
            {"even": Scope(iterations=tuple(steps[::2])), "odd": Scope(iterations=tuple(steps[1::2]))},
        )
    names = ("gpt2_baseline", "gpt2_ddp", "gpt2_fsdp_full_shard", "single_gpu_dataloader_stall")
    for first in names:
        for second in names:
            if first != second and (EVERY_CASE or "gpt2_ddp" in (first, second)):
                yield {first: examples.load(first), second: examples.load(second)}, None


def test_no_line_that_carries_a_significant_part_is_called_noise():
    """And a run's step is called the same wherever it is called anything."""
    compared = 0
    for runs, scope in recorded_pairs():
        waterfall = step_waterfall(runs, scope)
        other = list(runs)[1]
        parts = waterfall[waterfall["run"] == other].set_index("part")
        table = run_table(runs, scope).set_index("run")
        assert parts.loc[STEP, "verdict"] == table.loc[other, "verdict"]
        lines = diff(runs, scope=scope).query("run == @other")
        for part in BUSY:
            own = lines[lines["kind"].isin(KINDS[part])]
            share = own["change_ns"] / parts.loc[part, "change_ns"]
            carrying = own[(share >= 0.8) & (share <= 1.25)]
            if parts.loc[part, "significant"] and len(carrying):
                compared += 1
                assert not carrying["verdict"].eq("within noise").any(), (list(runs), part)
    assert compared >= 4


def test_halves_of_one_recording_do_not_differ():
    for runs, scope in list(recorded_pairs())[1:4]:
        assert not diff(runs, scope=scope)["significant"].any()
        assert not step_waterfall(runs, scope)["significant"].any()


# -- sentences -------------------------------------------------------------------------------------

MILLISECOND = 1_000_000


def frame_of(changes, verdict="significant"):
    """A waterfall frame of two runs whose parts changed by so many ms."""
    values = np.array([*changes, sum(changes)], np.int64) * MILLISECOND
    rows = pd.DataFrame({"part": [*PARTS, STEP], "time_ns": 100 * MILLISECOND, "change_ns": values})
    rows = rows.assign(low_ns=values - 1.0, high_ns=values + 1.0, significant=True, verdict=verdict)
    base = rows.assign(change_ns=0, low_ns=0.0, high_ns=0.0, significant=False, verdict="")
    return pd.concat([base.assign(run="A"), rows.assign(run="B")], ignore_index=True)


def signed_times(text):
    found = re.findall(r"([\d.]+) ms (more|less|longer|shorter)", text)
    return [float(ms) * (1 if word in ("more", "longer") else -1) for ms, word in found]


@given(st.lists(st.integers(-40, 40), min_size=len(PARTS), max_size=len(PARTS)))
def test_what_a_sentence_names_adds_up_to_the_whole(changes):
    text = waterfall_of.sentence(frame_of(changes))
    if not sum(changes):
        assert text.startswith("No step time differs from A by more than the steps do among themselves")
        return
    whole, *named = signed_times(text)
    assert whole == sum(changes) == pytest.approx(sum(named))
    assert len(named) <= 4
    exceeding = [ms for ms in named if ms * whole > 0]
    if sum(map(abs, exceeding)) > abs(whole):
        assert any(ms * whole < 0 for ms in named)


def test_a_part_that_changed_for_certain_is_told_where_the_steps_did_not():
    frame = frame_of([5, *[0] * (len(PARTS) - 1)], "within noise")
    same = "No step time differs from A by more than the steps do among themselves"
    assert waterfall_of.sentence(frame) == f"{same}."
    frame.loc[(frame["run"] == "B") & (frame["part"] == PARTS[0]), "verdict"] = "significant"
    assert waterfall_of.sentence(frame) == f"{same}; but a step of B has 5.00 ms more compute."


def test_a_sentence_names_what_shrank_and_what_grew():
    changes = dict.fromkeys(PARTS, 0) | {"data_stall": -56, "compute": 10}
    assert waterfall_of.sentence(frame_of(changes.values())) == (
        "A step of B is 46.0 ms shorter than one of A: 56.0 ms less waiting for the data loader, "
        "10.0 ms more compute."
    )


def test_a_sentence_says_which_of_its_parts_are_doubtful():
    frame = frame_of([5, *[0] * (len(PARTS) - 2), 2])
    doubtful = (frame["run"] == "B") & (frame["part"] == PARTS[-1])
    for verdict, words in (
        ("within noise", "within noise"),
        ("inconclusive", "inconclusive"),
        ("negligible", "less than 1 % of it"),
    ):
        frame.loc[doubtful, "verdict"] = verdict
        assert waterfall_of.sentence(frame).endswith(
            f": 5.00 ms more compute, 2.00 ms more time without device work due ({words})."
        )
    for verdict, words in (("noise unknown", "one step: noise unknown"), ("inconclusive", "inconclusive")):
        text = waterfall_of.sentence(frame_of([5, *[0] * (len(PARTS) - 1)], verdict))
        assert text == f"A step of B is 5.00 ms longer than one of A ({words}): 5.00 ms more compute."
