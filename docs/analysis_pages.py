"""A page for each analysis: its docstring, its panel, and what it answers to a bundled example."""

from collections.abc import Iterable
from functools import cache

import pandas as pd

from docs.docstrings import cell, prose, sections
from docs.doors import methods_of
from hta_widgets import Trace, analysis, examples
from hta_widgets.analysis import ANALYSES
from hta_widgets.analysis.entry import Analysis
from hta_widgets.errors import MissingDataError

EXAMPLE = "ddp_4ranks"
# Where that example lacks the data, another has it.
OTHER_EXAMPLES = {"module_stacks": "single_gpu_dataloader_stall"}
# What has to be said, too, where the panel says it by itself.
MORE = {"kernel_sequences": ', operator="aten::linear"'}
UNITS = {"ns": "ns", "pct": "%", "bytes": "bytes", "gbps": "GB/s (10⁹ bytes per s)"}
LONGEST_VALUE = 48

USE = """\
```python
from hta_widgets import BreakdownPanel, Scope, Trace, analysis

trace = Trace.open("run_17/")
analysis.{kind}(trace{more})  # the DataFrame
analysis.{kind}(trace, Scope(ranks=(0, 1)){more})  # of a part of the job
BreakdownPanel(trace, "{kind}")  # the panel alone
```

In an explorer, `explorer.panels = ["{kind}"]` opens the panel, and `explorer.frame("{kind}")` returns
what it shows. In a terminal:

```bash
hta-widgets analyze {kind} run_17/
```
"""

TOCTREE = """\
```{{toctree}}
:caption: {group}
:hidden:

{pages}
```
"""

INDEX = """\
# Analyses

Each is a function `(trace, scope=None) -> DataFrame` in `hta_widgets.analysis`, a panel, and a `KIND` of
[`hta-widgets analyze`](../command_line.md). Times are integer nanoseconds; columns carry their unit in their
name. The sentence under each is its answer to the bundled example `{example}`, a simulated job of four ranks.
"""


def pages() -> dict[str, str]:
    """Name -> Markdown of all pages, the index included."""
    return {"index": _index(), **{kind: _page(one) for kind, one in ANALYSES.items()}}


def fill_in(markdown: str) -> str:
    """Replace the mark `<!-- panels -->` by rows of a table: question and kind of each panel."""
    rows = (f"| {one.title} | `{kind}` |" for kind, one in ANALYSES.items())
    return markdown.replace("<!-- panels -->", "\n".join(rows))


def _index() -> str:
    groups: dict[str, list[Analysis]] = {}
    for one in ANALYSES.values():
        groups.setdefault(one.group, []).append(one)
    parts = [INDEX.format(example=EXAMPLE)]
    for group, members in groups.items():
        parts += [f"## {group}", *(f"[{one.title}]({one.kind}.md)  \n{_said(one)}" for one in members)]
        listed = "\n".join(f"{one.label} <{one.kind}>" for one in members)
        parts.append(TOCTREE.format(group=group, pages=listed))
    return "\n\n".join(parts)


def _said(one: Analysis) -> str:
    return prose(_answer(one.kind)[1])


def _page(one: Analysis) -> str:
    frame, sentence = _answer(one.kind)
    told = sections(getattr(analysis, one.kind))
    parts = [
        f"# {one.title}",
        told.summary,
        _picture(one, sentence),
        "## Use",
        use(one.kind),
        *(["## Definition", told.text] if told.text else []),
        "## Arguments",
        table("argument | meaning", ((f"`{name}`", text) for name, text in told.arguments)),
        in_the_panel(one),
        "## Columns",
        told.returns,
        columns(frame, f"the bundled example `{example_of(one.kind)}`"),
        "## Needs",
        needs(one),
        table("error | when", ((f"`{name}`", text) for name, text in told.errors)) if told.errors else "",
        "## In HTA",
        _in_hta(one.kind),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def use(kind: str) -> str:
    """What to type for the DataFrame, the panel and the command."""
    return USE.format(kind=kind, more=MORE.get(kind, ""))


def example_of(kind: str) -> str:
    """The bundled job that an analysis is shown on."""
    return OTHER_EXAMPLES.get(kind, EXAMPLE)


@cache
def _trace(example: str) -> Trace:
    return Trace.open(examples.path(example))


@cache
def _answer(kind: str) -> tuple[pd.DataFrame | None, str]:
    """What the panel shows of the example: the frame, or none, and the sentence."""
    one = ANALYSES[kind]
    try:
        frame = one.function(_trace(example_of(kind)))
    except MissingDataError as error:
        return None, str(error)
    return frame, one.sentence(frame)


def _picture(one: Analysis, sentence: str) -> str:
    picture = f"![The panel: {one.title}](../images/panels/{one.kind}-light.webp)"
    return f"{picture}\n\nThe panel on the bundled example `{example_of(one.kind)}`. {prose(sentence)}"


def in_the_panel(one: Analysis) -> str:
    """Which arguments the panel offers."""
    if not one.options:
        return ""
    named = (f"*{option.label}* (`{option.name}`" + _unset(option.hint) + ")" for option in one.options)
    return f"The panel offers: {', '.join(named)}."


def _unset(hint: str) -> str:
    return f"; unset: {hint}" if hint else ""


def columns(frame: pd.DataFrame | None, example: str) -> str:
    """A row for each column of an answer."""
    if frame is None:
        return f"There is no row in the answer to {example}: it lacks the data."
    rows = ((f"``{name}``", _dtype(frame[name]), _unit(name), _first(frame[name])) for name in frame.columns)
    head = f"The columns of the answer to {example}, with its first row:"
    return f"{head}\n\n{table('column | dtype | unit | first row', rows)}"


def _dtype(column: pd.Series) -> str:
    return "str" if column.dtype == object else str(column.dtype)


def _unit(name: str) -> str:
    return UNITS.get(name.rsplit("_", 1)[-1], "")


def _first(column: pd.Series) -> str:
    if column.empty:
        return ""
    value = column.iloc[0]
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    text = text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
    return f"`{text}`" if text else ""


def needs(one: Analysis) -> str:
    """What must have been recorded."""
    if not one.requires:
        return "Nothing but events."
    named = ", ".join(one.requires)
    return f"The trace must have: {named}. Without, the panel says which profiler option records it."


def _in_hta(kind: str) -> str:
    methods = methods_of(kind)
    if not methods:
        return "HTA has no method for this."
    listed = ", ".join(f"`{method}`" for method in methods)
    where = "[HTA's classes](../hta.md) and [where the numbers differ](../differences.md)"
    return f"{listed}: see {where}."


def table(head: str, rows: Iterable[tuple[str, ...]]) -> str:
    """A table in Markdown; `head` has its headings, with | between them."""
    lines = [f"| {head} |", "|" + "---|" * len(head.split("|"))]
    return "\n".join([*lines, *(f"| {' | '.join(map(cell, row))} |" for row in rows)])
