"""A sentence stays if each of its numbers is a field; what does not is left out, and the rest still reads."""

from __future__ import annotations

import json

import pytest

from hta_widgets.analysis.core.claim import Claim, Text, say
from hta_widgets.analysis.evidence.prose import clipped, sentences, shares_of

SHARE = Claim("idle", 12.5, "%", "step time")
TIME = Claim("idle", 2_500_000, "ns/step")
NAME = Claim("call", "aten::copy_", "name")
PART = Claim("of_call", 60.0, "%", "idle", about={"call": "aten::copy_"})
RANK = Claim("late", (2,), "ranks")


def told(text: Text, *fields: Claim) -> str:
    """The sentences that stay where these claims are fields."""
    claims = [
        {**claim.as_dict(), "at": [at for other, at in text.places if other is claim]}
        for claim in text.claims
    ]
    known = [claim.value for claim in fields]
    return sentences(str(text), json.loads(json.dumps(claims)), lambda claim: claim["value"] in known, 320)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{rank} waits {share} ({time} per step).", "Rank 2 waits 12.5 %."),
        ("{rank} waits {share}; {time} at once.", "Rank 2 waits 12.5 %."),
        (
            "{rank} waits {share}. It waits {time} at once. Most is in {name}.",
            "Rank 2 waits 12.5 %. Most is in `aten::copy_`.",
        ),
        ("It waits {time}, which is {share}.", ""),
        ("{rank} waits {time}. It costs {share}. That is {name}.", ""),
        ("It waits {share}: {time} at once.", "It waits 12.5 %."),
        ("It waits {share} in {name} ({part}).", "It waits 12.5 % in `aten::copy_`."),
    ],
)  # fmt: skip
def test_what_stays(template: str, said: str) -> None:
    parts = {"rank": RANK, "share": SHARE, "time": TIME, "name": NAME, "part": PART}
    text = say(template, **{name: part for name, part in parts.items() if f"{{{name}}}" in template})
    assert told(text, SHARE).replace("rank 2", "Rank 2") == said
    every = told(text, SHARE, TIME, PART)
    assert str(TIME) in every or "{time}" not in template


def test_the_shares_of_names() -> None:
    claims = [claim.as_dict() for claim in (SHARE, NAME, PART)]
    assert shares_of(claims) == [{"what": "aten::copy_", "kind": "operator", "share_pct": 60.0}]


def test_places_are_those_of_nested_texts() -> None:
    inner = say("in {name}", name=NAME)
    text = say("{{}} {share} {inner}.", share=SHARE, inner=inner) + say(" Again {name}.", name=NAME)
    assert [str(text)[at:].startswith(str(claim)) for claim, at in text.places] == [True] * 3


def test_texts_are_cut_between_sentences_words_and_names() -> None:
    assert clipped("One. Two three.", 100) == "One. Two three."
    assert clipped("One. Two three.", 9) == "One."
    assert clipped("One two three", 9) == "One two…"
    assert clipped("Look at `a long name here` now", 20) == "Look at…"
