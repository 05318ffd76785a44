"""The story of a job: its bar adds up, its savings are those of joint replays, its labels are true."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_widgets import Trace, edits, examples
from hta_widgets.analysis import overview, slowdown, temporal_breakdown, what_if
from hta_widgets.analysis.evidence.document import evidence
from hta_widgets.analysis.findings import judged_scope
from hta_widgets.analysis.findings.bar import CLASSES, Part, Whole, whole_of_step, whole_parts
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rules import BY_TOPIC, RULES
from hta_widgets.analysis.findings.shown_at import places_of
from hta_widgets.analysis.findings.story import Story, story, without_little
from hta_widgets.analysis.findings.story_advice import once_faster, why_late
from hta_widgets.analysis.job.edited import edited_job
from hta_widgets.analysis.job.trusted import trusted_model
from hta_widgets.analysis.replay.expressions import parse_all
from hta_widgets.errors import HtaWidgetsError
from hta_widgets.formatting import duration, percent
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.snapshot import story_picture
from tests.analysis.jobs import UNLIKE_JOBS, opened
from tests.support import EVERY_CASE, shared_input
from tests.verdicts.planted.host_program import Program
from tests.verdicts.planted.rank_programs import MS, AllReduce, Compute, Play, Step

SEVERAL_SAVE = (
    "ddp_4ranks",
    "hta/trace_diff/test",
    "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "tracelens/mi300/resnet_act_checkpoint.json.gz",
    "kineto/resnet50_num_workers_0",
)

SAVINGS = ("simulated", "bound")
TIME = r"\d[\d.]* (?:ns|\u00b5s|ms|s|min)\b"
TIMES = re.compile(TIME)


@pytest.mark.parametrize(
    ("part", "topic", "named"),
    [
        ({}, "straggler", True),
        ({"share_pct": 9.9}, "straggler", False),  # less than half of it
        ({"share_pct": 19.0, "part_of": ""}, "straggler", False),
        ({"rank": 2}, "straggler", False),  # a victim's
        ({"topic": "launch_bound"}, "straggler", False),  # only that it is late
        ({"topic": "memory_leak"}, "straggler", False),  # takes no time
        ({}, "slow_steps", False),  # no rank is waited for
    ],
)
def test_what_a_late_rank_does_meanwhile_is_most_of_it(part: dict[str, Any], topic: str, named: bool) -> None:
    late = {"topic": topic, "rank": 1, "part_of": "", "share_pct": 20.0}
    copies = {"topic": "memory_copies", "rank": 1, "part_of": topic, "share_pct": 10.0}
    frame = pd.DataFrame([late, copies | part])
    found = why_late(frame, frame.iloc[0])
    assert (None if found is None else found["topic"]) == ("memory_copies" if named else None)


def holds(told: Story) -> None:
    """What is true of every story."""
    assert told.headline and not told.headline.endswith(".")
    assert not re.search(r"is unknown: [A-Z][a-z]", told.headline)
    assert sum(part.ns for part in told.parts) == told.whole_ns
    assert all(part.ns >= 0 and part.lost_as in CLASSES for part in told.parts)
    assert bool(told.parts) == bool(told.whole_ns)
    assert not (told.parts and "where it goes is unknown" in told.headline)
    what = "remain" if told.saved else "per step" if told.per_step else "in all"
    assert not told.parts or told.remains.endswith(f" {what}")
    order = [part.form for part in told.parts]
    assert order == sorted(order, key=["simulated", "bound", "unknown", "hidden", "rest"].index) or (
        [form in SAVINGS for form in order] == sorted((form in SAVINGS for form in order), reverse=True)
    )
    for part in told.parts:
        assert (part.finding < 0) == (part.form == "rest")
        if part.finding >= 0:
            advice = told.advice[part.finding]
            assert advice.form == part.form and advice.lost_as == part.lost_as
    for advice in told.advice:
        assert (advice.what[0] and advice.todo and advice.sure and advice.figure) or advice.form == "memory"
        assert len(advice.noun.split()) <= 5
        assert not any(re.match(r"It lasts|\d.* lies? (?:there|in)\b", text) for text in advice.why)
        for place in advice.places:
            assert place.start_ns < place.end_ns and len(place.label) <= 60
    at_most = any(part.form == "bound" and part.ns for part in told.parts)
    assert ("at most" in told.saved) == at_most


@pytest.fixture(scope="module", params=dict.fromkeys([*UNLIKE_JOBS, *SEVERAL_SAVE]))
def job(request: pytest.FixtureRequest) -> tuple[Trace, pd.DataFrame, Story]:
    """A recording, for all tests before the next one: its findings, and its story."""
    try:
        trace = opened(request.param)
    except HtaWidgetsError as error:  # of several recordings in one folder one must be chosen
        pytest.skip(f"{request.param} is not one job: {error}")
    frame = overview(trace)
    return trace, frame, story(trace, None, frame)


def one_number(trace: Trace, frame: pd.DataFrame, told: Story) -> None:
    """A label, its segment, the sentences, the picture and the document give one value for one thing."""
    holds(told)
    rows = frame.set_index("topic")
    of_agents = evidence(trace)["findings"]
    costs = {each["id"]: each["cost"] for each in of_agents}
    drawn = story_picture(told.as_dict())
    assert drawn is not None and [segment.share for segment in drawn.segments] == [
        part.ns / told.whole_ns for part in told.parts
    ]
    parts = {part.finding: part for part in told.parts if part.finding >= 0}
    for at, advice in enumerate(told.advice):
        row = rows.loc[advice.topic]
        if costs.get(advice.topic, {}).get("unit") == "%":
            assert costs[advice.topic]["value"] == pytest.approx(row["share_pct"], abs=5e-4)
        numbers, in_card = (
            TIMES.findall(re.sub("nothing (left|more)", r"0 ns \1", text))
            for text in (advice.label, advice.figure)
        )
        if at not in parts:
            assert not told.whole_ns or not numbers
            continue
        assert numbers == in_card and numbers[0] == duration(parts[at].ns), (advice.label, parts[at])
        share = re.escape(percent(row["share_pct"]))
        in_text = re.search(rf"\b{share} of (?:step time|the time) \(({TIME})", row["text"])
        if advice.form not in SAVINGS and in_text:
            assert in_text[1] == numbers[-1], (advice.label, row["text"])
        if said := re.search(rf"(?:^|\. ){re.escape(advice.noun)}: (?:another )?({TIME})", told.limits):
            assert said[1] == numbers[0]
        for found in drawn.findings:
            assert found.number != at + 1 or found.label == advice.label
    one_order(frame, told, of_agents)


def one_order(frame: pd.DataFrame, told: Story, of_agents: list[dict[str, Any]]) -> None:
    """One change may save most by itself, and another more on top of it: all begin with the same one."""
    own = [row for row in frame.to_dict("records") if row["section"] == "saves" and not row["part_of"]]
    first = [row["topic"] for row in own]
    if len(first) < 2:
        return
    assert [each.topic for each in told.advice][: len(own)] == first
    listed, order = [each["id"] for each in of_agents], list(frame["topic"])
    assert listed == sorted(listed, key=order.index) and first[0] in listed
    better = [rule.better for each in told.advice if (rule := BY_TOPIC[each.topic]).better]
    named = [each.cause_words for each in told.advice if each.cause_words in told.headline]
    # where hardly anything else takes time
    assert named or " idles " in told.headline or any(f"with {each}" in told.headline for each in better)
    largest = sorted((part for part in told.parts if part.form in SAVINGS), key=lambda part: -part.ns)[:2]
    assert {*named} <= {told.advice[part.finding].cause_words for part in largest}
    assert [told.headline.index(each) for each in named] == sorted(map(told.headline.index, named))


def test_why_begins_with_a_reason_and_what_happens_has_the_amounts():
    late, loader = story(examples.load("ddp_4ranks")).advice
    assert late.why[0] == "Rank 2 computes longer (1.75 ms per step) than the others."
    assert not any("of all waiting" in text for text in late.what + late.why)  # all of it: no news
    assert any(text.startswith("Rank 2 holds the others up: ") for text in late.why)
    more = (
        r"Rank 2 spends 9\.3\d % of step time \([\d.]+ ms per step\) more than the others on the same kernels"
    )
    assert any(re.match(more, text) for text in late.what + late.why)
    assert any("the longest gap is " in text.lower() or " in one gap" in text for text in loader.what[1:])
    assert not any("longest gap" in text for text in loader.why)


def test_the_muted_line_does_not_say_again_what_the_headline_says():
    of_server = story(opened("tracelens/inference/vllm_decode_full"))
    assert of_server.limits.endswith("matrix products 11.5 %. Nothing to save stands out.")
    of_start = story(Trace.open(shared_input("recordings/vgg11_a100")))
    mostly = "Start-up, mostly the first call of aten::conv2d: 16.4 ms, which later steps do not have."
    assert of_start.limits == mostly


@pytest.mark.parametrize("job", ["inference_cuda_graphs", "continuous_batching", "h100_decode_cuda_graphs"])
def test_the_muted_line_of_a_server_is_its_rate_and_what_it_could_be(job):
    rate, time = r"[\d,]+ tokens per second in all\.", r"[\d.]+ [mµ]s"
    said = rf"{rate} {time} per step; it could be {time}(?: at best)? without [a-z ]+\."
    assert re.fullmatch(said, story(examples.load(job)).limits)


def test_every_surface_has_one_number_and_the_bar_adds_up_to_the_nanosecond(job, request):
    trace, frame, _ = job
    one_number(*job)
    several = (frame["section"] == "saves") & (frame["part_of"] == "")
    assert several.sum() > 1 or request.node.callspec.params["job"] not in SEVERAL_SAVE
    begin, end = trace.extent_ns
    parts = [
        Scope(window_ns=(begin + (end - begin) // 3, begin + (end - begin) // 2)),
        *(Scope(ranks=(rank,)) for rank in trace.ranks[:2]),
        *(Scope(iterations=(step,)) for step in trace.iterations["iteration"].unique().tolist()[:2]),
    ]
    at = request.node.callspec.indices["job"]  # by default a part of every other job, each kind in turn
    for part in parts if EVERY_CASE else parts[at // 2 % len(parts) :][: 1 - at % 2]:
        holds(story(trace, part))


def test_savings_are_those_of_all_changes_made_together(job):
    """Asked of `what_if` with the edits of the findings, which the bar is not."""
    trace, frame, told = job
    rows = frame[(frame["section"] == "saves") & (frame["part_of"] == "")]
    if (
        rows.empty
        or (rows["edits"] == "").any()
        or rows["saving_rank"].isna().any()
        or len(set(rows["saving_rank"])) > 1
    ):
        pytest.skip("its savings are not those of one rank")
    made = [edit for text in rows["edits"] for edit in parse_all(text.replace(", exposed=True", ""))]
    scope = judged_scope(trace)
    replayed = what_if(
        trace, made, Scope(ranks=(int(rows["saving_rank"].iloc[0]),), iterations=scope.iterations)
    )
    if replayed["iteration"].notna().any():
        replayed = replayed[replayed["iteration"].notna()]
    share = 1 - replayed["after_ns"].sum() / replayed["before_ns"].sum()
    saved = sum(part.ns for part in told.parts if part.form in SAVINGS)
    assert saved / told.whole_ns == pytest.approx(share, abs=2e-3)


def test_an_upper_bound_of_the_host_holds_for_a_host_of_any_speed(job):
    """Halving the host's time saved 40.0 % where "at most 34.8 %" was said."""
    trace, _, told = job
    late = [advice for advice in told.advice if "exposed=True" in advice.edits and advice.form in SAVINGS]
    if not late or len(trace.ranks) > 1:
        pytest.skip("the host is not late")
    assert late[0].form == "bound"
    scope = judged_scope(trace)
    saved = sum(part.ns for part in told.parts if part.form in SAVINGS)
    for speed in (0.5, 0.1):
        rows = what_if(trace, edits.host(speed), scope)
        rows = rows[rows["iteration"].notna()] if rows["iteration"].notna().any() else rows
        share = 1 - rows["after_ns"].sum() / rows["before_ns"].sum()
        assert share * told.whole_ns <= saved * 1.002


