"""The time left: told once it can be guessed, from what was done since the first report of anything done."""

from collections.abc import Sequence

from hta_widgets.pace import Pace


def said(*reports: tuple[float, float]) -> Sequence[str]:
    """What a pace says of (second, share done) after another."""
    seconds = iter([at for at, _ in reports])
    pace = Pace(lambda: next(seconds))
    return [pace.left(share) for _, share in reports]


def test_at_a_steady_pace_the_rest_takes_what_is_left_of_it() -> None:
    assert said((0, 0.1), (10, 0.3), (20, 0.5), (40, 0.9)) == [
        "",
        ", about 35 s left",
        ", about 25 s left",
        ", about 5 s left",
    ]


def test_long_waits_are_told_in_minutes() -> None:
    assert said((0, 0.01), (10, 0.02))[1] == ", about 17 min left"
    assert said((0, 0.0), (1, 0.5), (99, 0.7))[2] == ", about 3 min left"


def test_nothing_is_said_in_the_first_second_nor_at_the_end() -> None:
    assert said((0, 0.0), (5, 0.1), (5.9, 0.2), (9, 1.0)) == ["", "", "", ""]


def test_what_comes_before_anything_is_done_does_not_count() -> None:
    assert said((0, 0.0), (60, 0.0), (61, 0.2), (63, 0.6))[-1] == ", about 2 s left"


def test_work_that_stands_still_has_no_pace() -> None:
    assert said((0, 0.5), (100, 0.5)) == ["", ""]
