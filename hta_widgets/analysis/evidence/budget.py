"""A document within a number of tokens: what is left out first, and what never is."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

DEFAULT_TOKENS: Final = 4000
_LETTERS: Final = 4  # of a token


def dumped(value: Any) -> str:
    """`value` as JSON in ASCII: safe on every terminal, whatever names contain."""
    return json.dumps(value, allow_nan=False).replace("\x7f", "\\u007f")


def tokens_of(text: str) -> int:
    """About how many tokens a text takes."""
    return -(-len(text) // _LETTERS)


def fitted(document: dict[str, Any], budget: int) -> dict[str, Any]:
    """The document within the budget, its own size in `more.tokens`.

    First the evidence beyond the first event of each finding is left out, then the commands beyond the first,
    then findings from the end, then the rules that found nothing; never trust, verdict and what is unknown.

    Raises:
        ValueError: what is never left out takes more, or the budget is none.
    """
    if not 0 < budget <= DEFAULT_TOKENS:
        raise ValueError(f"a budget is a number of tokens from 1 to {DEFAULT_TOKENS:,}, not {budget:,}")
    document = copy.deepcopy(document)
    for leave_out in _ways(document):
        _sized(document)
        if document["more"]["tokens"] <= budget:
            return document
        leave_out()
    raise ValueError(
        f"a budget of {budget:,} tokens is too small: trust, verdict and what is unknown alone take "
        f"{_sized(document):,}"
    )


def _ways(document: dict[str, Any]) -> Iterator[Callable[[], object]]:
    findings: list[dict[str, Any]] = document["findings"]
    for part in ("evidence", "runs"):
        for finding in reversed(findings):
            yield lambda part=part, finding=finding: finding.update({part: finding[part][:1]})  # type: ignore[misc]
    while findings:
        yield lambda: _without_last(document)
    yield lambda: document.update(checked=[], together=None)
    yield lambda: None


def _without_last(document: dict[str, Any]) -> None:
    document["findings"].pop()
    document["more"]["findings_left_out"] += 1
    together = document["together"]
    left = {finding["id"] for finding in document["findings"]}
    if together and not left.issuperset(together["findings"]):
        document["together"] = None


def _sized(document: dict[str, Any]) -> int:
    """The size of the document, which holds that number itself."""
    more = document["more"]
    for _ in range(3):
        more["tokens"] = tokens_of(dumped(document) + "\n")
    return int(more["tokens"])
