"""Recordings without the folders and the user of their machine, and the same bytes each time."""

import gzip
import json
import pickle
from pathlib import Path

import publish
from recorder import manifest
from recorder.setup import Setup

from hta_widgets import Trace
from tests.examples.recording_entry import entry

FRAME = {"filename": "/home/someone/lib/python3.12/site-packages/torch/nn/modules/linear.py", "line": 3}
SCRIPT = {"filename": "/srv/clone/examples/recording/recorder/gpt.py", "line": 9}
KERNEL = {"kernel_file": "/tmp/torchinductor_someone/2l/c2lt.py", "Input Dims": [[8, 768]]}
EVENTS = {
    "traceEvents": [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "aten::a/b",
            "pid": 1,
            "tid": 1,
            "ts": 1,
            "dur": 1,
            "args": KERNEL,
        }
    ],
    "traceName": "/tmp/tmpabc_12.json",
}


def test_a_run_is_published_without_folders(tmp_path: Path) -> None:
    recorded, out, bundled = (tmp_path / name for name in ("recorded", "out", "bundled"))
    for name in ("baseline", "detailed"):
        (recorded / name).mkdir(parents=True)
        (recorded / name / "rank-0.pt.trace.json.gz").write_bytes(
            gzip.compress(json.dumps(EVENTS).encode(), 1)
        )
        manifest.add(recorded, name, entry(Setup()))
    frames = [[FRAME, SCRIPT], [FRAME]]
    (recorded / "detailed" / "rank-0.snapshot.pickle").write_bytes(pickle.dumps({"device_traces": frames}))

    publish.publish(recorded, out, bundled, None)
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("rank-*")}
    assert {name for name in files if not name.startswith("recorded")} == {
        "bundled/h100_gpt2/rank-0.pt.trace.json.gz",
        "out/detailed/rank-0.pt.trace.json.gz",
        "out/detailed/rank-0.snapshot.pickle",
    }
    assert manifest.load(out) == manifest.load(recorded)
    raw = (out / "detailed" / "rank-0.pt.trace.json.gz").read_bytes()
    published = json.loads(gzip.decompress(raw))
    assert published["traceName"] == "tmpabc_12.json"
    (event,) = published["traceEvents"]
    assert event["args"] == {"kernel_file": "2l/c2lt.py", "Input Dims": [[8, 768]]}
    assert event["name"] == "aten::a/b"
    assert publish.trace(raw) == raw
    assert Trace.open(out / "detailed", cache=False).ranks == [0]
    found = pickle.loads((out / "detailed" / "rank-0.snapshot.pickle").read_bytes())["device_traces"]
    assert found[0] == [
        {"filename": "torch/nn/modules/linear.py", "line": 3},
        {"filename": "recorder/gpt.py", "line": 9},
    ]
    assert found[0][0] is found[1][0]  # once, as it was