def test_a_repaired_rank_and_a_change_within_ranks_are_replayed_together():
    trace = examples.load("ddp_4ranks")
    frame = overview(trace)
    scope = judged_scope(trace)
    told = story(trace, None, frame)
    late, loader = told.parts[:2]
    job = slowdown(trace, scope).iloc[0]
    assert told.advice[0].noun == "Rank 2 is late" and told.advice[0].ranks[0] == 2
    assert late.ns / told.whole_ns == pytest.approx(frame["saving_pct"].iloc[0] / 100, abs=1e-4)
    model = trusted_model(trace, None, scope.iterations)
    plain = edited_job(trace, model, ())
    assert plain.time(()) == model.total == pytest.approx(job["time_ns"], abs=1)
    edited = edited_job(trace, model, parse_all(told.advice[1].edits))
    together = (model.total - edited.time((2,))) / model.total
    assert (late.ns + loader.ns) / told.whole_ns == pytest.approx(together, abs=1e-6)
    # together they save less than one by one, and more than each
    alone = (model.total - edited.time(())) / model.total + late.ns / told.whole_ns
    assert late.ns / told.whole_ns < together <= alone


def test_an_edit_that_changes_nothing_leaves_the_job_as_it_is():
    trace = examples.load("ddp_4ranks")
    model = trusted_model(trace, None, judged_scope(trace).iterations)
    same = edited_job(trace, model, (edits.without("nothing of this name"),))
    assert same.time(()) == pytest.approx(model.total, rel=1e-4)
    assert same.time((2,)) == pytest.approx(edited_job(trace, model, ()).time((2,)), rel=1e-3)
    faster = edited_job(trace, model, (edits.kernels(2.0),)).time(())
    assert 0.4 * model.total < faster < 0.7 * model.total


