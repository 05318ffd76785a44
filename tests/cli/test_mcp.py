"""The server, asked by a real client over standard input and output: the answers are the command line's."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hta_widgets import examples
from hta_widgets.analysis.evidence.document import SCHEMA_FILE
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.cli.exits import UsageError
from hta_widgets.cli.mcp_answers import Roots, answered
from hta_widgets.cli.mcp_tools import TOOLS
from hta_widgets.cli.opening import kept_open
from hta_widgets.cli.skill import SKILL
from tests.evidence.command import ask
from tests.support import ROOT

anyio = pytest.importorskip("anyio", reason="comes with the package mcp, an optional dependency")
jsonschema = pytest.importorskip("jsonschema", reason="comes with the package mcp, an optional dependency")
mcp = pytest.importorskip("mcp", reason="the server needs hta_widgets[mcp]")

DATA = examples.path("ddp_4ranks").parent
DDP, GPT2, FSDP = (str(examples.path(name)) for name in ("ddp_4ranks", "gpt2_ddp", "gpt2_fsdp_full_shard"))

# A call of a tool, and the command that it is.
SAME: list[tuple[str, dict[str, Any], list[str]]] = [
    ("diagnose", {"path": DDP, "budget": 4000}, ["diagnose", DDP, "--json"]),
    (
        "diagnose",
        {"path": DDP, "scope": {"ranks": "0,2", "iterations": "11"}},
        ["diagnose", DDP, "--json", "--ranks", "0,2", "--iterations", "11", "--budget", "2000"],
    ),
    (
        "analyze",
        {
            "path": DDP, "kind": "idle_gaps", "where": ["dur_ns>5us"], "columns": ["rank", "dur_ns"],
            "sort": "dur_ns:asc", "top": 7, "scope": {"window": "0:40ms"},
        },
        [
            "analyze", "idle_gaps", DDP, "--format", "json", "--where", "dur_ns>5us",
            "--columns", "rank,dur_ns", "--sort", "dur_ns:asc", "--top", "7", "--window", "0:40ms",
            "--budget", "2000",
        ],
    ),
    (
        "analyze",
        {"path": GPT2, "kind": "operators", "options": {"by": "module_class"}, "budget": 8000},
        ["analyze", "operators", GPT2, "--format", "json", "--option", "by=module_class", "--budget", "8000"],
    ),
    ("event", {"path": DDP, "refs": ["0:1", "2:1755"]}, ["event", DDP, "0:1", "2:1755", "--json"]),
    (
        "what_if",
        {"path": DDP, "findings": ["data_stall"], "budget": 500},
        ["what-if", DDP, "--finding", "data_stall", "--format", "json", "--budget", "500"],
    ),
    (
        "what_if",
        {"path": GPT2, "edits": [{"name": "kernels", "args": {"faster": 2.0, "name": "*gemm*"}}]},
        ["what-if", GPT2, "--edit", "kernels(2.0, name='*gemm*')", "--format", "json", "--budget", "2000"],
    ),
    (
        "compare",
        {"paths": [GPT2, FSDP], "limits": ["step_time>+3%"]},
        ["diff", GPT2, FSDP, "--format", "json", "--fail-on", "step_time>+3%", "--budget", "2000"],
    ),
    (
        "compare",
        {"paths": [GPT2, FSDP], "by": "op", "top": 3, "scope": {"ranks": "0"}},
        [
            "diff", GPT2, FSDP, "--format", "json", "--by", "op", "--top", "3", "--ranks", "0",
            "--budget", "2000",
        ],
    ),
    (
        "check",
        {"paths": [GPT2, FSDP], "finding": "exposed_communication"},
        ["check", GPT2, FSDP, "--finding", "exposed_communication", "--json"],
    ),
    ("health", {"path": DDP}, ["health", DDP, "--json", "--fail-on", "never", "--budget", "2000"]),
]  # fmt: skip
# What a client may not ask, and the code and the words of the refusal.
REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("diagnose", {"path": str(ROOT / "tests")}, 2, "is not below a root"),
    ("diagnose", {"path": f"{DDP}/../../../../tests"}, 2, "is not below a root"),
    ("diagnose", {"path": "-"}, 2, "is not below a root"),
    ("diagnose", {"path": "--help"}, 2, "is not below a root"),
    ("diagnose", {"path": "https://example.org/trace.json"}, 2, "URLs are not allowed"),
    ("diagnose", {"path": "simplecache::s3://bucket/trace.json"}, 2, "URLs are not allowed"),
    ("diagnose", {"path": f"{DATA}/none"}, 3, "none"),
    ("diagnose", {"path": DDP, "budget": 9000}, 2, "9000"),
    ("diagnose", {"path": DDP, "output": "/tmp/x"}, 2, "output"),
    ("diagnose", {}, 2, "path"),
    ("analyze", {"path": DDP, "kind": "moon"}, 2, "moon"),
    ("analyze", {"path": DDP, "kind": "idle_gaps", "sort": "moon"}, 2, "no column 'moon'"),
    ("analyze", {"path": DDP, "kind": "idle_gaps", "scope": {"window": "1:2"}}, 2, "no unit"),
    ("analyze", {"path": DDP, "kind": "cupti_counters"}, 4, "the trace has no"),
    ("event", {"path": DDP, "refs": ["0:99999999"]}, 2, "99999999"),
    ("event", {"path": DDP, "refs": ["0:1"] * 6}, 2, "too long"),
    ("what_if", {"path": DDP}, 2, "name a change"),
    ("what_if", {"path": DDP, "edits": [{"name": "__import__", "args": ["os"]}]}, 2, "__import__"),
    ("compare", {"paths": [DDP]}, 2, "too short"),
    ("compare", {"paths": [GPT2, str(examples.path("inference_cuda_graphs"))]}, 2, "compare"),
    ("moon", {}, 2, "there is no tool"),
]


def test_a_client_over_standard_input_and_output() -> None:
    """One process for all: what is asked again is still open."""

    async def talk() -> None:
        server = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-m", "hta_widgets", "mcp", str(DATA)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        async with mcp.Client(server) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(tools) == ["diagnose", "analyze", "event", "what_if", "compare", "check", "health"]
            for tool in tools.values():
                jsonschema.Draft202012Validator.check_schema(tool.input_schema)
                assert tool.description and tool.annotations and tool.annotations.read_only_hint
            assert client.instructions.endswith(SKILL.read_text(encoding="utf-8"))
            for name, given, argv in SAME:
                result = await client.call_tool(name, given)
                (content,) = result.content
                assert not result.is_error, content
                expected = ask(*argv)
                assert content.text == expected.out and expected.code in (0, 1), name
                assert len(content.text) / 4 <= given.get("budget", 2000), name
            for name, given, code, word in REFUSED:
                result = await client.call_tool(name, given)
                (content,) = result.content
                error = json.loads(content.text)["error"]
                assert result.is_error and error["code"] == code, (name, given, error)
                assert word in error["message"] and error["remedy"], (name, given, error)
            texts = {}
            for resource in (await client.list_resources()).resources:
                (read,) = (await client.read_resource(str(resource.uri))).contents
                texts[str(resource.uri)] = read.text
            assert texts == {
                "hta-widgets://skill": SKILL.read_text(encoding="utf-8"),
                "hta-widgets://schema/evidence": SCHEMA_FILE.read_text(encoding="utf-8"),
            }

    anyio.run(talk)


def call(roots: Roots, name: str, given: Mapping[str, Any]) -> tuple[Any, bool]:
    text, failed = answered(roots, TOOLS[name], given)
    return json.loads(text), failed


def test_links_that_leave_the_roots_are_not_followed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir(), outside.mkdir()
    packed = sorted(Path(GPT2).glob("*.gz"))[0]
    (outside / packed.name).write_bytes(packed.read_bytes())
    roots = Roots.of([str(inside)], False)
    (inside / "link").symlink_to(outside)
    answer, failed = call(roots, "health", {"path": str(inside / "link")})
    assert failed and answer["error"]["code"] == 2
    answer, failed = call(roots, "health", {"path": str(inside)})
    assert failed and "link" in answer["error"]["message"]
    (inside / "link").unlink()
    (inside / packed.name).symlink_to(outside / packed.name)
    assert call(roots, "health", {"path": str(inside)})[1]
    assert not call(Roots.of([str(tmp_path)], False), "health", {"path": str(inside)})[1]
    with pytest.raises(UsageError, match="does not exist"):
        Roots.of([str(tmp_path / "none")], False)


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    first, second = sorted(Path(GPT2).glob("*.gz"))[0], sorted(Path(DDP).glob("*.gz"))[0]
    path = tmp_path / first.name
    path.write_bytes(first.read_bytes())
    roots = Roots.of([str(tmp_path)], False)
    with kept_open(2):
        one = call(roots, "diagnose", {"path": str(tmp_path)})[0]["recording"]["id"]
        assert call(roots, "diagnose", {"path": str(tmp_path)})[0]["recording"]["id"] == one
        path.write_bytes(second.read_bytes())
        assert call(roots, "diagnose", {"path": str(tmp_path)})[0]["recording"]["id"] != one


def test_the_kinds_are_those_of_the_command_line() -> None:
    kinds = TOOLS["analyze"].schema["properties"]["kind"]["enum"]
    assert set(ANALYSES) < set(kinds) and "critical_path_summary" in kinds
