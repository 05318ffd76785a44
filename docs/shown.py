"""What the pictures of panels say, written beside them, so that one that is older than its panel is found."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from docs.analysis_pages import EXAMPLE, answer_of, example_path
from hta_widgets import Trace
from hta_widgets.analysis import ANALYSES
from hta_widgets.analysis.findings.story import story

IMAGES = Path(__file__).parent / "images"
WRITTEN = IMAGES / "shown.json"
THEMES = ("light", "dark")


def words() -> dict[str, list[str]]:
    """Picture -> the words in it: the heading and the answer of a panel, the first screen of the explorer."""
    first = story(Trace.open(example_path(EXAMPLE)))
    causes = [text for advice in first.advice for text in (advice.title, advice.label)]
    panels = {
        f"panels/{kind}": [analysis.title, answer_of(kind)[1]]
        for kind, analysis in ANALYSES.items()
        if (IMAGES / f"panels/{kind}-light.webp").exists()
    }
    return {"explorer": [first.scope, first.headline, first.limits, *causes], **panels}


def write() -> None:
    """After the pictures were taken."""
    pictures = {name: {"words": said, "files": files(name)} for name, said in words().items()}
    WRITTEN.write_text(json.dumps(pictures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def files(name: str) -> list[str]:
    """What identifies the files of a picture, in both themes."""
    paths = [IMAGES / f"{name}-{theme}.webp" for theme in THEMES]
    return [hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in paths]