def test_an_upper_bound_is_no_less_than_what_was_simulated():
    """A late host is judged on top of the loader in the bar, and alone by its own replay."""
    stall, host = story(examples.load("h100_gpt2_loader_stall")).advice
    assert "Simulated" in stall.sure and "On top" not in stall.sure
    alone, less = re.findall(r"(\d[\d.]*) % less", host.sure)
    assert float(less) < float(alone) and "Upper bound" not in host.sure
    assert f"On top of the other savings, at most {less} % less: a CPU" in host.sure
    only = story(examples.load("h100_gpt2_small_batch")).advice[0]
    alone, most = re.findall(r"(\d[\d.]*) % less", only.sure)
    assert float(alone) <= float(most) and "Upper bound, " in only.sure


def test_what_is_hidden_is_replayed_once_more_without_the_first_limit():
    trace = opened("hta/nccl_parser_config")
    hidden = next(advice for advice in story(trace).advice if advice.topic == "exposed_communication")
    assert hidden.form == "hidden" and "saves nothing yet" in hidden.label and "at most" not in hidden.label
    scope = judged_scope(trace)
    base, both = (
        int(what_if(trace, made, scope)["after_ns"].iloc[1:].sum())
        for made in ([edits.host(0.5)], [edits.host(0.5), *parse_all(hidden.edits)])
    )
    told = "once the CPU is twice as fast" in hidden.sure
    assert told == (base - both >= 0.005 * base) and "(simulated)" in hidden.sure
    steps = {step: temporal_breakdown(trace, Scope(iterations=(step,))).iloc[0] for step in scope.iterations}
    most = max(steps, key=lambda step: steps[step]["communication_ns"])
    shortest = min(steps, key=lambda step: steps[step]["window_ns"])
    assert ("and is the shortest step" in hidden.sure) == (most == shortest)


