"""The document of each recording: schema, size, the same bytes however it is asked; and all it names exists.

By default one of each kind of document; `HTA_WIDGETS_EVERY_CASE=1` takes every recording.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hta_widgets import TraceExplorer
from hta_widgets.analysis.evidence.budget import dumped
from hta_widgets.analysis.evidence.document import SCHEMA_FILE, evidence
from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.story import story
from hta_widgets.cli.mcp_answers import Roots, answered
from hta_widgets.cli.mcp_tools import TOOLS
from hta_widgets.cli.opening import kept_open
from hta_widgets.trace.model import Trace
from tests.claims.recordings import EXAMPLES, SHARED, path_of
from tests.evidence.command import Answer, ask, filled
from tests.evidence.quantities import strangers, strangers_of_page
from tests.support import EVERY_CASE, ROOT, SHARED_TRACES
from tests.verdicts.recordings import RECORDINGS

SCHEMA = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))
NO_TRACE = 3
FOLDERS = [f"traces/{name}" for name in RECORDINGS if (SHARED_TRACES / name).is_dir()]
EVERY = [*EXAMPLES, *SHARED, *FOLDERS]
# Many ranks, a server, no device, savings that are withheld, and what is no trace.
SAMPLE = [
    name
    for name in EVERY
    if name
    in {
        "ddp_4ranks",
        "traces/hta/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz",
        "traces/tracelens/inference/vllm_decode_full/graph_execution.json.gz",
        "cases/a07_device_clock_ahead",
        "cases/c09_pftrace",
        "cases/i18_sync_after_step",
    }
]


@pytest.mark.parametrize("name", EVERY if EVERY_CASE else SAMPLE)
def test_a_recording(name: str) -> None:
    path = path_of(name)
    with kept_open(1):
        done = ask("diagnose", path, "--json", "-q")
        if done.code == NO_TRACE:
            assert done.out == "" and done.err.startswith("hta-widgets: ")
            return
        assert (done.code, done.err) == (0, "")
        document = done.json
        assert [error.message for error in SCHEMA.iter_errors(document)] == []
        assert document["more"]["tokens"] == done.tokens <= 4000
        assert str(path) not in done.out
        check_prose(document, ask("diagnose", path, "-q").out)
        check_numbers(document)
        check_order(document, path)
        for finding in document["findings"]:
            assert finding["trust"] == "high" or finding["wrong_if"]
            check_events(finding, path)
            for run in finding["runs"]:
                answer = ask(*filled(run["argv"], path), "-q")
                assert answer.code == 0, (run, answer.err)
                assert answer.tokens <= 1.25 * run["about_tokens"], run
        check_vetoes(document)
        check_server(document, done, path)
    again = Trace.open(path)
    assert f"{dumped(evidence(again))}\n" == done.out
    assert TraceExplorer(again, panels=[]).wait().to_markdown() == ask("diagnose", path, "-q").out
    headline = story(again).headline  # of the first screen
    assert document["verdict"].replace("`", "") == f"{headline.replace('`', '')}."


def check_prose(document: dict[str, Any], page: str) -> None:
    """No number stands in prose that no field holds."""
    assert strangers(document) == []
    assert strangers_of_page(page, document) == []
    assert page.replace("\\", "").startswith(f"**{document['verdict']}**\n")


def check_order(document: dict[str, Any], path: Path) -> None:
    """That of the overview: what saves something now comes by its saving."""
    rows = overview(Trace.open(path))
    order, saving = rows["topic"].tolist(), set(rows.loc[rows["section"] == "saves", "topic"])
    listed = [each["id"] for each in document["findings"]]
    assert listed == sorted(listed, key=order.index)
    mids = [
        each["saving"]["mid"]["value"]
        for each in document["findings"]
        if each["id"] in saving and "mid" in each["saving"]
    ]
    assert mids == sorted(mids, reverse=True)


def check_numbers(document: dict[str, Any]) -> None:
    assert sum(document["time"]["shares_pct"].values()) == pytest.approx(100, abs=0.01)
    whole, parts = document["bar"]["whole"], document["bar"]["parts"]
    assert not parts or sum(part["ns"] for part in parts) == whole["value"]
    saving = [part["finding"] for part in parts if part["form"] in ("simulated", "bound")]
    together, reachable = document["together"], document["bar"]["reachable"]
    assert (together["findings"] if together else []) == (saving if len(saving) > 1 else [])
    if together:  # by as much the bar falls to what is reachable
        left = 100 * reachable["value"] / whole["value"]
        assert together["saving_at_most"]["value"] == pytest.approx(100 - left, abs=0.01)
    mids = [each["saving"]["mid"]["value"] for each in document["findings"] if "mid" in each["saving"]]
    assert min(mids, default=0) >= 0
    for finding in document["findings"]:
        saving = finding["saving"]
        assert "mid" not in saving or (
            saving["low"]["value"] <= saving["mid"]["value"] <= saving["high"]["value"] <= 100
        )
        assert saving["method"] != "none" or saving["unknown_because"]


def check_events(finding: dict[str, Any], path: Path) -> None:
    """Every event exists, with the length that is stated, the longest first."""
    refs = [event["ref"] for event in finding["evidence"]]
    lengths = [event["dur_ns"] for event in finding["evidence"]]
    assert lengths == sorted(lengths, reverse=True)
    if refs:
        events = ask("event", path, *refs, "--json", "-q").json["events"]
        found = [(each["ref"], each["event"]["dur_ns"]) for each in events]
        assert found == list(zip(refs, lengths, strict=True))


def check_vetoes(document: dict[str, Any]) -> None:
    """What is forbidden is not stated, and nothing is to be run that would state it."""
    forbidden = {veto["forbids"] for veto in document["trust"]["vetoes"]}
    findings = document["findings"]
    if "savings" in forbidden:
        assert not any("mid" in each["saving"] for each in findings) and document["together"] is None
        assert document["bar"]["reachable"] is None
        assert not any(run["verb"] == "what-if" for each in findings for run in each["runs"])
    if "everything" in forbidden:
        assert (document["trust"]["level"], findings) == ("none", [])


def check_server(document: dict[str, Any], done: Answer, path: Path) -> None:
    """The tools of the server answer as the commands do, byte for byte."""
    roots = Roots.of([str(path)], False)
    given: dict[str, Any] = {"path": str(path), "budget": 4000}
    assert answered(roots, TOOLS["diagnose"], given) == (done.out, False)
    for finding in document["findings"][:1]:
        for run in finding["runs"]:
            words = {word: run["argv"][at + 1] for at, word in enumerate(run["argv"]) if word[:2] == "--"}
            scope = {name: words[f"--{name}"] for name in document["scope"] if words.get(f"--{name}")}
            given = {"path": str(path), "budget": run["about_tokens"]}
            if run["verb"] == "analyze":
                given |= {"kind": run["argv"][2], "scope": scope}
            elif run["verb"] == "what-if":
                given |= {"findings": [finding["id"]], "scope": scope}
            elif run["verb"] == "event":
                given |= {"refs": [finding["evidence"][0]["ref"]]}
            answer = ask(*filled(run["argv"], path), "-q")
            tool = TOOLS[run["verb"].replace("-", "_")]
            assert answered(roots, tool, given) == (answer.out, False), run


def test_another_process_without_a_cache_gives_the_same_bytes() -> None:
    """Whatever order sets of texts have there."""
    names = (EVERY if EVERY_CASE else SAMPLE)[::5]
    lines = [
        "import sys",
        "from hta_widgets.cli import main",
        "for path in sys.argv[1:]:",
        "    main(['diagnose', path, '--json', '-q'])",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines), *(str(path_of(name)) for name in names)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "43", "HTA_WIDGETS_CACHE": "off"},
        capture_output=True,
        check=True,
        text=True,
        encoding="utf-8",
    )
    assert done.stdout == "".join(ask("diagnose", path_of(name), "--json", "-q").out for name in names)


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("It waits 12.5 % of step time.", 0),
        ("It waits 12.6 % of step time.", 1),
        ("Rank 7 waits 2.5 ms in `gemm_64x64`.", 0),
        ("It waits 7 times.", 1),
        ("It launches 31 kernels.", 1),
        ("Ranks 3 and 7 wait 12.5 %.", 0),
    ],
)
def test_numbers_that_no_field_holds_are_found(text: str, strange: int) -> None:
    finding = {"claim": text, "cost": {"value": 12.5, "unit": "%"}, "evidence": [{"dur_ns": 2_500_000}]}
    document = {
        "verdict": "", "trust": {"vetoes": []}, "recording": {}, "scope": {}, "time": {},
        "findings": [{**finding, "saving": {}}, {"claim": "", "saving": {}, "cost": {"value": 31}}],
    }  # fmt: skip
    assert len(strangers(document)) == strange
