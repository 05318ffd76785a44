"""What the findings say about savings: checked against `what_if`, and against what an expert expects."""

import math
from functools import cache

import pandas as pd
import pytest

from hta_widgets import Trace, edits
from hta_widgets.analysis import overview, savings, what_if
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.judged_time import judged_scope
from hta_widgets.analysis.findings.rules import RULES
from hta_widgets.analysis.findings.saving import Saving
from hta_widgets.analysis.findings.savings import confidence_of
from hta_widgets.analysis.replay.expressions import parse_all
from hta_widgets.trace.scope import Scope
from tests.analysis.jobs import opened
from tests.first_lines import first_lines
from tests.support import EVERY_CASE, SOME_EXAMPLES, SOME_GPU_TRACES, shared_trace

# Several changes save something each.
SEVERAL = ["hta/trace_diff/test", "gpt2_fsdp_full_shard"]
if EVERY_CASE:
    SEVERAL += ["hta/nccl_parser_config", "kineto/resnet50_num_workers_0", "ddp_4ranks"]
AMONG_RANKS = {rule.topic for rule in RULES if rule.among_ranks}


@cache
def found(name: str) -> tuple[Trace, dict]:
    trace = opened(name)
    return trace, {row["topic"]: row for row in overview(trace).to_dict("records")}


@pytest.mark.parametrize("name", dict.fromkeys([*SOME_GPU_TRACES, *SOME_EXAMPLES, *SEVERAL]))
def test_a_saving_is_what_the_replay_of_its_edits_saves(name):
    trace, findings = found(name)
    for finding in findings.values():
        if finding["topic"] in AMONG_RANKS or finding["method"] not in ("replay", "bound"):
            assert not finding["edits"] and pd.isna(finding["saving_rank"])
            continue
        made = eval(finding["edits"], {"edits": edits, "math": math})
        assert parse_all(finding["edits"]) == tuple(made)
        rank = int(finding["saving_rank"])
        if len(trace.ranks) > 1:
            assert f"(rank {rank})" in finding["saving"]
        scope = judged_scope(trace)
        rows = what_if(trace, made, Scope(ranks=(rank,), iterations=scope.iterations))
        if rows["iteration"].notna().any():
            rows = rows[rows["iteration"].notna()]
        assert finding["saving_ns"] == (rows["before_ns"] - rows["after_ns"]).sum()
        assert finding["saving_pct"] == pytest.approx(100 * finding["saving_ns"] / rows["before_ns"].sum())
        assert finding["saving_low_ns"] <= finding["saving_ns"] <= finding["saving_high_ns"]
        assert (finding["method"] == "bound") == any(edit.bound for edit in made)
        if finding["topic"] == "idle_host" and len(trace.ranks) == 1:
            assert finding["saving_ns"] <= finding["cost_ns"]
        assert ("at most" in finding["saving"]) <= (finding["method"] == "bound")


def test_the_loader_that_holds_a_job_up_can_be_saved_whole():
    _, findings = found("single_gpu_dataloader_stall")
    stall = findings["data_stall"]
    assert stall["method"] == "replay"
    assert stall["saving"].startswith("Simulated without the data loader's time, the steps take 52")
    assert stall["saving_ns"] == pytest.approx(stall["cost_ns"], rel=0.02)


def test_a_cost_that_hides_another_saves_nothing():
    """All collectives gone, the recorded job takes as long: its host decides the time."""
    _, findings = found("hta/nccl_parser_config")
    exposed = findings["exposed_communication"]
    assert exposed["cost_ns"] > 0 and exposed["saving_ns"] < 0.005 * exposed["cost_ns"]
    assert "the steps take as long: something else then decides the time." in exposed["saving"]
    assert exposed["section"] == "not now"


def test_a_saving_that_is_less_than_the_steps_differ_is_not_called_nothing():
    """Two steps of 19.3 and 15.7 ms: the replay saves 13 % of them, less than they differ."""
    trace, findings = found("h100_gpt2")
    host = findings["idle_host"]
    rows = what_if(trace, [edits.host(0, exposed=True)], judged_scope(trace)).dropna(subset="iteration")
    before, after = (rows[name].sum() for name in ("before_ns", "after_ns"))
    assert before - after > 0.1 * before and rows["before_ns"].max() > 1.2 * rows["before_ns"].min()
    assert host["section"] == "unknown" and "differ from each other" in host["saving"]
    assert host["severity"] == "warning" and next(iter(findings)) == "compute_bound"  # it is not named first
    assert " of it is due to kernels launched too late, saving not estimated" in first_lines(trace)
    _, workers = found("h100_gpt2_loader_workers")  # the same job, its steps nearly equal
    assert workers["idle_host"]["section"] == "saves"
    assert "as long" not in "".join(findings[topic]["saving"] for topic in findings)


def test_what_another_rank_may_take_back_is_said():
    """A rank that arrives earlier at a collective waits there, unless its peers are earlier too."""
    _, findings = found("ddp_4ranks")
    assert ", if its peers gain as much." in findings["data_stall"]["saving"]


