"""The browser replays a graph to the nanosecond as Python does: every trace, control and mode, in node."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hta_widgets import Trace, examples
from hta_widgets.analysis import marginal_savings, speed_map, what_if
from hta_widgets.analysis.replay.graph import graph_of
from hta_widgets.analysis.replay.passes import ESTIMATE, MODES
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.analysis.replay.quality import quality_of
from hta_widgets.jit import kernel
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.replay_codec import pack
from hta_widgets.widgets.what_if_answer import PARTS
from hta_widgets.widgets.what_if_controls import CONTROLS, described, edits_of, effect_of, settings_of
from tests.support import GPU_TRACES, ROOT, SHARED_TRACES, is_asked, shared_trace

pytestmark = pytest.mark.slow

NODE = shutil.which("node")
ESBUILD = ROOT / "js" / "node_modules" / ".bin" / "esbuild"
SOURCES = """
export { unpack } from "./js/src/replay/graph";
export { Parts } from "./js/src/replay/parts";
export { Replay } from "./js/src/replay/answer";
"""
EVERYTHING = {"host": 0.9, "launches": 0.35, "kernels": 1 / 1.82, "copies": 1.3, "communication": 0.0}
CHOSEN = [
    {},
    *({control.name: time} for control in CONTROLS if not control.off for time in (0.0, 0.37, 1.7)),
    *({control.name: 0.0} for control in CONTROLS if control.off),
    EVERYTHING,
    {**EVERYTHING, "syncs": 0.0, "loader": 0.0},
]
# as Python passes them on: with speeds of few digits
SETTINGS = [settings_of(edits_of(chosen))[0] for chosen in CHOSEN]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The browser's replay as a module for node."""
    if NODE is None or not ESBUILD.exists():
        pytest.skip("needs node and the front end's packages: `make frontend`")
    out = tmp_path_factory.mktemp("replay") / "replay.mjs"
    command = [str(ESBUILD), "--bundle", "--format=esm", "--loader=ts", f"--outfile={out}"]
    subprocess.run(command, input=SOURCES, text=True, cwd=ROOT, check=True, capture_output=True)
    return out


@kernel
def rolling_hash(times):
    out = 0
    for time in times:
        out = (out * 31 + time) % 2147483647
    return out


def same_in_node(rank_trace: RankTrace, bundle: Path, folder: Path) -> list[dict]:
    """Asserts that node has the same times for all settings and modes; returns what it answered."""
    graph = graph_of(rank_trace)
    assert graph is not None
    effects = {control.name: effect_of(control, graph, rank_trace) for control in CONTROLS}
    cuts = {name: effect.cut for name, effect in effects.items() if len(effect.cut[0])}
    questions = [{"settings": settings, "mode": mode} for settings in SETTINGS for mode in range(len(MODES))]
    expected = []
    for question in questions:
        plan = Plan(graph, rank_trace)
        for edit in edits_of(question["settings"]):
            edit.apply(plan)
        times = plan.replay(question["mode"])
        expected.append((int(rolling_hash(times)), int(times.max())))
    paths = [folder / name for name in ("graph", "controls", "questions")]
    paths[0].write_bytes(pack(graph, rank_trace, cuts))
    paths[1].write_text(json.dumps([described(control, effects[control.name]) for control in CONTROLS]))
    paths[2].write_text(json.dumps(questions))
    command = [NODE, str(Path(__file__).parent / "replay_node.mjs"), str(bundle), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(answer["hash"], answer["last"]) for answer in answers] == expected
    assert len({last for _, last in expected}) > 1, "no control changes anything: nothing was compared"
    return answers


@pytest.mark.parametrize("name", [name for name in GPU_TRACES if is_asked(SHARED_TRACES / name)])
def test_recorded_traces_replay_in_node_as_in_python(name: str, bundle: Path, tmp_path: Path) -> None:
    trace = Trace.open(shared_trace(name))
    rank = trace.ranks[0]
    if graph_of(trace.rank(rank)) is None:
        pytest.skip("no device work")
    answers = same_in_node(trace.rank(rank), bundle, tmp_path)
    quality = quality_of(trace.rank(rank))
    assert quality is not None
    if not quality.trusted:
        return
    for settings in SETTINGS[:2] + SETTINGS[-2:]:
        answer = answers[SETTINGS.index(settings) * len(MODES) + ESTIMATE]
        whole = what_if(trace, edits_of(settings), Scope(ranks=(rank,))).iloc[0]
        assert answer["parts"] == whole[list(PARTS)].tolist()
        assert (answer["low"], answer["last"], answer["high"]) == (
            whole["low_ns"], whole["after_ns"], whole["high_ns"]
        )  # fmt: skip
        others = {name: time for name, time in settings.items() if name not in ("host", "kernels")}
        where = speed_map(trace, Scope(ranks=(rank,)), edits_of(others), speeds=(0.5, 1.4, 4))
        assert answer["map"] == where["after_ns"].tolist()
        made = edits_of(settings)
        names = [control.name for control in CONTROLS if control.name in settings]
        savings = marginal_savings(trace, made, Scope(ranks=(rank,))).to_dict("records")
        assert answer["chain"] == [
            [names[row["change"]], row["before_ns"] - row["alone_ns"], row["before_ns"] - row["together_ns"]]
            for row in savings
        ]


@pytest.mark.parametrize("name", ["ddp_4ranks", "single_gpu_dataloader_stall"])
def test_bundled_jobs_replay_in_node_as_in_python(name: str, bundle: Path, tmp_path: Path) -> None:
    trace = examples.load(name)
    same_in_node(trace.rank(trace.ranks[0]), bundle, tmp_path)


def test_wide_values_survive(bundle: Path, tmp_path: Path) -> None:
    """A host that pauses for longer than an int32 holds, on the way through the codec."""
    trace = examples.load("single_gpu_dataloader_stall")
    rank_trace = trace.rank(trace.ranks[0])
    graph = graph_of(rank_trace)
    assert graph is not None
    long = graph.weight.copy()
    long[np.argmax(long)] = 5_000_000_000
    stretched = replace(graph, weight=long)
    (tmp_path / "graph").write_bytes(pack(stretched, rank_trace, {}))
    (tmp_path / "controls").write_text("[]")
    (tmp_path / "questions").write_text('[{"settings": {}, "mode": 0}]')
    command = [NODE, str(Path(__file__).parent / "replay_node.mjs"), str(bundle)]
    command += [str(tmp_path / name) for name in ("graph", "controls", "questions")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["last"] == Plan(stretched, rank_trace).replay(0).max() > 4_000_000_000
