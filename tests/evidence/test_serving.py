"""What a document says of a server: the same numbers as the verdict, and none where nothing is known."""

from __future__ import annotations

import json

import pytest

from hta_widgets import Scope, examples
from hta_widgets.analysis.evidence.document import evidence
from hta_widgets.analysis.evidence.prose import rounded
from hta_widgets.analysis.findings.overview import overview

SERVERS = ["continuous_batching", "inference_cuda_graphs", "h100_decode", "h100_decode_cuda_graphs"]


@pytest.mark.parametrize("name", SERVERS)
def test_a_token_takes_as_long_as_the_verdict_says(name: str) -> None:
    trace = examples.load(name)
    (rate,) = overview(trace).query("topic == 'serving_rate'").to_dict("records")
    claims = {claim["measure"]: claim for claim in json.loads(rate["claims"])}
    served = evidence(trace, Scope())["serving"]
    (phase,) = [
        each for each in served["phases"] if each["phase"] == claims["serving_period"]["about"]["phase"]
    ]
    assert phase["tpot_ns"] == rounded(claims["serving_period"]["value"])
    assert phase["works_pct"] == rounded(claims["serving_works"]["value"])
    assert round(phase["tokens_per_s"]) == pytest.approx(claims["serving_tokens"]["value"], abs=1)


def test_what_serves_nobody_has_no_phases() -> None:
    assert evidence(examples.load("gpt2_baseline"), Scope())["serving"] is None