def test_a_recording_that_cannot_be_replayed_says_why():
    _, findings = found("tracelens/mi210/gpu_only_trace")
    host = findings["idle_host"]
    assert host["saving"].startswith("Saving not estimated: for 38.6 % of the time the critical path ")
    assert host["method"] == "" and pd.isna(host["saving_ns"])


def test_graphs_promise_nothing_where_graphs_run_already():
    _, findings = found("inference_cuda_graphs")
    topics = {"tiny_kernels", "launch_bound"} & findings.keys()
    assert topics
    for topic in topics:
        assert findings[topic]["section"] == "unknown" and pd.isna(findings[topic]["saving_ns"])
        assert "91.3 % of it lies inside replays of graphs" in findings[topic]["text"]
        assert findings[topic]["saving"] == (
            "Saving not estimated: most of it lies in graphs that are replayed already."
        )
        assert findings[topic]["risk"] == findings[topic]["needs"] == ""


@pytest.mark.parametrize("name", SEVERAL)
def test_savings_alone_one_after_the_other_and_together(name):
    """Each figure by a replay of its own, and the order by trying all that could come next."""
    trace, findings = found(name)
    frame = savings(trace)
    assert set(frame["topic"]) == {topic for topic, row in findings.items() if row["edits"]}
    for rank, rows in frame.groupby("rank"):

        def saved(*topics, rank=rank):
            made = [edit for topic in topics for edit in parse_all(findings[topic]["edits"])]
            whole = what_if(trace, made, Scope(ranks=(rank,))).iloc[0]
            return whole["before_ns"] - whole["after_ns"]

        topics = rows["topic"].tolist()
        together = [saved(*topics[: count + 1]) for count in range(len(topics))]
        assert rows["alone_ns"].tolist() == [saved(topic) for topic in topics]
        assert rows["together_ns"].tolist() == together
        assert rows["marginal_ns"].sum() == together[-1] >= rows["alone_ns"].max()
        for count, best in enumerate(topics):
            others = [saved(*topics[:count], other) for other in topics[count:]]
            assert saved(*topics[:count], best) == max(others)


def test_what_was_lost_before_the_step_that_is_selected_is_no_share_of_it():
    trace = opened("cases/i20_two_ranks_sync_after_step")
    late = overview(trace, Scope(iterations=(3,))).set_index("topic").loc["straggler"]
    assert (late["cost_ns"], late["share_pct"], late["confidence"]) == (400_000, 0.0, "low")


def test_nothing_found_saves_nothing():
    for name in ("hta/trace_filter", "hta/cpu_only"):
        frame = savings(Trace.open(shared_trace(name)))
        assert frame.empty and frame.columns[0] == "rank"


def test_what_saves_nothing_now_is_asked_again_after_the_first_changes():
    _, findings = found("hta/trace_diff/control")
    copies = findings["memory_copies"]
    assert copies["section"] == "not now" and copies["saving_pct"] < 0.5
    assert copies["saving"].endswith("Nor does it save anything after the first 2 changes above.")


@pytest.mark.parametrize(
    ("low", "estimate", "high", "error_pct", "method", "section", "confidence"),
    [
        (95, 100, 104, 0.0, "replay", "saves", "high"),
        (95, 100, 104, 0.1, "replay", "saves", "high"),  # the error is of all of the time: 1 of 1,000
        (95, 100, 104, 0.2, "replay", "saves", "medium"),
        (80, 100, 130, 0.0, "replay", "saves", "medium"),
        (80, 100, 131, 0.0, "replay", "saves", "low"),
        (0, 0, 20, 0.0, "replay", "not now", "high"),  # a tenth of what it costs
        (0, 0, 21, 0.0, "replay", "not now", "medium"),
        (0, 100, 100, 0.0, "bound", "saves", "low"),
        (0, 100, 100, 0.0, "analytic", "saves", "low"),
        (None, None, None, 0.0, "", "unknown", ""),
    ],
)
def test_how_well_a_saving_is_known(low, estimate, high, error_pct, method, section, confidence):
    finding = Finding(200, 20.0, "", "", "")
    saving = Saving("", section, low, estimate, high, method=method)
    assert confidence_of(finding, saving, error_pct) == confidence


@pytest.mark.parametrize("name", ["single_gpu_dataloader_stall", "gpt2_ddp"])
def test_each_saving_says_its_confidence_steps_and_what_it_needs(name):
    trace, findings = found(name)
    judged = len(judged_scope(trace).iterations)
    told = [finding for finding in findings.values() if finding["method"]]
    assert told
    for finding in told:
        assert finding["confidence"] in ("high", "medium", "low")
        assert finding["steps"] == judged
        assert finding["needs"].endswith(".")
    others = [finding for finding in findings.values() if not finding["method"]]
    assert {finding["confidence"] for finding in others} == {""}


def test_rules_are_complete():
    """Each topic stands once; needs, risks and what would make it wrong are sentences."""
    assert len({rule.topic for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule.title[0].isupper() and rule.question
        for text in (rule.needs, rule.risk, rule.wrong_if):
            assert not text or text.endswith("."), (rule.topic, text)
        if rule.change or rule.among_ranks:
            assert rule.needs, rule.topic
