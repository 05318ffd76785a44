"""Prepares the traces and asks HTA about all collected cases while the first tests run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.parity import variants
from tests.parity.cases import CASES, FRACTIONAL, MEMORY_TIMELINE, ONLY, PAIRS, PLAIN, PLAIN_SKIPS, SLOW_SKIPS
from tests.parity.hta_side import VARIABLE, Observations, interpreter
from tests.parity.observe import QUESTIONS
from tests.parity.rounding import is_bounded
from tests.parity.sample import is_left_out, left_out
from tests.support import SHARED_TRACES

# The longest first, so that no process is left alone with one at the end.
LONGEST = ("trace_diff_", "pair-diff", "mi300_resnet", "resnet50", "ns_resolution_trace", "alexnet", "h100_")


@pytest.fixture(scope="session")
def requests_of(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Name -> what is asked, for everything whose files are there."""
    folder = tmp_path_factory.mktemp("whole")
    made: dict[str, dict[str, Any]] = {}
    whole: dict[str, Path] = {}
    for case in CASES:
        paths = {rank: SHARED_TRACES / path for rank, path in case.files}
        if not all(path.exists() for path in paths.values()):
            continue
        made[case.name] = {
            "files": {str(rank): str(path) for rank, path in paths.items()},
            # Where HTA rounds, what has no bound is asked on the whole copy alone.
            "skip": [name for name in QUESTIONS if not is_bounded(name)]
            if case.name in FRACTIONAL
            else SLOW_SKIPS.get(case.name, []),
        }
        for variant in ("whole", "plain"):
            is_copied = case.name in {"whole": FRACTIONAL, "plain": PLAIN}[variant]
            if not is_copied or is_left_out(f"{case.name}-{variant}"):
                continue
            documents = {rank: variants.load(path) for rank, path in paths.items()}
            if case.name in FRACTIONAL:
                variants.in_whole_units(documents.values())
            copies = {rank: folder / f"{case.name}-{variant}-{rank}.json" for rank in paths}
            for rank, document in documents.items():
                if variant == "plain":
                    variants.without_steps_and_waits(document)
                variants.write(document, copies[rank])
            if variant == "whole":
                whole |= {path: copies[rank] for rank, path in case.files}
            made[f"{case.name}-{variant}"] = {
                "files": {str(rank): str(path) for rank, path in copies.items()},
                "scale": 1000 if case.name in FRACTIONAL else 1,
                "skip": [
                    *(PLAIN_SKIPS if variant == "plain" else []),
                    *SLOW_SKIPS.get(f"{case.name}-{variant}", []),
                ],
            }
    for case, only in ONLY.items():
        for name in made.keys() & {case, f"{case}-whole"}:
            made[name]["skip"] = [question for question in QUESTIONS if question not in only]
    for number, (name, asked) in enumerate(made.items()):
        asked["sampled_out"] = [
            question for question in left_out(name, number) if question not in asked["skip"]
        ]
        asked["skip"] = [*asked["skip"], *asked["sampled_out"]]
    for name, pair in PAIRS.items():
        paths_of_pair = [SHARED_TRACES / path for path in pair]
        if all(path.exists() for path in paths_of_pair) and not is_left_out(f"pair-{name}"):
            made[f"pair-{name}"] = {"pair": [str(whole.get(path, SHARED_TRACES / path)) for path in pair]}
    if (SHARED_TRACES / MEMORY_TIMELINE).exists():
        made["memory"] = {"memory": str(SHARED_TRACES / MEMORY_TIMELINE)}
    return made


@pytest.fixture(scope="session")
def observations(
    request: pytest.FixtureRequest, requests_of: dict[str, dict[str, Any]]
) -> Iterator[Observations]:
    """HTA's answers, or a failure in CI and a skip elsewhere where HTA is not installed."""
    python = interpreter()
    if python is None:
        reason = f"no environment with HTA: run `make parity`, or name its interpreter in {VARIABLE}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    folder = Path(request.config.cache.mkdir("hta_answers"))  # type: ignore[union-attr]
    asked = Observations(python, folder)
    specs = [spec for item in request.session.items if (spec := getattr(item, "callspec", None))]
    wanted = {str(spec.params.get("job")) for spec in specs} & requests_of.keys()
    for name in sorted(wanted, key=lambda name: (not name.startswith(LONGEST), name)):
        asked.ask(name, requests_of[name])
    yield asked
    asked.close()
