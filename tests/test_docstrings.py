"""Everything public says what it is, takes and returns; the site and `help()` show nothing else."""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pandas as pd
import pytest

import hta_widgets
from docs.docstrings import sections
from docs.terms import TERMS
from hta_widgets import Trace, analysis, edits, examples
from hta_widgets.errors import MissingDataError
from tests.support import ROOT

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: value for name in analysis.__all__ if inspect.isfunction(value := getattr(analysis, name))
}
CLASSES = {
    name: value for name in hta_widgets.__all__ if inspect.isclass(value := getattr(hta_widgets, name))
}
JOBS = ("ddp_4ranks", "single_gpu_dataloader_stall", "inference_cuda_graphs", "gpt2_fsdp_full_shard")
RUNS = ("gpt2_ddp", "gpt2_fsdp_full_shard")
# Arguments that some functions require.
OPTIONS: dict[str, dict[str, Any]] = {
    "kernel_sequences": {"operator": "aten::linear"},
    "replayed_events": {"edits": edits.kernels(2.0)},
    "replayed_path": {"edits": edits.kernels(2.0)},
    "marginal_savings": {"changes": [edits.kernels(2.0), edits.host(0.5)]},
    "sequence_instances": {"operator": "aten::linear"},
    "step_difference": {"first": 10, "second": 11},
    "what_if": {"edits": edits.kernels(2.0)},
}
# These take neither a trace nor runs, or tell of one moment; their own tests check what they return.
OF_SOMETHING_ELSE = {
    "compare_iterations", "critical_path_summary", "inspect_event", "inspect_gap", "memory_categories",
    "peaks_of", "register_formula", "register_peaks", "same_stretch",
}  # fmt: skip
# Others' names in backticks.
FOREIGN = ("nn.", "torch.")


def code_in(text: str) -> list[str]:
    return re.findall(r"`+(\w[\w.]*)`+", text)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_tells_its_arguments_and_what_it_returns(name: str) -> None:
    docstring = sections(FUNCTIONS[name])
    assert docstring.summary.endswith((".", "?")) and docstring.returns
    listed = {item.strip() for names, _ in docstring.arguments for item in names.split(",")}
    assert listed == set(inspect.signature(FUNCTIONS[name]).parameters)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_refers_to_what_a_reader_can_find(name: str) -> None:
    for code in code_in(inspect.getdoc(FUNCTIONS[name]) or ""):
        owner, _, member = code.rpartition(".")
        if owner and code not in TERMS and not code.startswith(FOREIGN):
            assert hasattr(getattr(hta_widgets, owner), member), code


@cache
def job(name: str) -> Trace:
    return examples.load(name)


def answers(name: str) -> Iterator[pd.DataFrame]:
    function, options = FUNCTIONS[name], OPTIONS.get(name, {})
    if "runs" in inspect.signature(function).parameters:
        yield function({run: job(run) for run in RUNS})
        return
    for example in JOBS:
        try:
            yield function(job(example), **options)
        except MissingDataError:
            continue


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - OF_SOMETHING_ELSE))
def test_function_tells_every_column(name: str) -> None:
    returns = sections(FUNCTIONS[name]).returns
    others = [sections(FUNCTIONS[code]).returns for code in code_in(returns) if code in FUNCTIONS]
    words = set(re.findall(r"\w+", " ".join([returns, *others])))
    for frame in answers(name):
        assert set(frame.columns) <= words


@pytest.mark.parametrize("name", CLASSES)
def test_class_and_what_it_offers_is_described(name: str) -> None:
    assert inspect.getdoc(CLASSES[name])
    for base in CLASSES[name].__mro__:
        if base.__module__.startswith("hta_widgets"):
            silent = [
                member for member, value in vars(base).items() if offers(member, value) and not value.__doc__
            ]
            assert not silent, base


def offers(name: str, value: Any) -> bool:
    described = (property, classmethod, staticmethod)
    return not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, described))


def test_docstrings_are_utf8() -> None:
    """Python 3.13 cannot import a module of which one is not."""
    for file in sorted((ROOT / "hta_widgets").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if not re.search(r"\\[uUN]", text):  # what is no UTF-8 is written so
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                (ast.get_docstring(node) or "").encode()
