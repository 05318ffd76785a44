"""A page for each analysis: its docstring, its panel, and what it answers to a bundled example."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pandas as pd

from docs.docstrings import cell, prose, sections
from docs.hta_methods import methods_of
from docs.made import folder_for
from hta_widgets import Trace, analysis, examples
from hta_widgets.analysis import ANALYSES
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.errors import MissingDataError
from tests.job.parallel_jobs import ParallelJob, towards
from tests.verdicts.planted.rank_programs import Pace

EXAMPLE = "ddp_4ranks"
# Where that example lacks the data, another has it.
OTHER_EXAMPLES = {
    "fsdp_units": "gpt2_fsdp_full_shard",
    "module_stacks": "single_gpu_dataloader_stall",
    **dict.fromkeys(("serving_steps", "serving_phases", "roles"), "continuous_batching"),
    **dict.fromkeys(("parallelism", "pipeline", "expert_balance"), "moe_pipeline"),
}
# These are not bundled: the simulator of the tests writes them.
SIMULATED = {
    "moe_pipeline": ParallelJob(
        pipeline=4, data=2, expert=2, microbatches=6, tokens=towards(1, 3, 5, 7, times=1.5),
        paces={4: Pace(1.25), 5: Pace(1.25)},
    ),
}  # fmt: skip
# What has to be said, too, where the panel says it by itself.
MORE = {"kernel_sequences": ', operator="aten::linear"'}
UNITS = {"ns": "ns", "pct": "%", "bytes": "bytes", "gbps": "GB/s (10⁹ bytes per s)"}
LONGEST_VALUE = 48

USE = """\
```python
from hta_widgets import BreakdownPanel, Scope, Trace, analysis

trace = Trace.open("run_17/")
analysis.{kind}(trace{more})  # the DataFrame
analysis.{kind}(trace, Scope(ranks=(0, 1)){more})  # the same for a part of the job
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
# Panels by question

Each panel is an analysis: a function `(trace, scope=None) -> DataFrame` in `hta_widgets.analysis`, and a
`KIND` of [`hta-widgets analyze`](../command_line.md). Times are integer nanoseconds, and columns carry their
unit in their name. The sentence and the picture below each question are the answer for the bundled example
`{example}`, a simulated job of four ranks, or for another one that has the data.
"""


def pages() -> dict[str, str]:
    """Name -> Markdown of all pages, the index included."""
    return {"index": _index(), **{kind: _page(item) for kind, item in ANALYSES.items()}}


def fill_in(markdown: str) -> str:
    """Replace the mark `<!-- panels -->` by rows of a table: question and kind of each panel."""
    rows = (f"| {item.title} | `{kind}` |" for kind, item in ANALYSES.items())
    return markdown.replace("<!-- panels -->", "\n".join(rows))


def _index() -> str:
    groups: dict[str, list[Analysis]] = {}
    for item in ANALYSES.values():
        groups.setdefault(item.group, []).append(item)
    parts = [INDEX.format(example=EXAMPLE)]
    for group, members in groups.items():
        parts += [
            f"## {group}",
            *(
                f"### [{item.title}]({item.kind}.md)\n\n{_sentence(item)}\n\n{_image(item)}"
                for item in members
            ),
        ]
        listed = "\n".join(f"{item.label} <{item.kind}>" for item in members)
        parts.append(TOCTREE.format(group=group, pages=listed))
    return "\n\n".join(parts)


def _sentence(analysis: Analysis) -> str:
    return prose(answer_of(analysis.kind)[1])


def _page(analysis_: Analysis) -> str:
    frame, sentence = answer_of(analysis_.kind)
    docstring = sections(getattr(analysis, analysis_.kind))
    parts = [
        f"# {analysis_.title}",
        docstring.summary,
        _picture(analysis_, sentence),
        "## Use",
        use(analysis_.kind),
        *(["## Definition", docstring.text] if docstring.text else []),
        "## Arguments",
        table("argument | meaning", ((f"`{name}`", text) for name, text in docstring.arguments)),
        in_the_panel(analysis_),
        "## Columns",
        docstring.returns,
        columns(frame, _named(analysis_.kind)),
        "## Needs",
        needs(analysis_),
        table("error | when", ((f"`{name}`", text) for name, text in docstring.errors))
        if docstring.errors
        else "",
        "## In HTA",
        _in_hta(analysis_.kind),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def use(kind: str) -> str:
    """What to type for the DataFrame, the panel and the command."""
    return USE.format(kind=kind, more=MORE.get(kind, ""))


def example_of(kind: str) -> str:
    """The job that an analysis is shown on."""
    return OTHER_EXAMPLES.get(kind, EXAMPLE)


def example_path(example: str) -> Path:
    """The folder with its traces; those that are not bundled are simulated first."""
    return _simulated(example) if example in SIMULATED else examples.path(example)


@cache
def _simulated(example: str) -> Path:
    folder = folder_for(example) / example
    folder.mkdir()
    SIMULATED[example].play().write(folder)
    return folder


@cache
def _trace(example: str) -> Trace:
    return Trace.open(example_path(example))


@cache
def answer_of(kind: str) -> tuple[pd.DataFrame | None, str]:
    """What the panel shows of the example: the frame, or none, and the sentence."""
    item = ANALYSES[kind]
    try:
        trace = _trace(example_of(kind))
        frame = item.function(trace)
    except MissingDataError as error:
        return None, str(error)
    return frame, item.said(frame, trace)


def _picture(analysis: Analysis, sentence: str) -> str:
    return f"{_image(analysis)}\n\nThe panel on {_named(analysis.kind)}. {prose(sentence)}"


def _image(analysis: Analysis) -> str:
    return f"![The panel: {analysis.title}](../images/panels/{analysis.kind}-light.webp)"


def _named(kind: str) -> str:
    """The job that an analysis is shown on, in words."""
    example = example_of(kind)
    return f"the {'simulated job' if example in SIMULATED else 'bundled example'} `{example}`"


def in_the_panel(analysis: Analysis) -> str:
    """Which arguments the panel offers."""
    if not analysis.options:
        return ""
    named = (f"*{option.label}* (`{option.name}`" + _unset(option.hint) + ")" for option in analysis.options)
    return f"The panel offers: {', '.join(named)}."


def _unset(hint: str) -> str:
    return f"; unset: {hint}" if hint else ""


def columns(frame: pd.DataFrame | None, example: str) -> str:
    """A row for each column of an answer."""
    if frame is None:
        return f"The answer for {example} has no rows, because the data is missing there."
    rows = ((f"``{name}``", _dtype(frame[name]), _unit(name), _first(frame[name])) for name in frame.columns)
    head = f"The columns of the answer for {example}, with its first row:"
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


def needs(analysis: Analysis) -> str:
    """What must have been recorded."""
    if not analysis.requires:
        return "Nothing but events."
    named = ", ".join(analysis.requires)
    return f"The trace must have: {named}. Otherwise the panel says which profiler option records it."


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
