"""The Python lines that restore what an explorer shows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from hta_widgets.widgets.part import variable_name

_LINE = 88


def explorer_code(
    name: str,
    source: Any,
    selection: Mapping[str, Any],
    panels: Sequence[str],
    clock: str = "auto",
    communication: Sequence[str] = (),
    edits: Sequence[str] = (),
    peaks: Mapping[str, Any] | None = None,
) -> str:
    """Lines to paste into a cell: they open `source` with this selection and these panels.

    Args:
        name: the variable to assign the explorer to.
        source: what the explorer was created from.
        selection: `Selection.to_dict()`.
        panels: the kinds of the open panels.
        clock: what times the iterations.
        communication: names of device work that counts as communication.
        edits: the expressions of the changes in the panel `what_if`.
        peaks: the peaks of devices that are stated in the panel `roofline`.
    """
    arguments = [source_expression(source)]
    if selection:
        arguments.append(f"selection={dict(selection)!r}")
    arguments.append(f"panels={list(panels)!r}")
    if clock != "auto":
        arguments.append(f"clock={clock!r}")
    if communication:
        arguments.append(f"communication={list(communication)!r}")
    if edits:
        arguments.append(f"edits=[{', '.join(edits)}]")
    if peaks:
        arguments.append(f"peaks={dict(peaks)!r}")
    line = f"{name} = TraceExplorer({', '.join(arguments)})"
    if len(line) > _LINE:
        line = f"{name} = TraceExplorer(\n" + "".join(f"    {text},\n" for text in arguments) + ")"
    imported = "TraceExplorer, edits" if edits else "TraceExplorer"
    infinite = "import math\n\n" if any("math.inf" in edit for edit in edits) else ""
    return f"{infinite}from hta_widgets import {imported}\n\n{line}\n{name}"


def source_expression(source: Any) -> str:
    """A Python expression: paths as given, anything else by its variable in the notebook."""
    if isinstance(source, str | os.PathLike):
        return repr(os.fspath(source))
    if isinstance(source, list | tuple):
        return f"[{', '.join(source_expression(item) for item in source)}]"
    if isinstance(source, Mapping):
        return f"{{{', '.join(f'{key!r}: {source_expression(value)}' for key, value in source.items())}}}"
    return variable_name(source, "trace")
