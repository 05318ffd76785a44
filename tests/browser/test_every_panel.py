"""Every panel at once, on recorded jobs of every kind: each answers, or says what it lacks."""

import ast

import pytest
from playwright.sync_api import expect

from hta_widgets.widgets.panels import available_panels
from tests.browser.lab import TIMELINE, Lab
from tests.support import EVERY_CASE, shared_trace

pytestmark = pytest.mark.browser

KINDS = [entry["kind"] for entry in available_panels()]
# Each panel that one of all the jobs answers, one of these answers. Once a week each job shows all panels.
JOBS = {
    "nvidia, 2 ranks": "hta/trace_filter",
    "amd": "tracelens/mi300/resnet_act_checkpoint.json.gz",
    "host only": "hta/cpu_only",
    "sglang": "tracelens/inference/sglang_decode",
}
if EVERY_CASE:
    JOBS |= {"mtia": "hta/mtia_inference_trace", "vllm": "tracelens/inference/vllm_decode_full"}
TEXTS = "(panels) => panels.map((panel) => [panel.dataset.kind, panel.textContent])"
STATES = "{kind: (part.status, part.message) for kind, part in explorer._shown.items()}"


@pytest.fixture(scope="module")
def answered() -> set[str]:
    """The panels that a job has answered: the next one shows the others."""
    return set()


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_every_panel_answers(lab: Lab, answered: set[str], job: str) -> None:
    whole = EVERY_CASE or not answered or job == JOBS["host only"]
    kinds = KINDS if whole else [kind for kind in KINDS if kind not in answered]
    lab.open_code(
        f"from hta_widgets import TraceExplorer\n"
        f"explorer = TraceExplorer({str(shared_trace(job))!r}, panels={kinds})\nexplorer",
        name="every_panel.ipynb",
    )
    root = lab.page.locator(".hta:has(> .hta-explorer)")
    expect(root.locator(TIMELINE)).to_be_visible(timeout=60_000)
    expect(root.locator("[data-area=panel]")).to_have_count(len(kinds), timeout=60_000)
    lab.expect_kernel("any(part.status == 'busy' for part in explorer._shown.values())", False, seconds=90)
    expect(root.locator(".hta-busy")).to_have_count(0, timeout=60_000)
    states = ast.literal_eval(lab.kernel(STATES))
    assert {kind: text for kind, (state, text) in states.items() if state not in ("idle", "empty")} == {}
    # what a panel lacks is said in the page, with what would record it
    seen = dict(root.locator(".hta-panel").evaluate_all(TEXTS))
    lacks = {kind: text for kind, (state, text) in states.items() if state == "empty"}
    assert {kind: text for kind, text in lacks.items() if text not in seen[kind]} == {}
    answers = {kind for kind, (state, _) in states.items() if state == "idle"}
    assert len(answers) >= (15 if whole and job != JOBS["host only"] else 3)
    answered |= answers
    lab.expect_no_errors()
    lab.shot(f"every-panel-{job.replace('/', '-')}", root)