def test_equal_steps_are_no_evidence_that_communication_is_hidden(tmp_path):
    """Each has as much communication and takes as long: none has most of it, and none is the shortest."""
    program = [
        operation
        for step in range(6)
        for operation in (Step(step), Compute("gemm", 5 * MS), AllReduce((0, 1), 2 * MS))
    ]
    told = story(Play({0: program, 1: program}).open(tmp_path)).advice
    hidden = next(advice for advice in told if advice.topic == "exposed_communication")
    assert hidden.form == "hidden" and "is the shortest step" not in hidden.sure


@pytest.mark.parametrize(
    ("host", "communication", "evidence"),
    [
        (8 * MS - 1_000, 3 * MS, False),  # it takes as long as the others
        (7 * MS, 2 * MS + 1_000, False),  # it has as much communication
        (7 * MS, 3 * MS, True),
    ],
)
def test_the_shortest_step_is_evidence_where_it_is_unlike_the_others(
    host: int, communication: int, evidence: bool, tmp_path: Path
):
    """The host takes 8 ms and decides; of these the device communicates for 2 ms."""
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            program.launch(4 * MS)
            program.launch(
                communication if number == 4 else 2 * MS, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
            )
            program.operator("aten::decode", host if number == 4 else 8 * MS)
            program.synchronise()
    told = story(program.open(tmp_path)).advice
    hidden = next(advice for advice in told if advice.topic == "exposed_communication")
    assert hidden.form == "hidden"
    assert ("Step 4 has the longest communication (3.00 ms), and is the shortest" in hidden.sure) == evidence


