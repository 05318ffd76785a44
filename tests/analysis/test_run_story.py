"""Runs as bars on one scale: parts that add up, what differs, and where that shows."""

import pytest

from hta_widgets import Trace, analysis, examples
from hta_widgets.analysis.compare.run_story import RunStory, run_story
from hta_widgets.errors import NotComparableError
from hta_widgets.trace.scope import Scope


def story_of(*names: str, scope: Scope | None = None) -> tuple[RunStory, dict[str, Trace]]:
    runs = {name: Trace.open(examples.path(name)) for name in names}
    waterfall, lines = analysis.step_waterfall(runs, scope), analysis.diff(runs, scope=scope)
    return run_story(runs, scope, waterfall, lines), runs


def test_what_all_runs_have_and_what_one_has_more_adds_up_to_each_step() -> None:
    story, runs = story_of("gpt2_ddp", "gpt2_fsdp_full_shard", "gpt2_baseline")
    frame = analysis.step_waterfall(runs)
    steps = frame[frame["part"] == "step"].set_index("run")["time_ns"]
    common = []
    for bar in story.runs:
        assert sum(piece.ns for piece in bar.pieces) == bar.ns == steps[bar.name]
        first_four = {piece.lost_as: piece.ns for piece in reversed(bar.pieces) if piece.change < 0}
        common.append([piece.ns for piece in bar.pieces[:3]])
        assert set(first_four) <= {"compute", "communication", "memory", "idle"}
    assert common[0] == common[1] == common[2], "what all have stands first, on one scale"
    assert story.longest_ns == steps.max()
    # the run whose step changed most, as the sentence has it
    assert story.other == "gpt2_baseline"
    for at, change in enumerate(story.changes):
        row = frame[(frame["run"] == story.other) & (frame["part"] == change.part)].iloc[0]
        assert change.change_ns == row["change_ns"] and change.certain == row["significant"]
        longer = story.runs[0].name if change.change_ns < 0 else story.other
        bar = next(bar for bar in story.runs if bar.name == longer)
        assert any(piece.change == at for piece in bar.pieces)


def test_a_change_shows_in_the_run_that_spends_more_and_inside_a_step() -> None:
    story, runs = story_of("gpt2_ddp", "gpt2_fsdp_full_shard")
    change = story.changes[0]
    assert change.part == "exposed_communication" and change.change_ns < 0
    assert "is gone" in change.why[0] and "AllReduce" in change.why[0]
    place = change.places[0]
    assert place.run == "gpt2_ddp"
    steps = runs[place.run].iterations.query(f"rank == {place.rank}")
    assert ((steps["start_ns"] <= place.start_ns) & (place.end_ns <= steps["end_ns"])).any()
    events = runs[place.run].events().query(f"rank == {place.rank} and event_class == 'communication'")
    covered = (events["start_ns"] < place.end_ns) & (place.start_ns < events["end_ns"])
    assert covered.any(), "a collective runs there"


def test_equal_runs_have_no_changes() -> None:
    trace = Trace.open(examples.path("gpt2_baseline"))
    runs = {"one": trace, "other": trace}
    story = run_story(runs, None, analysis.step_waterfall(runs), analysis.diff(runs))
    assert story.changes == [] and story.cause == "Every part takes the same time in both."
    assert story.runs[0].pieces == story.runs[1].pieces


def test_runs_that_cannot_be_compared_have_none() -> None:
    with pytest.raises(NotComparableError):
        story_of("h100_gpt2", "h100_decode")
