"""What is said of recordings, held against an expert's conclusions.

`experts.toml` is about ../shared/recordings, `own.toml` about the recordings in this repository.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from hta_widgets import examples
from hta_widgets.analysis.findings import CHECKED, OPEN, overview
from hta_widgets.trace import Trace
from tests.first_lines import first_lines
from tests.support import ROOT, shared_input
from tests.verdicts.test_verdicts import Judgement


def _read(name: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))


CONCLUSIONS = _read("experts.toml")
OF_OUR_OWN = _read("own.toml")
WITHIN = 3.0
TEXTS = ("headline", "text", "saving", "suggestion")


def held_against(name: str) -> Judgement:
    """Everything said of one of ../shared/recordings, against the expert's conclusion."""
    return _judged(CONCLUSIONS[name], shared_input(f"recordings/{name}"))


def own_held_against(name: str) -> Judgement:
    """The same of a recording of this repository."""
    beside = (ROOT / "examples" / "recording" / folder / name for folder in ("h100/run_1", "cpu"))
    folder = next((each for each in beside if each.is_dir()), None)
    return _judged(OF_OUR_OWN[name], folder or examples.path(name))


def _judged(expert: dict[str, Any], path: Path) -> Judgement:
    trace = Trace.open(path)
    frame = overview(trace)
    said = frame[~frame["severity"].isin((OPEN, CHECKED))]
    judged = said[said["section"] != "recording"]["topic"].tolist()
    found = Judgement(first_lines(trace, frame))
    first = judged[0] if judged else ""
    if first not in (expert["first"] or [""]):
        found.wrong.append(
            f"says {first or 'nothing'} first, not {' or '.join(expert['first']) or 'nothing'}"
        )
    found.wrong += [
        f"begins without {words!r}" for words in expert.get("line", ()) if words not in found.headline
    ]
    beside = said.loc[said["section"] == "recording", "topic"].tolist()
    found.silent += [topic for topic in expert.get("before", ()) if topic not in beside]
    found.silent += [topic for topic in expert.get("also", ()) if topic not in judged]
    shares = dict(zip(said["topic"], said["share_pct"], strict=True))
    for topic, share in expert.get("shares", {}).items():
        if abs(shares.get(topic, 0.0) - share) > expert.get("within", WITHIN):
            found.wrong.append(f"{topic} takes {shares.get(topic, 0.0):.1f} %, not {share}")
    texts = "\n".join([found.headline, *said[list(TEXTS)].to_numpy().ravel()])
    advice = "\n".join(said["suggestion"])
    found.partly += [f"name {words!r}" for words in expert.get("names", ()) if words not in texts]
    found.partly += [f"advise {words!r}" for words in expert.get("advice", ()) if words not in advice]
    everything = "\n".join([texts, *frame["suggestion"]])
    found.wrong += [f"says {words!r}" for words in expert.get("never", ()) if words in everything]
    if trace.ranks != expert.get("ranks", trace.ranks):
        found.wrong.append(f"opens ranks {trace.ranks}, not {expert['ranks']}")
    return found
