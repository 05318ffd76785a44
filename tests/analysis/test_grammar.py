"""What a sentence counts agrees with its number: nouns and verbs, for none, one and two of each."""

import re
from contextlib import suppress
from functools import cache
from itertools import islice, product

import numpy as np
import pandas as pd
import pytest

from docs.analysis_pages import example_of, example_path
from hta_widgets import Trace, examples
from hta_widgets.analysis import ANALYSES, COMPARISONS
from hta_widgets.analysis.compare.waterfall import STEP
from hta_widgets.analysis.findings.rules import RULES
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import counted
from tests.support import EVERY_CASE, shared_trace

NOUNS = {
    "bucket": "buckets", "call": "calls", "cause": "causes", "collective": "collectives",
    "element": "elements", "entry": "entries", "event": "events", "file": "files", "gap": "gaps",
    "group": "groups", "iteration": "iterations", "kernel": "kernels", "launch": "launches",
    "line": "lines", "operation": "operations", "parameter": "parameters", "rank": "ranks", "run": "runs",
    "sequence": "sequences", "step": "steps", "time": "times", "unit": "units",
}  # fmt: skip
VERBS = {
    "cost": "costs", "differ": "differs", "do": "does", "are": "is", "were": "was", "have": "has",
    "launch": "launches", "stand": "stands", "take": "takes", "wait": "waits",
}  # fmt: skip
_BESIDES = "communication|device|distinct|launch|more|operator|process|uneven"
_NOUN = "|".join([*NOUNS.values(), *NOUNS])
_VERB = "|".join([*VERBS.values(), *VERBS])
_COUNTED = re.compile(
    r"(?<![\w.,])(?P<number>None|\d[\d,]*)(?: of (?P<whole>\d[\d,]*))? "
    rf"(?:(?:{_BESIDES}) )*(?P<noun>{_NOUN})\b"
    rf"(?: (?P<verb>{_VERB})\b)?"
)

CAUSES = {rule.topic: rule.title for rule in RULES if rule.role == "cause"}

# Columns that sentences count; every value of them becomes the number of the case.
_COUNTS = (
    "calls", "collectives", "count", "counted", "gaps", "kernels", "last", "max", "names", "queue_length",
    "reducing_steps", "group_size", "passes", "parameters",
)  # fmt: skip


def slips(text):
    """The places where number, noun and verb do not agree. Of "1 of 4 lines differs", 4 counts the lines."""
    found = []
    for match in _COUNTED.finditer(text):
        one = (match["whole"] or match["number"]) == "1"
        if (match["noun"] in NOUNS) != one:
            found.append(match[0])
        if match["verb"] and (match["verb"] in VERBS.values()) != (match["number"] in ("1", "None")):
            found.append(match[0])
    return found


def test_the_checker_itself():
    for wrong in (
        "1 kernels were measured", "2 kernel were measured", "1 calls launch", "2 lines differs", "0 gap",
        "1 of 4 steps take", "2 of 4 steps takes", "1 of 1 lines differs", "1 operator calls",
    ):  # fmt: skip
        assert slips(wrong), wrong
    for right in (
        "1 kernel was measured", "1,201 kernels were measured", "0 gaps", "1 of 4 steps takes long",
        "2 of 4 steps take long", "1 of 1 line differs", "1 launch call took", "3 launch calls took 1.00 ms",
        "iteration 10 on rank 3", "1 more cause stands out",
    ):  # fmt: skip
        assert not slips(right), (right, slips(right))


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "0 lines"), (1, "1 line"), (2, "2 lines"), (1201, "1,201 lines")]
)
def test_counted(number, expected):
    assert counted(number, "line") == expected
    assert counted(number, "launch", "launches") == expected.replace(
        "line", "launche" if number != 1 else "launch"
    )


def answers(analysis, traces):
    for trace in traces:
        with suppress(MissingDataError):
            yield analysis.function(trace)


