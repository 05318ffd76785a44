"""Keeps today's answers, and prints those that were others before: ``python -m tests.answers --update``."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.answers.columns import Column
from tests.answers.questions import answers
from tests.answers.recordings import ASKED, path_of
from tests.answers.stored import KEPT, Stored, changed, digests, read, write
from tests.support import ROOT, SHARED_TRACES

_MOST_LINES = 12  # of a column
Pair = tuple[str, str]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.answers", description=__doc__)
    parser.add_argument("--update", action="store_true", help="keep the answers of today")
    parser.add_argument("--against", default="HEAD", help="whose answers are shown beside them")
    parser.add_argument("--dump", metavar="FILE", help="only write the answers to RECORDING:AREA ... there")
    parser.add_argument("pairs", nargs="*", metavar="RECORDING[:AREA]", help="only these")
    given = parser.parse_args()
    pairs = [pair for pair in ASKED if path_of(pair[0]).exists() and _is_wanted(pair, given.pairs)]
    now = {pair: answers(pair[1], path_of(pair[0])) for pair in pairs}
    if given.dump:
        plain = {":".join(pair): _plain(found) for pair, found in now.items()}
        Path(given.dump).write_text(json.dumps(plain), encoding="utf-8")
        return 0
    others = [pair for pair in pairs if changed(*pair, now[pair])]
    if given.update:
        _keep(now, whole=not given.pairs)
    if others:
        _print_changes(others, now, _answers_of(given.against, others))
    print(f"{len(others)} of {len(pairs)} differ from what was kept")
    return 0 if given.update else bool(others)


def _is_wanted(pair: Pair, chosen: list[str]) -> bool:
    return not chosen or pair[0] in chosen or ":".join(pair) in chosen


def _plain(found: dict[str, dict[str, Column]]) -> dict[str, dict[str, tuple[str, ...]]]:
    return {
        q: {name: (one.dtype, *one.values) for name, one in columns.items()} for q, columns in found.items()
    }


def _keep(now: dict[Pair, dict[str, dict[str, Column]]], whole: bool) -> None:
    """Put these in the place of what was kept; recordings that are not here keep their lines."""
    for prose, path in KEPT.items():
        stored: Stored = read(path)
        asked = set(now) | ({pair for pair in ASKED if path_of(pair[0]).exists()} if whole else set())
        known = {recording for recording, _ in ASKED}
        for question, lines in stored.items():
            for recording in [*lines]:
                if (recording, question.partition("/")[0]) in asked or (whole and recording not in known):
                    del lines[recording]
        for (recording, area), found in now.items():
            for question, columns in digests(area, found, prose).items():
                if columns:
                    stored.setdefault(question, {})[recording] = columns
        write(path, stored)


def _answers_of(revision: str, pairs: list[Pair]) -> dict[str, dict[str, dict[str, list[str]]]]:
    """What the code of a revision answers to these, as JSON; nothing where it knows no answers."""
    with TemporaryDirectory() as name:
        folder, dumped = Path(name), Path(name, "dumped.json")
        archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True)
        subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
        for built in ("hta_widgets/jit/portable_code", "hta_widgets/widgets/static"):
            if (ROOT / built).exists():
                shutil.copytree(ROOT / built, folder / built, dirs_exist_ok=True)
        environment = {"PYTHONPATH": str(folder), "HTA_WIDGETS_TRACES": str(SHARED_TRACES.resolve())}
        asked = [":".join(pair) for pair in pairs]
        argv = [sys.executable, "-m", "tests.answers", "--dump", str(dumped), *asked]
        done = subprocess.run(argv, cwd=folder, env=os.environ | environment, check=False)
        return json.loads(dumped.read_text(encoding="utf-8")) if done.returncode == 0 else {}


def _print_changes(
    pairs: list[Pair],
    now: dict[Pair, dict[str, dict[str, Column]]],
    before: dict[str, dict[str, dict[str, list[str]]]],
) -> None:
    for pair in pairs:
        new, old = _plain(now[pair]), before.get(":".join(pair), {})
        for question in dict.fromkeys((*old, *new)):
            was, now_there = old.get(question, {}), new.get(question, {})
            for column in dict.fromkeys((*was, *now_there)):
                one, other = [*was.get(column, ())], [*now_there.get(column, ())]
                lines = [*unified_diff(one, other, lineterm="", n=0)][2:]
                if lines:
                    print(f"\n{pair[1]}/{question} of {pair[0]}: {column}")
                    print("\n".join(f"  {line}" for line in lines[:_MOST_LINES]))
                    if len(lines) > _MOST_LINES:
                        print(f"  ... and {len(lines) - _MOST_LINES} lines more")


if __name__ == "__main__":
    raise SystemExit(main())
