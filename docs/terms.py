"""The page of terms: what several analyses mean by a word, from the docstring that defines it.

Docstrings refer to these by the name in the code, which is no public name. On the site that is the heading.
"""

from typing import Any

from docs.docstrings import sections
from hta_widgets.analysis.communication import matching
from hta_widgets.analysis.compare import agreement, call_lines, moves, noise, sampling
from hta_widgets.trace.rank_trace import RankTrace

PAGE = "terms.md"

# The name in docstrings -> heading, and what has the docstring.
TERMS: dict[str, tuple[str, Any]] = {
    "sampling.sample": ("Steps that count", sampling.sample),
    "noise": ("Noise", noise),
    "agreement": ("Agreement", agreement),
    "moves.origins": ("Lines that moved", moves.origins),
    "call_lines.phase_lines": ("Phases", call_lines.phase_lines),
    "RankTrace.members": ("Events of a scope", RankTrace.members),
    "RankTrace.windows": ("Windows of a scope", RankTrace.windows),
    "RankTrace.iteration": ("Iteration of an event", RankTrace.iteration),
    "matching.match": ("Kernels of one collective", matching.match),
}

# Name -> heading, and where it is.
TARGETS = {
    name: (heading, f"{PAGE}#{heading.lower().replace(' ', '-')}") for name, (heading, _) in TERMS.items()
}

HEAD = """\
# Terms

Terms that several [analyses](analyses/index.md) and [comparisons](comparisons/index.md) use.
"""


def page() -> str:
    """The page in Markdown."""
    parts = [HEAD]
    for name, (heading, described) in TERMS.items():
        docstring = sections(described)
        where = f"In the code: ``{name}``."  # in double quotes it becomes no link to this very place
        parts += [f"## {heading}", docstring.summary, docstring.text, where]
    return "\n\n".join(part for part in parts if part) + "\n"