@cache
def frames():
    """Answers of all analyses on jobs of different kinds, by default two of each: (kind, frame)."""
    traces = [examples.load(name) for name in ("ddp_4ranks", "gpt2_fsdp_full_shard", "inference_cuda_graphs")]
    recorded = (
        "hta/cupti_profiler",
        "hta/nccl_parser_config",
        "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    )
    traces += [Trace.open(shared_trace(name)) for name in recorded]
    traces.append(Trace.open(example_path(example_of("pipeline"))))
    found = []
    for kind, analysis in ANALYSES.items():
        own = answers(analysis, traces)
        found += [(kind, frame) for frame in (own if EVERY_CASE else islice(own, 2))]
    assert {kind for kind, _ in found} == {*ANALYSES}
    return found


UNLIKE = [(0, None), (1, 1), (1, None), (2, 2), (None, 1), (None, None)]


@pytest.mark.parametrize(
    ("rows", "number"), [*product((0, 1, 2, None), (1, 2, None))] if EVERY_CASE else UNLIKE
)
def test_every_sentence_about_so_many(rows, number):
    checked = 0
    for kind, frame in frames():
        if rows == 0 and kind == "training_strategy":
            continue  # it has a row for what it does not recognise
        whole = kind == "step_parts" and rows  # every step of it is compared with another one
        few = frame if rows is None or whole else frame.head(rows)
        if number is not None:
            known = [name for name in _COUNTS if name in few and pd.api.types.is_numeric_dtype(few[name])]
            few = few.assign(**{name: np.full(len(few), number, np.int64) for name in known})
        text = ANALYSES[kind].sentence(few)
        assert not slips(text), (kind, text)
        assert text.endswith("."), (kind, text)
        checked += bool(_COUNTED.search(text))
    assert checked or rows == 0


def lines_frame(changes, verdict):
    """A frame of `diff` with lines that changed by so many µs."""
    frame = pd.DataFrame(
        {"kind": "compute", "line": [f"k{place}" for place in range(len(changes))],
         "change_ns": np.array(changes, np.float64) * 1e3, "change_count": 0.0, "low_ns": 1.0,
         "change": "changed"}
    )  # fmt: skip
    frame = frame.assign(verdict=np.where(frame["change_ns"] != 0, verdict, "within noise"))
    frame = frame.assign(significant=frame["verdict"] == "significant", run="B")
    base = frame.assign(change_ns=0.0, significant=False, verdict="", change="same", run="A")
    return pd.concat([base, frame], ignore_index=True)


@pytest.mark.parametrize(
    ("changes", "verdict", "begins"),
    [
        ([0], "significant", "The only line is the same as in A."),
        ([0, 0], "significant", "All 2 lines are the same as in A."),
        ([5], "significant", "1 of 1 line differs from A beyond noise; k0 changed most: +5.00 µs"),
        ([5, 0], "significant", "1 of 2 lines differs from A"),
        ([5, 6], "significant", "2 of 2 lines differ from A"),
        ([5], "within noise", "The only line does not differ from A beyond noise."),
        ([5, 0], "within noise", "None of 2 lines differs from A beyond noise."),
        ([5], "inconclusive", "The only line does not differ from A beyond noise; k0 changed most: +5.00 µs"),
        ([5, 0], "inconclusive", "None of 2 lines differs from A beyond noise; k0 changed most"),
    ],
)  # fmt: skip
def test_lines_that_differ(changes, verdict, begins):
    text = COMPARISONS["diff"].sentence(lines_frame(changes, verdict))
    assert text.startswith(begins) and not slips(text)


@pytest.mark.parametrize("topic", CAUSES)
def test_a_cause_is_one_thing_that_costs(topic):
    """Its name is the subject of "costs"."""
    head = re.split(r"[ ,]", CAUSES[topic])[0]
    assert head.endswith("ing") or head in ("A", "Communication", "Extra", "Idle", "Launched", "Time"), topic


def test_parts_of_a_step_are_measured_not_counted():
    pair = {name: examples.load(name) for name in ("gpt2_baseline", "gpt2_ddp")}
    for kind in ("run_table", "step_waterfall", "comparability"):
        frame = COMPARISONS[kind].function(pair)
        assert not slips(COMPARISONS[kind].sentence(frame))
    assert STEP in set(COMPARISONS["step_waterfall"].function(pair)["part"])
