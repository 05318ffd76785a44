"""The document of each recording: its schema and size, the same bytes twice; all that it names exists."""

from __future__ import annotations

import json

import jsonschema
import pytest

from hta_widgets.analysis.evidence.document import SCHEMA_FILE
from hta_widgets.cli.opening import kept_open
from tests.claims.recordings import EXAMPLES, SHARED, path_of
from tests.evidence.command import ask, filled
from tests.evidence.quantities import strangers

SCHEMA = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))
NO_TRACE = 3


@pytest.mark.parametrize("name", [*EXAMPLES, *SHARED])
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
        assert strangers(document) == []
        assert sum(document["time"]["shares_pct"].values()) == pytest.approx(100, abs=0.01)
        mids = [
            finding["saving"]["mid"]["value"]
            for finding in document["findings"]
            if "mid" in finding["saving"]
        ]
        assert mids == sorted(mids, reverse=True)
        for finding in document["findings"]:
            assert finding["trust"] == "high" or finding["wrong_if"]
            refs = [event["ref"] for event in finding["evidence"]]
            lengths = [event["dur_ns"] for event in finding["evidence"]]
            assert lengths == sorted(lengths, reverse=True)
            if refs:
                events = ask("event", path, *refs, "--json", "-q").json["events"]
                assert [(each["ref"], each["event"]["dur_ns"]) for each in events] == list(
                    zip(refs, lengths, strict=True)
                )
            for run in finding["runs"]:
                answer = ask(*filled(run["argv"], path), "-q")
                assert answer.code == 0, (run, answer.err)
                assert answer.tokens <= 1.25 * run["about_tokens"], run
        forbidden = {veto["forbids"] for veto in document["trust"]["vetoes"]}
        if "savings" in forbidden:
            assert not mids
        if "everything" in forbidden:
            assert (document["trust"]["level"], document["findings"]) == ("none", [])
    assert ask("diagnose", path, "--json", "-q").out == done.out