def test_a_step_is_told_by_itself_with_the_numbers_of_its_overview():
    trace = opened("hta/nccl_parser_config")
    step = int(judged_scope(trace).iterations[0])
    scope = Scope(iterations=(step,))
    told, frame = story(trace, scope), overview(trace, scope)
    assert told.narrowed and told.headline.startswith(f"Step {step}: ") and f"step {step}" in told.scope
    first = next(part for part in told.parts if part.form in SAVINGS)
    row = frame[frame["topic"] == told.advice[first.finding].topic].iloc[0]
    assert first.ns / told.whole_ns >= row["saving_pct"] / 100 - 0.01
    assert told.whole_ns != story(trace).whole_ns


def test_without_device_events_the_story_is_of_the_cpu():
    trace = Trace.open(shared_input("recordings/cpu_ddp_slow_rank2"))
    told = story(trace)
    cause = "the late rank 2 (aten::sort)"
    assert told.headline == f"701 ms per step; 547 ms of it is due to {cause}, saving not estimated"
    assert {part.lost_as for part in told.parts} == {"host"}
    late = told.advice[0]
    assert late.form == "unknown" and late.ranks == [2, 3]
    assert late.places[0].label.endswith("rank 3 waits for rank 2")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("hta/cpu_only", "operators"),
        ("hta/triton_example", "kernel_breakdown"),
        ("recordings/captures/sglang_decode", "operators"),
    ],
)
def test_where_nothing_can_be_judged_it_says_why_and_what_to_look_at(name, shown):
    told = story(opened(name))
    assert (told.nothing, told.look_at, told.advice) == ("Nothing could be judged", shown, [])
    assert told.unknown and all(check.name and check.remedy.startswith("Record") for check in told.unknown)


def test_operators_of_the_host_are_told_where_the_device_is_not_recorded():
    told = story(opened("recordings/cuda_guide_4080"))
    assert (
        told.headline
        == "5.60 s in all; operators on the CPU take 96.6 % of it, mostly aten::uniform_ (51.2 %)"
    )
    assert (told.nothing, told.look_at, told.advice) == (
        "Operators themselves take the time",
        "operators",
        [],
    )
    assert told.hint.startswith("Draw random numbers once")
    assert sum(part.ns for part in told.parts) == told.whole_ns > 5_000_000_000
    assert told.unknown[0].name == "No device events"


