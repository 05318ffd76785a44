"""Builds the documentation site: `python -m docs.build [FOLDER]`, by default into site/.

Sphinx reads the Markdown files of this folder from a copy, in which

- each analysis and comparison has a page, made from its docstring and from its answer to bundled examples,
  and what their docstrings call by a name of the code has another one;
- each finding has a picture and an example, on one page;
- the marks `<!-- panels -->`, `<!-- methods of CLASS -->` and `<!-- names: GROUP -->` are replaced by what
  the code says;
- the name of an analysis or a finding is a link to its page, and a picture is there for the light and the
  dark theme.

The files themselves hold none of it, so that they read well where nobody builds the site. A warning, such as
a link that leads nowhere, ends the build. The site asks no server for anything.
"""

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from sphinx.cmd.build import build_main

from docs import analysis_pages, comparison_pages, finding_pages, hta_methods, public_names, terms
from hta_widgets.analysis import ANALYSES, COMPARISONS

HERE = Path(__file__).parent
# Page -> the pages below it, which the page's text need not name.
CONTENTS = {
    "index.md": (
        "Getting started <getting_started>",
        "How to <how_to/index>",
        "Panels by question <analyses/index>",
        "Reference <reference>",
        "Explanation <explanation>",
    ),
    "how_to/index.md": (
        "Record <../recording>",
        "Open recordings <open>",
        "Why is the GPU idle? <idle>",
        "Find a slow rank <slow_rank>",
        "Operators and kernels <kernels>",
        "Memory <memory>",
        "Communication <communication>",
        "Try a change <try_a_change>",
        "Compare runs <compare>",
        "Gate a pull request <ci>",
        "Share and export <share>",
        "Serving <serving>",
        "Parallelism <parallelism>",
        "A view of your own <own_view>",
        "With an agent <../agents>",
        "From another tool <../migration>",
        "Troubleshooting <../troubleshooting>",
    ),
    "reference.md": (
        "The explorer <explorer>",
        "Python <api>",
        "Command line <command_line>",
        "Findings <findings>",
        "Findings by example <finding_examples>",
        "comparisons/index",
        "Columns of events <event_columns>",
        "terms",
        "Formulas <formulas>",
        "Hosts <hosts>",
        "hta",
        "Differences from HTA <differences>",
    ),
    "explanation.md": (
        "Which time is which <time>",
        "Can I trust this recording? <recordings>",
        "What would a change save? <what_if>",
        "Savings that came true <measured_savings>",
        "Trust <trust>",
        "performance",
        "Scaling <scaling>",
    ),
}
FENCED = r"^```.*?^```"
# As code it is a link, and a term a word. `diff` alone is also a command.
TARGETS = {f"analysis.{comparison_pages.function_of(kind)}": f"comparisons/{kind}.md" for kind in COMPARISONS}
TARGETS |= {f"{prefix}{kind}": f"analyses/{kind}.md" for kind in ANALYSES for prefix in ("", "analysis.")}
TARGETS |= {topic: finding_pages.anchor(topic) for topic in finding_pages.TOPICS}
# Fenced code, or such a name that is no link yet.
NAME = re.compile(
    rf"{FENCED}|(?<![\[`])`({'|'.join(map(re.escape, [*TARGETS, *terms.TARGETS]))})`(?![\]`])",
    re.DOTALL | re.MULTILINE,
)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]*)-light\.webp\)")


def main(output: Path) -> int:
    """Build the site; returns the exit status of Sphinx."""
    with tempfile.TemporaryDirectory(prefix="hta_widgets-docs-") as folder:
        source = Path(folder) / "docs"
        write_source(source)
        flags = ["-q", "-W", "--keep-going", "-E", "-b", "html", "-d", f"{folder}/doctrees", "-c", str(HERE)]
        return build_main([*flags, str(source), str(output)])


def write_source(source: Path) -> None:
    """Write what Sphinx reads."""
    shutil.copytree(HERE / "images", source / "images")
    written = sorted(HERE.rglob("*.md"))
    pages = {page.relative_to(HERE).as_posix(): page.read_text(encoding="utf-8") for page in written}
    pages[terms.PAGE] = terms.page()
    pages[finding_pages.PAGE] = finding_pages.page()
    (source / "images/findings").mkdir()
    for topic, picture in finding_pages.pictures().items():
        (source / f"images/findings/{topic}.svg").write_text(picture, encoding="utf-8")
    for name, below in CONTENTS.items():
        pages[name] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(below) + "\n```\n"
    pages |= {f"analyses/{name}.md": text for name, text in analysis_pages.pages().items()}
    pages |= {f"comparisons/{name}.md": text for name, text in comparison_pages.pages().items()}
    for name, text in pages.items():
        path = source / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(_completed(text, name), encoding="utf-8")


def _completed(text: str, name: str) -> str:
    for complete in (analysis_pages.fill_in, hta_methods.fill_in, public_names.fill_in):
        text = complete(text)
    text = PICTURE.sub(
        lambda found: " ".join(
            f"![{found[1]}]({found[2]}-{theme}.webp){{.only-{theme} loading=lazy}}"
            for theme in ("light", "dark")
        ),
        text,
    )

    def link(found: re.Match[str]) -> str:
        code = found[1] or ""
        title, target = terms.TARGETS.get(code) or (found[0], TARGETS.get(code, name))
        if target == name:
            return found[0]
        return f"[{title}]({os.path.relpath(target, Path(name).parent)})"

    return NAME.sub(link, text)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "site")))
