"""What the panel of memory owners shows: measured, computed, or missing."""

import gzip
import json
from pathlib import Path

import pytest

from hta_widgets import examples
from hta_widgets.analysis import memory_owners, strategy_memory
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.analysis.strategy.model_states import recorded_optimizer
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from tests.support import shared_trace

ANALYSIS = ANALYSES["memory_owners"]


def without_memory_events(folder: Path) -> Trace:
    """The bundled job of two ranks, as recorded without `profile_memory`."""
    for rank, path in enumerate(sorted(Path(examples.path("gpt2_ddp")).glob("rank-*"))):
        content = json.loads(gzip.decompress(path.read_bytes()))
        content["traceEvents"] = [each for each in content["traceEvents"] if each["name"] != "[memory]"]
        (folder / f"rank-{rank}.json").write_text(json.dumps(content))
    return Trace.open(folder, cache=False)


def test_the_panel_has_the_owners():
    trace = examples.load("gpt2_ddp")
    frame = ANALYSIS.function(trace)
    assert frame.equals(memory_owners(trace, by="lifetime"))
    assert ANALYSIS.sentence(frame) == (
        "All ranks need the same amount of memory, 2.29 GiB. Rank 0 needs it on cuda:0; "
        "87.1 % of it belongs to activation."
    )


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [("hta/nccl_parser_config", "sgd_momentum"), ("tracelens/mi300/resnet_act_checkpoint.json.gz", "sgd")],
)
def test_the_state_is_that_of_the_optimizer_that_was_recorded(name: str, optimizer: str) -> None:
    trace = Trace.open(shared_trace(name))
    rank = trace.ranks[0]
    assert recorded_optimizer(trace.rank(rank)) == optimizer
    frame = strategy_memory(trace)
    assert frame.equals(strategy_memory(trace, optimizer=optimizer))
    assert not frame.equals(strategy_memory(trace, optimizer="adam"))


def test_without_memory_events_it_has_the_computed_model(tmp_path):
    trace = without_memory_events(tmp_path)
    with pytest.raises(MissingDataError, match="profile_memory=True"):
        memory_owners(trace)
    frame = ANALYSIS.function(trace)
    model = strategy_memory(trace)
    states = model[model["component"] == "model states"].set_index("rank")["computed_bytes"]
    assert (frame.groupby("rank")["bytes"].sum() == states).all()
    assert set(frame["device"]) == {"computed, not measured"}
    assert ANALYSIS.sentence(frame).startswith("Computed, not measured: the model needs ")
    assert ANALYSIS.figure(frame).data


def test_with_neither_the_remedy_is_to_record_memory():
    with pytest.raises(MissingDataError, match="profile_memory=True"):
        ANALYSIS.function(Trace.open(shared_trace("hta/cpu_only")))