def test_where_nothing_is_found_kernels_are_to_be_looked_at():
    told = story(opened("h100_gpt2_small_batch_cuda_graphs"))
    assert (told.nothing, told.look_at) == ("Nothing to save stands out", "kernel_breakdown")


def test_idle_time_of_unknown_cause_is_not_passed_over():
    told = story(opened("cases/a07_device_clock_ahead"))
    assert told.headline == "1.00 ms per step; why the GPU is idle for 20.0 % of it is unknown"
    assert told.nothing == "Why the GPU is idle is unknown" and told.unknown
    assert "clock runs at least" in told.trust


def test_a_reason_is_given_once():
    told = story(opened("hta/cupti_profiler"))
    assert "94 launches recorded" in told.headline and told.trust.endswith("device use are withheld.")


def test_what_remains_of_almost_nothing_is_not_split():
    told = story(opened("recordings/mlu370"))
    assert told.headline.endswith("of the rest, the MLU idles 96.9 %, mostly in aten::normal_")
    assert "remains" not in told.limits


def test_nothing_found_says_what_the_time_goes_to():
    told = story(Trace.open(shared_input("recordings/gpumodel_a100_1")))
    assert "nothing to save stands out: the GPU computes" in told.headline
    assert not told.advice and told.parts[0].lost_as == "compute" and told.clean


def test_the_first_place_to_look_at_has_context_on_both_sides():
    trace = examples.load("single_gpu_dataloader_stall")
    places = story(trace).advice[0].places
    lengths = [place.end_ns - place.start_ns for place in places]
    assert len(places) > 1 and lengths[0] >= 0.85 * max(lengths)
    wait = story(examples.load("ddp_4ranks")).advice[0].places[0]
    assert wait.rank != 2 and wait.label.endswith("waits for rank 2")


def test_of_places_as_long_the_one_with_context_comes_first():
    trace = examples.load("ddp_4ranks")
    row = overview(trace).set_index("topic").loc["data_stall"].copy()
    row["topic"] = "data_stall"
    begin, end = trace.rank(0).device_span
    within = [0, begin + 1000, begin + 1950]
    for at_an_end in ([0, begin - 500, begin + 500], [0, end - 500, end + 500]):
        row["places"] = json.dumps([at_an_end, within])
        assert [place.start_ns for place in places_of(trace, row, "x", "idle")] == [within[1], at_an_end[1]]
    row["places"] = json.dumps([[0, begin - 500, begin + 5000], within])  # far longer: it comes first
    assert places_of(trace, row, "x", "idle")[0].start_ns == begin - 500


def test_parts_are_rounded_to_their_total():
    assert whole_parts({"compute": 1.0, "idle": 1.0, "memory": 1.0}, 100) == {
        "compute": 34,
        "idle": 33,
        "memory": 33,
    }
    assert whole_parts({"compute": 0.0, "idle": 0.0}, 3) == {"compute": 2, "idle": 1}
    assert sum(whole_parts({"compute": math.pi, "idle": math.e}, 10**9 + 7).values()) == 10**9 + 7


def test_causes_have_short_names():
    causes = [rule for rule in RULES if rule.role == "cause"]
    assert all(rule.label and rule.cause and len(rule.label.split()) <= 4 for rule in causes)


def test_what_the_headline_withholds_the_bar_does_not_show() -> None:
    said = story(Trace.open(shared_input("cases/b02_xpu_kernels_missing_copies_only"), cache=False))
    assert "where it goes is unknown" in said.headline and not said.parts
    assert "no complete step" in said.scope


