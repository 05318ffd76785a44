"""The tools of the MCP server: their schemas, and the command that each of them is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hta_widgets.analysis.registry import ANALYSES, TABLES
from hta_widgets.cli.limits import LINES

Given = Mapping[str, Any]

_DEFAULT_TOKENS: Final = 2000
_MOST_TOKENS: Final = 8000
_MOST_OF_DOCUMENT: Final = 4000

_TEXT: Final = {"type": "string"}
_PATH: Final = {**_TEXT, "description": "file, or folder with a file per rank, below a root"}
_RECORDING: Final = {
    **_TEXT,
    "description": "one of several in the folder; default: the last",
}
_PART: Final = {
    "ranks": {**_TEXT, "description": "0,2-5"},
    "iterations": {**_TEXT, "description": "10,11"},
}
_WINDOW: Final = {"window": {**_TEXT, "description": "10ms:25ms, with units"}}


@dataclass(frozen=True)
class Tool:
    """A tool, and how its arguments become those of the command line."""

    # as a client lists them
    name: str
    description: str
    schema: Mapping[str, Any]  # of its arguments
    # the command for arguments that fit the schema, without paths
    argv: Callable[[Given, Sequence[str]], list[str]]
    paths: tuple[str, ...] = ("path",)  # the arguments that are paths


def _budget(most: int) -> dict[str, Any]:
    return {
        "type": "integer", "minimum": 1, "maximum": most, "default": _DEFAULT_TOKENS,
        "description": "most tokens of the answer",
    }  # fmt: skip


def _scope_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


_SCOPE: Final = _scope_of(**_PART, **_WINDOW)
_STEPS: Final = _scope_of(**_PART)


def _object(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object", "additionalProperties": False, "required": list(required),
        "properties": properties,
    }  # fmt: skip


def _words(given: Given, *names: str) -> list[str]:
    """`--name=value` for each that is given: no value can pass for an option of its own."""
    return [f"--{name}={given[name]}" for name in names if name in given]


def _tokens(given: Given) -> str:
    return f"--budget={given.get('budget', _DEFAULT_TOKENS)}"


def _scope(given: Given) -> list[str]:
    """The part of a recording, and which of several."""
    return [
        *_words(given.get("scope", {}), "ranks", "iterations", "window"),
        *_words(given, "recording"),
    ]


def _diagnose(given: Given, paths: Sequence[str]) -> list[str]:
    return ["diagnose", "--json", *_scope(given), _tokens(given), "--", *paths]


def _analyze(given: Given, paths: Sequence[str]) -> list[str]:
    options = [f"--option={name}={value}" for name, value in given.get("options", {}).items()]
    where = [f"--where={condition}" for condition in given.get("where", [])]
    columns = [f"--columns={','.join(given['columns'])}"] if given.get("columns") else []
    words = [*_scope(given), *options, *where, *columns, *_words(given, "sort", "top"), _tokens(given)]
    return ["analyze", "--format=json", *words, "--", given["kind"], *paths]


def _event(given: Given, paths: Sequence[str]) -> list[str]:
    return ["event", "--json", *_words(given, "recording", "budget"), "--", *paths, *given["refs"]]


def _what_if(given: Given, paths: Sequence[str]) -> list[str]:
    edits = [f"--edit={_edit(edit)}" for edit in given.get("edits", [])]
    findings = [f"--finding={finding}" for finding in given.get("findings", [])]
    return ["what-if", "--format=json", *edits, *findings, *_scope(given), _tokens(given), "--", *paths]


def _edit(edit: Given) -> str:
    """`kernels(2.0, name='*gemm*')` of `{"name": "kernels", "args": {...}}`; values are literals."""
    args = edit.get("args", [])
    values = [repr(value) for value in args] if isinstance(args, list) else []
    named = [f"{name}={value!r}" for name, value in args.items()] if isinstance(args, Mapping) else []
    return f"{edit['name']}({', '.join([*values, *named])})"


def _compare(given: Given, paths: Sequence[str]) -> list[str]:
    limits = [f"--fail-on={limit}" for limit in given.get("limits", [])]
    words = [*limits, *_words(given, "by", "top"), *_scope(given), _tokens(given)]
    return ["diff", "--format=json", *words, "--", *paths]


def _check(given: Given, paths: Sequence[str]) -> list[str]:
    return ["check", "--json", *_words(given, "finding"), *_scope(given), "--", *paths]


def _health(given: Given, paths: Sequence[str]) -> list[str]:
    return ["health", "--json", "--fail-on=never", *_scope(given), _tokens(given), "--", *paths]


_TOOLS: Final = (
    Tool(
        "diagnose",
        "Start here. The evidence of a recording: what costs time, how much, what to do, and how far to "
        "trust it. Obey trust.vetoes.",
        _object(["path"], path=_PATH, recording=_RECORDING, scope=_SCOPE, budget=_budget(_MOST_OF_DOCUMENT)),
        _diagnose,
    ),
    Tool(
        "analyze",
        "The rows of one analysis, those that matter most first; `truncated` says what was left out.",
        _object(
            ["path", "kind"],
            path=_PATH,
            recording=_RECORDING,
            kind={"enum": [*ANALYSES, *TABLES]},
            options={"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
            scope=_SCOPE,
            sort={**_TEXT, "description": "COLUMN or COLUMN:asc"},
            top={"type": "integer", "minimum": 0},
            columns={"type": "array", "items": _TEXT},
            where={"type": "array", "items": _TEXT, "description": "dur_ns>1ms, rank=2, name~gemm"},
            budget=_budget(_MOST_TOKENS),
        ),
        _analyze,
    ),
    Tool(
        "event",
        "Everything about events that a document names as RANK:ID.",
        _object(
            ["path", "refs"],
            path=_PATH,
            recording=_RECORDING,
            refs={
                "type": "array",
                "minItems": 1,
                "maxItems": 5,
                "items": {**_TEXT, "pattern": r"^[0-9]+:[0-9]+$"},
            },
            budget={**_budget(1600), "default": 600, "description": "most tokens for each event"},
        ),
        _event,
    ),
    Tool(
        "what_if",
        "How long the steps would take after a change, simulated: the change against a finding of diagnose, "
        "or edits.",
        _object(
            ["path"],
            path=_PATH,
            recording=_RECORDING,
            findings={"type": "array", "items": _TEXT, "description": "ids of diagnose"},
            edits={
                "type": "array",
                "items": _object(
                    ["name"],
                    name={**_TEXT, "pattern": "^[a-z_]+$"},
                    args={"type": ["object", "array"]},
                ),
            },
            scope=_SCOPE,
            budget=_budget(_MOST_TOKENS),
        ),
        _what_if,
    ),
    Tool(
        "compare",
        "What changed between recordings, compared with the first, and whether it is more than noise.",
        _object(
            ["paths"],
            paths={"type": "array", "items": _PATH, "minItems": 2, "maxItems": 8},
            limits={"type": "array", "items": _TEXT, "description": "step_time>+3%"},
            by={"enum": [*LINES], "description": "what is compared line by line; default kernel"},
            top={"type": "integer", "minimum": 0},
            scope=_STEPS,
            budget=_budget(_MOST_TOKENS),
        ),
        _compare,
        ("paths",),
    ),
    Tool(
        "check",
        "Whether a change saved what a finding of the recording before it predicted.",
        _object(
            ["paths", "finding"],
            paths={"type": "array", "items": _PATH, "minItems": 2, "maxItems": 2},
            finding={**_TEXT, "description": "an id of diagnose about the first"},
            scope=_STEPS,
        ),
        _check,
        ("paths",),
    ),
    Tool(
        "health",
        "What is wrong, missing or doubtful in a recording.",
        _object(["path"], path=_PATH, recording=_RECORDING, budget=_budget(_MOST_TOKENS)),
        _health,
    ),
)
TOOLS: Final[Mapping[str, Tool]] = {tool.name: tool for tool in _TOOLS}
