"""The linter itself: what it counts, and what it leaves alone."""

from __future__ import annotations

import pytest

from tests.voice.plain import house_words, numbers, sentences, words


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Rank 2 is late in every step.", 0),
        ("The others wait 2.77 of 19.0 ms for it.", 2),
        ("Ranks 0, 1 and 3 wait 14.6 % of step time (2.77 ms per step).", 2),
        ("Record steps after the warm-up: torch.profiler.schedule(wait=1, warmup=3, active=5).", 0),
        ("aten::_to_copy takes 1,201 calls and 3.64 s, up to 413 ms at a time.", 3),
        ("sm90_xmma_gemm_bf16 takes 1.12 times as long.", 1),
    ],
)
def test_numbers(sentence: str, expected: int) -> None:
    assert numbers(sentence) == expected


def test_words() -> None:
    assert words("Use torch.optim.AdamW(model.parameters(), fused=True) or torch.compile.") == 4
    assert words("one two three") == 3


def test_sentences() -> None:
    assert sentences("Rank 2 is late. The others wait 2.77 ms. 3 more wait.") == [
        "Rank 2 is late.",
        "The others wait 2.77 ms.",
        "3 more wait.",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where time goes cannot be told", ["told"]),
        ("Told once, kept twice, and all else", ["told", "kept", "all else"]),
        ("`kept` and {told} are code; untold and keep are other words", []),
    ],
)
def test_house_words(text: str, expected: list[str]) -> None:
    assert house_words(text) == expected
