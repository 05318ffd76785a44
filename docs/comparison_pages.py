"""A page for each comparison of runs: its docstring, and what it answers to bundled examples."""

from functools import cache

import pandas as pd

from docs.analysis_pages import columns, in_the_panel, needs, table
from docs.docstrings import prose, sections
from hta_widgets import Trace, analysis, examples
from hta_widgets.analysis import COMPARISONS
from hta_widgets.analysis.core.entry import Analysis

EXAMPLES = {
    "Baseline": "gpt2_baseline",
    "DDP": "gpt2_ddp",
    "FULL_SHARD": "gpt2_fsdp_full_shard",
    "SHARD_GRAD_OP": "gpt2_fsdp_shard_grad_op",
}

USE = """\
```python
from hta_widgets import ComparisonPanel, Trace, analysis

runs = {{"before": Trace.open("run_17/"), "after": Trace.open("run_18/")}}
analysis.{function}(runs)  # the DataFrame
ComparisonPanel(runs, "{kind}")  # the panel alone
```

In a [`DiffViewer`](../how_to/compare.md), `viewer.frame("{kind}")` returns what its panel shows.
"""

INDEX = """\
# Comparisons

Each comparison is a function of `hta_widgets.analysis` and a panel of the
[`DiffViewer`](../how_to/compare.md). The function takes `runs`, a mapping of names to traces, and
`scope=`, one for all runs or one for each, and returns a DataFrame. The first run is what the others are
compared with. The sentence below each title is the answer for four bundled examples, one training in four
setups.
[`hta-widgets diff`](../command_line.md#diff) gives the same answers in a terminal and in CI.
"""


def pages() -> dict[str, str]:
    """Name -> Markdown of all pages, the index included."""
    return {"index": _index(), **{kind: _page(item) for kind, item in COMPARISONS.items()}}


def function_of(kind: str) -> str:
    """Its name in `hta_widgets.analysis`: that of the same question about one job is taken."""
    return "strategies" if kind == "training_strategy" else kind


def has_picture(kind: str) -> bool:
    """Whether its page shows the panel: those that are a table only look like the table below."""
    return COMPARISONS[kind].chart is not None


def _index() -> str:
    listed = "\n".join(f"{item.label} <{kind}>" for kind, item in COMPARISONS.items())
    entries = (f"[{item.title}]({kind}.md)  \n{_sentence(item)}" for kind, item in COMPARISONS.items())
    return "\n\n".join([INDEX, *entries, f"```{{toctree}}\n:hidden:\n\n{listed}\n```"])


def _page(analysis_: Analysis) -> str:
    function = function_of(analysis_.kind)
    docstring = sections(getattr(analysis, function))
    parts = [
        f"# {analysis_.title}",
        docstring.summary,
        *(
            [f"![The panel: {analysis_.title}](../images/comparisons/{analysis_.kind}-light.webp)"]
            if has_picture(analysis_.kind)
            else []
        ),
        f"For four bundled examples: {_sentence(analysis_)}",
        "## Use",
        USE.format(kind=analysis_.kind, function=function),
        *(["## Definition", docstring.text] if docstring.text else []),
        "## Arguments",
        table("argument | meaning", ((f"`{name}`", text) for name, text in docstring.arguments)),
        in_the_panel(analysis_),
        "## Columns",
        docstring.returns,
        columns(_answer(analysis_.kind), "these examples"),
        "## Needs",
        needs(analysis_),
        table("error | when", ((f"`{name}`", text) for name, text in docstring.errors)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


@cache
def _runs() -> dict[str, Trace]:
    return {name: Trace.open(examples.path(example)) for name, example in EXAMPLES.items()}


@cache
def _answer(kind: str) -> pd.DataFrame:
    return COMPARISONS[kind].function(_runs())


def _sentence(analysis: Analysis) -> str:
    return prose(analysis.sentence(_answer(analysis.kind)))
