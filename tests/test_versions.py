"""One version everywhere, and a changelog that says of each version when it came and what users notice."""

from __future__ import annotations

import datetime
import json
import re
import tomllib

import hta_widgets
from tests.support import ROOT

MOST_LINES = 80
VERSION = re.compile(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
VERSIONS: list[tuple[str, str, str]] = VERSION.findall(CHANGELOG)


def test_the_version_is_the_same_everywhere() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    front_end = json.loads((ROOT / "js/package.json").read_text(encoding="utf-8"))["version"]
    locked = json.loads((ROOT / "js/package-lock.json").read_text(encoding="utf-8"))
    assert {
        hta_widgets.__version__,
        stated,
        front_end,
        locked["version"],
        locked["packages"][""]["version"],
    } == {VERSIONS[0][0]}


def test_versions_have_a_date_and_come_newest_first() -> None:
    headings = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    assert headings == [f"{version} - {date}" for version, date, _ in VERSIONS]
    dates = [datetime.date.fromisoformat(date) for _, date, _ in VERSIONS]
    assert dates == sorted(dates, reverse=True)


def test_a_version_is_read_in_a_minute() -> None:
    assert not [version for version, _, body in VERSIONS if len(body.splitlines()) >= MOST_LINES]