@pytest.mark.parametrize(
    ("name", "lacks", "remedy"),
    [
        (
            "hta/cupti_profiler",
            "94 launches recorded, with counters in place of device events",
            "Record without",
        ),
        (
            "recordings/trace0_2080ti",
            "3 launches recorded, but no device events",
            "Record again: the device was",
        ),
    ],
)
def test_who_recorded_the_device_is_not_advised_to_record_it(name: str, lacks: str, remedy: str) -> None:
    (check,) = (each for each in story(opened(name)).unknown if "device events" in each.name)
    assert check.name == lacks and check.remedy.startswith(remedy)
    assert "ProfilerActivity" not in check.remedy


def test_replays_of_a_graph_do_not_run_at_once() -> None:
    """Nodes on 20 streams, each behind the one before, work 800 \u00b5s of each step of 1 ms."""
    said = story(Trace.open(shared_input("cases/c07_graph_many_streams"), cache=False))
    assert 0 < sum(part.ns for part in said.parts if part.form in SAVINGS) <= 200_000


@pytest.mark.parametrize(
    ("name", "computing"), [("g03_python_gc", 200_000), ("c01_stream_sync_row", 800_000)]
)
def test_what_remains_computes_no_more_than_was_recorded(name: str, computing: int) -> None:
    """A replay ends with the last kernel; that the GPU is idle after it, too, is a part of the step."""
    said = story(Trace.open(shared_input(f"cases/{name}"), cache=False))
    assert sum(part.ns for part in said.parts if part.lost_as == "compute") == computing


def test_a_device_is_called_what_it_is() -> None:
    trace = Trace.open(shared_input("recordings/mlu370"), cache=False)
    said = story(trace, None, overview(trace))
    whole = whole_of_step(Inputs(trace, Scope()))
    assert whole is not None and whole.device == "MLU" and "GPU" not in said.headline + said.limits


def test_of_several_recordings_the_one_that_is_open_is_named() -> None:
    folder = shared_input("recordings/three_experiments")
    for name in ("trace_06.json.gz", "trace_04.json.gz"):
        trace = Trace.open(folder, cache=False, recording=name)
        assert story(trace, None, overview(trace)).scope.endswith(f"per step, recording {name}, one of 3")
    alone = Trace.open(folder / "trace_04.json.gz", cache=False)
    assert "recording" not in story(alone, None, overview(alone)).scope


def found_of(cost_ns: int, method: str = "replay") -> pd.Series:
    return pd.Series({"cost_ns": cost_ns, "steps": 4, "method": method})


STEP = Whole(1_000_000, True, {"compute": 1_000_000}, "GPU")


@pytest.mark.parametrize(
    ("cost_us", "saves_pct", "method", "said"),
    [
        (170, 12.0, "replay", "120 µs per step"),
        (170, 32.3, "replay", "all of it"),  # what is hidden today shows then, too
        (170, 32.3, "bound", "up to all of it"),
        (170, 3.0, "bound", "up to 30.0 µs per step"),
    ],
)
def test_no_more_than_a_loss_is_saved_of_it(cost_us, saves_pct, method, said):
    assert once_faster(found_of(4_000 * cost_us, method), STEP, saves_pct) == said


def test_what_has_nothing_left_in_the_bar_is_no_advice():
    parts = [
        Part(300_000, "simulated", "compute", 0),
        Part(0, "simulated", "compute", 1),  # a saving, if none on top of others
        Part(5_000, "unknown", "idle", 2),
        Part(4_999, "hidden", "idle", 3),
        Part(744, "unknown", "host", 4),
        Part(10_000, "rest", "idle"),
        Part(679_257, "rest", "compute"),
    ]
    rows = [found_of(at) for at in range(6)]  # the last has no part: it is about memory
    kept, left = without_little(STEP, rows, parts)
    assert [row["cost_ns"] for row in kept] == [0, 1, 2, 5]
    assert [(part.ns, part.lost_as, part.finding) for part in left] == [
        (300_000, "compute", 0),
        (0, "compute", 1),
        (5_000, "idle", 2),
        (14_999, "idle", -1),
        (679_257, "compute", -1),
        (744, "host", -1),
    ]
    assert sum(part.ns for part in left) == sum(part.ns for part in parts)
    assert without_little(None, rows, []) == (rows, [])
