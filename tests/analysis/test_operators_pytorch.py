"""The table of operators against PyTorch's own: `key_averages` of the same recording, and its FLOP counter.

PyTorch is no dependency: `HTA_WIDGETS_TORCH` names an interpreter that has it (default: this one), and the
tests are skipped where it has not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_widgets import Trace
from hta_widgets.analysis import operators

RECORD = """
import json, sys
import torch
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(4, 8, 3, stride=2, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
    torch.nn.ConvTranspose2d(8, 3, 2, stride=2), torch.nn.MaxPool2d(2, ceil_mode=True), torch.nn.Flatten(),
    torch.nn.Linear(3 * 8 * 8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 10),
)
table = torch.nn.Embedding(50, 16)
optimizer = torch.optim.SGD([*model.parameters(), *table.parameters()], lr=0.1, momentum=0.9)

def step():
    image = torch.randn(5, 4, 16, 16)
    with record_function("forward of the model"):
        result = model(image)
    rows = table(torch.randint(50, (2, 4, 7)))
    seen = F.scaled_dot_product_attention(rows, rows, rows)
    loss = F.cross_entropy(result, torch.randint(10, (5,))) + torch.bmm(seen[0], seen[1].mT).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

step()
with FlopCounterMode(display=False) as counter:
    step()
with profile(
    activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True, profile_memory=True
) as recorded:
    for _ in range(3):
        step()
recorded.export_chrome_trace(sys.argv[1])
rows = {}
for key, shapes in (("name", False), ("shapes", True)):
    rows[key] = [
        dict(name=row.key, shapes=row.input_shapes if shapes else "", calls=row.count,
             self_us=row.self_cpu_time_total, total_us=row.cpu_time_total, mean_us=row.cpu_time,
             annotation=row.is_user_annotation, flops=row.flops,
             self_bytes=row.self_cpu_memory_usage, total_bytes=row.cpu_memory_usage)
        for row in recorded.key_averages(group_by_input_shape=shapes)
    ]
rows["counted"] = {str(op): flops for op, flops in counter.flop_counts["Global"].items()}
print(json.dumps(rows))
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, dict[str, Any]]:
    """A recording on the CPU, and PyTorch's tables of it."""
    interpreter = os.environ.get("HTA_WIDGETS_TORCH") or sys.executable
    found = subprocess.run([interpreter, "-c", "import torch"], capture_output=True, check=False)
    if found.returncode:
        pytest.skip("no PyTorch here: set HTA_WIDGETS_TORCH to an interpreter that has it")
    path: Path = tmp_path_factory.mktemp("recorded") / "trace.json"
    done = subprocess.run([interpreter, "-c", RECORD, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Trace.open({0: path}, cache=False), json.loads(done.stdout)


def theirs(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """PyTorch's rows of operators, without those of `record_function`."""
    frame = pd.DataFrame(rows)
    return frame[~frame["annotation"] & ~frame["name"].str.startswith(("Optimizer.", "forward of"))].replace(
        {"name": {"[memory]": "(no operator)"}}
    )


def test_rows_are_those_of_key_averages(recorded: tuple[Trace, dict[str, Any]]) -> None:
    trace, tables = recorded
    expected = theirs(tables["name"]).set_index("name").sort_index()
    found = operators(trace).set_index("name").sort_index()
    assert found.index.tolist() == expected.index.tolist()
    # PyTorch counts the events of its row "[memory]".
    expected.loc["(no operator)", "calls"] = 0
    assert found["calls"].tolist() == expected["calls"].tolist()
    # PyTorch keeps nanoseconds, and shows microseconds as floats.
    for ours, column in (("host_self_ns", "self_us"), ("host_total_ns", "total_us")):
        assert found[ours].tolist() == (expected[column] * 1000).round().astype("int64").tolist(), ours
    # Outside operators, regions of `record_function` have rows there.
    found, expected = found.drop("(no operator)"), expected.drop("(no operator)")
    assert found["host_memory_self_bytes"].tolist() == expected["self_bytes"].tolist()
    assert found["host_memory_total_bytes"].tolist() == expected["total_bytes"].tolist()
    assert found["mean_host_ns"].tolist() == pytest.approx((expected["mean_us"] * 1000).tolist())


def test_rows_by_shape_are_those_of_key_averages(recorded: tuple[Trace, dict[str, Any]]) -> None:
    trace, tables = recorded
    expected = theirs(tables["shapes"])
    shapes = [", ".join(str(tuple(shape)) for shape in each) for each in expected["shapes"]]
    expected = expected.assign(shapes=shapes)
    expected = expected.groupby(["name", "shapes"])[["calls", "self_us", "total_us"]].sum()
    found = operators(trace, by="shapes")
    found = found[found["calls"] > 0]
    lists = found["input_shapes"].str.contains("[", regex=False)  # PyTorch says nothing of what is in them
    found = found[~lists].groupby(["name", "input_shapes"])[["calls", "host_self_ns", "host_total_ns"]].sum()
    expected = expected.loc[found.index]
    assert len(found) > 60
    assert found["calls"].tolist() == expected["calls"].tolist()
    assert found["host_self_ns"].tolist() == (expected["self_us"] * 1000).round().astype("int64").tolist()
    assert found["host_total_ns"].tolist() == (expected["total_us"] * 1000).round().astype("int64").tolist()


def test_flops_are_those_that_pytorch_counts(recorded: tuple[Trace, dict[str, Any]]) -> None:
    trace, tables = recorded
    frame = operators(trace).set_index("name")
    counted = {name.replace("aten.", "aten::"): flops for name, flops in tables["counted"].items()}
    counted = {name: flops for name, flops in counted.items() if name in frame.index}
    assert {"aten::addmm", "aten::mm", "aten::bmm", "aten::convolution", "aten::convolution_backward"} <= {
        *counted
    }
    for name, flops in counted.items():
        assert frame.loc[name, "flops"] == 3 * flops, name
    # The profiler's own figures count additions, products and matrix products as well.
    for row in tables["name"]:
        if row["flops"] and row["name"] in ("aten::mm", "aten::addmm", "aten::bmm", "aten::mul", "aten::add"):
            assert frame.loc[row["name"], "flops"] == row["flops"], row["name"]
