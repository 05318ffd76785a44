"""What the screen says of a recording: at most 25 words and two numbers a sentence, no word of the house.

Places that may say more are listed in `exceptions.toml`, each with its reason; one that nobody needs any more
fails the last test.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets import Trace
from hta_widgets.analysis import ANALYSES
from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.story import Story, story
from hta_widgets.errors import MissingDataError, TraceFormatError
from tests.analysis.test_registry import speaks
from tests.claims.recordings import EXAMPLES, ONE_OF_EACH, SHARED, UNLIKE, path_of
from tests.support import EVERY_CASE
from tests.voice.plain import MOST_NUMBERS, MOST_WORDS, house_words, numbers, sentences, words

pytestmark = pytest.mark.slow

COLUMNS = ("title", "headline", "text", "saving", "suggestion", "risk", "needs", "wrong_if")
EXCEPTIONS = tomllib.loads((Path(__file__).parent / "exceptions.toml").read_text(encoding="utf-8"))
ALLOWED = {
    (place, limit)
    for group in EXCEPTIONS.values()
    for place, limits in group["places"].items()
    for limit in limits
}
# by default one of each kind, and those of which something is stated that is stated of no other
NAMES = [*EXAMPLES, *SHARED] if EVERY_CASE else UNLIKE
# whose panels are read, too
PANELS = {*EXAMPLES} if EVERY_CASE else {*EXAMPLES} & {*ONE_OF_EACH}
needed: set[tuple[str, str]] = set()
read: set[str] = set()


def of_findings(frame: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Place -> text of each finding: its topic and column."""
    for row in frame[["topic", *COLUMNS]].itertuples(index=False):
        yield from ((f"{row.topic}.{column}", getattr(row, column)) for column in COLUMNS)


def of_story(shown: Story) -> Iterator[tuple[str, str]]:
    """What the first screen says beside them."""
    for name in ("scope", "headline", "limits", "trust", "saved", "remains"):
        yield f"story.{name}", getattr(shown, name)
    for advice in shown.advice:
        yield from ((f"advice.{name}", getattr(advice, name)) for name in ("title", "noun", "label", "own"))
        yield f"{advice.topic}.sure", advice.sure


def of_panels(trace: Trace) -> Iterator[tuple[str, str]]:
    """The sentence of each panel, or why it has none."""
    for kind, analysis in ANALYSES.items():
        try:
            said = analysis.said(analysis.answer(trace), trace)
            speaks(said)
            yield f"panel.{kind}", said
        except MissingDataError as missing:
            yield f"panel.{kind}", str(missing)


def too_long(place: str, text: str) -> Iterator[str]:
    """The sentences beyond what their place allows."""
    for sentence in sentences(text):
        for limit, many, most in (
            ("words", words(sentence), MOST_WORDS),
            ("numbers", numbers(sentence), MOST_NUMBERS),
        ):
            if many > most:
                needed.add((place, limit))
                if (place, limit) not in ALLOWED:
                    yield f"{place}: {many} {limit}: {sentence}"


@pytest.mark.parametrize("name", NAMES)
def test_a_recording(name: str) -> None:
    read.add(name)
    try:
        trace = Trace.open(path_of(name))
    except TraceFormatError as error:
        assert not house_words(str(error))
        return
    frame = overview(trace)
    texts = [*of_findings(frame), *of_story(story(trace, frame=frame))]
    texts += of_panels(trace) if name in PANELS else ()
    for column in ("detail", "remedy"):
        texts += [(f"health.{check}", text) for check, text in trace.health[["check", column]].to_numpy()]
    assert len(texts) > len(COLUMNS)
    assert [f"{place}: {text}" for place, text in texts if house_words(text)] == []
    assert [slip for place, text in texts for slip in too_long(place, text)] == []


def test_every_exception_is_needed() -> None:
    if read != {*EXAMPLES, *SHARED} or not SHARED:
        pytest.skip("not all recordings were read: some of ../shared are missing, or not all tests ran")
    assert ALLOWED - needed == set()
