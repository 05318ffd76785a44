"""docs/measured_savings.md says what the recordings say, and gives a reason for each miss and no other."""

import re

import pytest
from recorder import manifest
from recorder.comparison import (
    CHANGES,
    H100,
    RUNS,
    Change,
    Compared,
    Foreseen,
    Measured,
    compare,
    folder_of,
    manifests,
    measure,
    step_ms,
    verdict,
)
from recorder.matrix import PAIRS, recordings
from recorder.tables import constants, savings
from savings import MARK, PAGE, written

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def compared() -> list[Compared]:
    return list(compare())


def test_the_page_has_the_tables_that_the_recordings_give(compared: list[Compared]) -> None:
    page = PAGE.read_text()
    assert page == written(page, [savings(compared), constants()])
    with pytest.raises(ValueError, match="2 tables need 4 marks"):
        written(page.replace(MARK, "", 1), ["", ""])


def test_each_miss_has_its_reason_and_nothing_else_has(compared: list[Compared]) -> None:
    section = PAGE.read_text().partition("## Where it misses")[2].partition("\n## ")[0]
    missed = {(each.change.first, each.change.second) for each in compared if "missed" in each.verdicts}
    assert set(re.findall(r"\*\*`(\w+)`, `(\w+)`\*\*", section)) == missed


def test_changes_differ_in_one_field_and_every_repair_of_the_matrix_is_there() -> None:
    setups = recordings("cuda")
    for change in CHANGES:
        assert len(setups[change.first].differs_from(setups[change.second])) == 1
        assert bool(change.topic) != bool(change.edit)
        assert list(folder_of(change.first).glob("rank-*.json.gz"))
    told = {frozenset((change.first, change.second)) for change in CHANGES}
    # The rest: the same twice, another job or flags, several ranks, a step on the way, and the reverse.
    rest = {frozenset((pair.first, pair.second)) for pair in PAIRS} - told
    assert {second for pair in rest for second in pair} <= {
        "baseline", "baseline_again", "data_stall", "small_batch", "detailed", "images", "images_augmented",
        "medium_for_loop", "medium_foreach", "ddp", "fsdp_full_shard", "fsdp_shard_grad_op",
    }  # fmt: skip


def test_manifests_are_whole_and_one_device_made_all_of_them() -> None:
    for run in RUNS:
        assert not [
            problem for problem in manifest.problems(manifest.load(H100 / run)) if "pair" not in problem
        ]
    found = [recording["environment"] for run in manifests() for recording in run.values()]
    machines = {tuple(each[name] for name in ("device", "driver", "torch", "cuda")) for each in found}
    assert machines == {("NVIDIA H100 80GB HBM3", "580.159.04", "2.11.0+cu130", "13.0")}


def recorded(**phases: tuple[int, int]) -> dict[str, object]:
    """An entry of a manifest: for each phase its ns and how many of them were profiled."""
    times = {
        name: {"before": {"median_ns": ns}, "profiled": {"median_ns": 2 * ns, "samples": samples}}
        for name, (ns, samples) in phases.items()
    }
    return {"step_time": times}


def test_a_step_of_a_server_is_a_prompt_and_its_tokens() -> None:
    serving = recorded(prefill=(8_000_000, 3), decode=(1_000_000, 36))
    assert step_ms(serving, "before") == 8 + 12 * 1
    assert step_ms(serving, "profiled") == 2 * 20
    assert step_ms(recorded(step=(5_000_000, 1)), "before") == 5


def test_what_was_measured_is_of_all_pairs_of_runs() -> None:
    runs = [
        {"first": recorded(step=(100, 1)), "second": recorded(step=(50, 1))},
        {"first": recorded(step=(200, 1))},
        {"second": recorded(step=(20, 1))},
    ]
    found = measure(Change("first", "second", "", "data_stall"), runs, "before")
    assert (found.before_ms, found.after_ms) == pytest.approx((150e-6, 35e-6))
    assert (found.least, found.pct, found.most) == pytest.approx((50, 77.5, 90))


@pytest.mark.parametrize(
    ("kind", "pct", "measured", "expected"),
    [
        ("estimate", 50, (52, 54), "right"),
        ("estimate", 50, (56, 57), "missed"),
        ("estimate", 50, (40, 44), "missed"),
        ("estimate", 50, (40, 60), "undecided"),
        ("nothing", 0, (2, 3), "right"),
        ("nothing", 0, (10, 12), "missed"),
        ("at most", 50, (10, 30), "right"),
        ("at most", 50, (51, 52), "right"),
        ("at most", 50, (53, 60), "missed"),
        ("at most", 50, (40, 60), "undecided"),
    ],
)
def test_verdicts(kind: str, pct: float, measured: tuple[float, float], expected: str) -> None:
    least, most = measured
    found = Measured(1.0, 1.0, least, (least + most) / 2, most)
    assert verdict(Foreseen("x", kind, pct, pct, pct), found) == expected
