"""The panel of steps: what it sends of each step, and which two it compares."""

from collections.abc import Iterator

import numpy as np
import pytest
import traitlets

from hta_widgets import Scope, Trace
from hta_widgets.analysis import step_parts
from hta_widgets.analysis.device_time.step_strips import WHOLE, step_strips
from hta_widgets.widgets import steps_panel
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.steps_panel import StepsPanel
from tests.widgets.decoded import numbers

pytestmark = pytest.mark.slow


@pytest.fixture
def panel(ddp: Trace) -> Iterator[StepsPanel]:
    made = StepsPanel(ddp)
    settle([made])
    yield made
    made.close()


def test_it_shows_every_step_and_compares_the_longest_with_the_median(panel: StepsPanel, ddp: Trace) -> None:
    frame = step_parts(ddp)
    for name in ("rank", "iteration", "dur_ns", "change_ns", "compute_ns"):
        assert numbers(panel.steps, name) == frame[name].tolist()
    row = frame.iloc[int(frame["change_ns"].to_numpy(np.int64).argmax())]
    assert panel.difference["pair"] == [
        [row["median_rank"], row["median_iteration"]],
        [row["rank"], row["iteration"]],
    ]
    assert panel.difference["second_ns"] == row["dur_ns"]


@pytest.mark.parametrize("pair", [((0, 10), (2, 12)), ((2, 12), (0, 10))])
def test_two_chosen_steps_are_compared_in_the_order_of_the_clicks(
    panel: StepsPanel, pair: tuple[tuple[int, int], ...]
) -> None:
    panel.pair = pair
    settle([panel])
    shown = panel.difference
    assert shown["pair"] == [list(step) for step in pair]
    assert shown["second_ns"] - shown["first_ns"] == sum(part[-1] for part in shown["parts"])
    assert f"step {pair[1][1]}, rank {pair[1][0]}" == shown["second"]


def test_one_chosen_step_is_compared_with_its_median(panel: StepsPanel) -> None:
    median = panel.difference["pair"][0]
    panel.pair = [(2, 11)]
    settle([panel])
    assert panel.difference["pair"] == [median, [2, 11]]
    panel.pair = [tuple(median)]  # with itself there is nothing to compare
    settle([panel])
    assert panel.difference == {}
    panel.pair = [(7, 99)]  # no such step
    settle([panel])
    assert panel.difference["pair"][0] == median


@pytest.mark.parametrize(
    "junk", [None, 5, [(0, 10)] * 2, [(0, 1), (0, 2), (0, 3)], [(-1, 0)], ["ab"], [None]]
)
def test_what_are_no_two_steps_is_refused(panel: StepsPanel, junk: object) -> None:
    with pytest.raises(traitlets.TraitError):
        panel.pair = junk


def test_bins_add_up_to_what_the_steps_consist_of(ddp: Trace) -> None:
    frame, bins = step_parts(ddp), 1000
    strips = step_strips(ddp, frame, Scope(), bins).astype(np.float64) / WHOLE
    assert (strips.sum(axis=1) <= 1).all()
    bin_ns = frame["dur_ns"].max() / bins
    for number, part in enumerate(("compute", "exposed_communication", "exposed_memory")):
        took = strips[:, number].sum(axis=1) * bin_ns
        assert np.abs(took - frame[f"{part}_ns"]).max() < 0.006 * frame["dur_ns"].max()


def test_of_too_many_steps_those_that_differ_most_are_drawn(
    ddp: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps_panel, "MOST_STEPS", 5)
    panel = StepsPanel(ddp)
    settle([panel])
    frame = step_parts(ddp)
    assert panel.left_out == len(frame) - 5
    drawn = set(zip(numbers(panel.steps, "rank"), numbers(panel.steps, "iteration"), strict=True))
    assert len(drawn) == 5
    assert (frame["median_rank"].iloc[0], frame["median_iteration"].iloc[0]) in drawn
    longest = frame.iloc[int(frame["change_ns"].to_numpy(np.int64).argmax())]
    assert (longest["rank"], longest["iteration"]) in drawn
    panel.close()
