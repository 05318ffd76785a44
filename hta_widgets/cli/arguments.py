"""The arguments of the command line. Imports nothing slow: `--help` must appear at once."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from hta_widgets.cli.exits import UsageError, codes_in_words
from hta_widgets.cli.limits import LINES, MEASURES, limit
from hta_widgets.cli.values import assignment, numbers, span
from hta_widgets.version import __version__

FORMATS = ("table", "csv", "json", "parquet", "xlsx")

_EXAMPLES = """\
examples:
  hta-widgets diagnose run_17/ --json
  hta-widgets summary run_17/
  hta-widgets analyze temporal_breakdown run_17/ --ranks 0,2-5 --option by=iteration --format csv
  hta-widgets analyze idle_gaps run_17/ --window 10ms:25ms -o gaps.parquet
  hta-widgets what-if run_17/ --edit "kernels(2.0, name='*gemm*')"
  hta-widgets health run_17/ --fail-on warning
  hta-widgets report run_17/ -o report.html
  hta-widgets diff run_17/ run_18/ --fail-on "step_time>+3%"

exit codes:
"""


class _Parser(argparse.ArgumentParser):
    """Reports a mistake in one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


class _ListKinds(argparse.Action):
    """`--list` needs no trace, as `--version` needs none."""

    def __init__(self, **given: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, **given)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        import_module("hta_widgets.cli.kinds").print_kinds()
        parser.exit()


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments; `command` names the module of `hta_widgets.cli` that runs them.

    Raises:
        UsageError: they are invalid.
    """
    parser = _Parser(
        prog="hta-widgets",
        description="Answers from PyTorch profiler (Kineto) traces of many ranks.",
        epilog=_EXAMPLES + codes_in_words(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"hta-widgets {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    command = _command(commands, "summary", "what the job is, where its time goes, and what to look at first")
    _add_scope(command)
    command.add_argument("--json", action="store_true", help="print JSON")
    _add_output(command)

    command = _command(
        commands, "diagnose", "the evidence: what costs time, how much, what to do, and how far to trust it"
    )
    _add_scope(command)
    command.add_argument("--json", action="store_true", help="print JSON of the schema hta-evidence/1")
    command.add_argument("--markdown", action="store_true", help="print Markdown (default)")
    command.add_argument(
        "--budget", metavar="TOKENS", type=_typed(_count), default=4000,
        help="most tokens of the JSON, four characters each (default and most: 4000)",
    )  # fmt: skip
    _add_output(command)

    command = _command(commands, "event", "everything about events", refs=True)
    command.add_argument("--json", action="store_true", help="print JSON")
    command.add_argument(
        "--budget", metavar="TOKENS", type=_typed(_count), default=600,
        help="most tokens for each event (default: 600)",
    )  # fmt: skip
    command.add_argument(
        "--clock", choices=("auto", "host", "device"), default="auto", help="what times the iterations"
    )
    _add_output(command)

    command = _command(commands, "analyze", "the answer of one analysis", kind=True)
    _add_scope(command)
    what = "an argument of the analysis, as --list shows them"
    _add_several(command, "--option", "KEY=VALUE", what, type=_typed(assignment))
    _add_format(command)
    what = "only rows such as 'dur_ns>1ms', rank=2 or name~gemm (contains)"
    _add_several(command, "--where", "CONDITION", what, dest="where")
    command.add_argument(
        "--sort",
        metavar="COLUMN",
        help="sort by a column, largest first; COLUMN:asc: smallest first; none: as the analysis has them "
        "(default: what matters first in tables and JSON, else none)",
    )
    command.add_argument("--columns", metavar="A,B", help="only these columns, in this order (default: all)")
    command.add_argument(
        "--top",
        "--limit",
        dest="limit",
        metavar="N",
        type=_typed(_count),
        help="most rows to print (default: 40 in a table, else all)",
    )
    _add_budget(command)
    _add_output(command)

    command = _command(commands, "what-if", "how long the iterations would take after a change")
    what = "a change as in 'kernels(2.0, name=\"*gemm*\")', by the functions of hta_widgets.edits"
    _add_several(command, "--edit", "EDIT", what, ", for changes made together")
    what = "the change against a finding of diagnose, such as data_stall"
    _add_several(command, "--finding", "ID", what)
    command.add_argument(
        "--path", action="store_true", help="also print what the time waits for, along the new critical path"
    )
    _add_window(_add_part(command))
    command.set_defaults(streams=None)
    _add_format(command)
    _add_budget(command)
    _add_output(command)

    command = _command(commands, "health", "what is wrong, missing or doubtful in the trace")
    command.add_argument("--json", action="store_true", help="print JSON")
    _add_budget(command)
    command.add_argument(
        "--fail-on",
        choices=("error", "warning", "never"),
        default="error",
        help="exit with 1 if there is a finding at least as severe (default: error)",
    )
    _add_output(command)

    command = _command(commands, "report", "the explorer as one HTML file that works offline")
    _add_scope(command)
    command.add_argument(
        "--panels",
        metavar="KIND,...",
        help="the panels to show, or all (default: those for a first look that the trace has data for)",
    )
    command.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        required=True,
        help="the HTML file to write; with the ending .xlsx an Excel workbook of the run's tables, with .md "
        "the findings as Markdown",
    )
    command.add_argument(
        "--paths",
        dest="shown_paths",
        choices=("short", "full"),
        default="short",
        help="full: keep the folders of files and of Python code in the file (default: short)",
    )

    command = _command(
        commands, "diff", "what changed between runs, and whether it is within limits", many=True
    )
    command.add_argument(
        "--name",
        metavar="NAME",
        action="append",
        dest="names",
        help="name of a run; once for each, in their order (default: the names of the folders or files)",
    )
    command.add_argument(
        "--by", choices=LINES, help="what to compare line by line (default: kernel; op without device events)"
    )
    _add_part(command)
    command.add_argument(
        "--top",
        metavar="N",
        type=_typed(_count),
        help="maximum number of lines, those that changed most (default: 20 in a table, else all)",
    )
    what = "exit with 1 if a metric changed by more, beyond noise, as in 'step_time>+3%%'"
    metrics = f"; the metrics: {', '.join(MEASURES)}, and lines, as in 'kernel:\"gemm\">+5%%'"
    _add_several(command, "--fail-on", "LIMIT", what, metrics, dest="limits", type=_typed(limit))
    _add_format(command)
    command.add_argument(
        "--budget", metavar="TOKENS", type=_typed(_count), help="most tokens of JSON (default: any number)"
    )
    _add_output(command)

    command = _command(commands, "check", "whether a change saved what a finding predicted", many=True)
    command.add_argument(
        "--finding",
        metavar="ID",
        required=True,
        help="the finding of diagnose about the first run that the change is against, such as data_stall",
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    _add_part(command)
    _add_output(command)

    what = "how an agent is to use these commands: a skill (SKILL.md)"
    command = commands.add_parser("skill", help=what, description=f"Print {what}.")
    command.add_argument(
        "--write", metavar="DIR", help="write it to DIR/hta-widgets/SKILL.md instead, and print that name"
    )
    _add_behaviour(command)

    what = "a server of the Model Context Protocol on standard input and output"
    command = commands.add_parser("mcp", help=what, description=f"Run {what}; it reads, and writes nothing.")
    command.add_argument(
        "roots", metavar="ROOT", nargs="+", help="folders, or files, that may be read; nothing else is"
    )
    command.add_argument("--allow-urls", action="store_true", help="also open URLs, with your credentials")
    _add_behaviour(command)

    what = "what a memory snapshot of PyTorch holds, who requested it, and why memory ran out"
    command = commands.add_parser("memory", help=what, description=f"Print {what}.")
    command.add_argument("paths", metavar="PATH", nargs=1, help="a file of torch.cuda.memory._dump_snapshot")
    command.add_argument(
        "--by",
        choices=("line", "module", "stack", "annotation"),
        default="line",
        help="what memory belongs to (default: the line of code that is not PyTorch's own)",
    )
    command.add_argument(
        "--top", metavar="N", type=_typed(_count), default=10, help="maximum number of rows (default: 10)"
    )
    command.add_argument(
        "--trace", metavar="TRACE", help="a recording of the same run, for what ran when most was allocated"
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    _add_behaviour(command)
    _add_output(command, "; with the ending .html a page with charts")

    what = "compile now what the first answers on a machine would otherwise wait for"
    command = commands.add_parser("warm-up", help=what, description=f"{what.capitalize()}.")
    _add_behaviour(command)
    return parser.parse_args(argv)


def _command(
    commands: Any, name: str, what: str, kind: bool = False, many: bool = False, refs: bool = False
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=what,
        description=f"Print {what}." if name != "report" else f"Write {what}.",
        epilog="exit codes:\n" + codes_in_words(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if kind:
        parser.add_argument("--list", action=_ListKinds, help="print the kinds and their options, and exit")
        parser.add_argument("kind", metavar="KIND", help="which analysis; see --list")
    if many:
        parser.add_argument(
            "paths",
            metavar="RUN",
            nargs="+",
            help="two or more: a folder with a file per rank, a file, or a URL for fsspec; the others are "
            "compared with the first",
        )
    else:
        parser.add_argument(
            "paths",
            metavar="PATH" if not refs else "PATH RANK:ID",
            nargs="+",
            help="a folder with a file per rank, files, or URLs for fsspec"
            + ("; then the events, as diagnose names them" if refs else ""),
        )
    _add_reading(parser)
    _add_behaviour(parser)
    return parser


def _add_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--recording",
        metavar="NAME",
        help="of several recordings in one folder (jobs, or one job at several times) the one to open; "
        "default: the last, if the files say for certain that there are several",
    )
    parser.add_argument(
        "--capture",
        metavar="PATH",
        help="a file or folder of traces that record the capture of the graphs that a server replays; "
        "default: those beside the trace",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="of a Dask cluster, whose workers read the files and answer, e.g. tcp://host:8786",
    )


def _add_several(
    parser: argparse.ArgumentParser, name: str, metavar: str, what: str, more: str = "", **known: Any
) -> None:
    known.setdefault("dest", f"{name.removeprefix('--')}s")
    said = f"{what}; may be given several times{more}"
    parser.add_argument(name, metavar=metavar, action="append", default=[], help=said, **known)


def _add_behaviour(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress and no warnings on stderr")
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")


def _add_part(parser: argparse.ArgumentParser) -> Any:
    part = parser.add_argument_group("the part of the job to look at (default: all of it)")
    part.add_argument("--ranks", metavar="0,2-5", type=_typed(numbers), help="ranks")
    part.add_argument("--iterations", metavar="10,11", type=_typed(numbers), help="iterations")
    part.add_argument(
        "--clock",
        choices=("auto", "host", "device"),
        default="auto",
        help="what times the iterations; auto: the device if it runs far behind the host",
    )
    return part


def _add_scope(parser: argparse.ArgumentParser) -> None:
    scope = _add_part(parser)
    scope.add_argument("--streams", metavar="7,20", type=_typed(numbers), help="device streams")
    _add_window(scope)


def _add_window(part: Any) -> None:
    part.add_argument(
        "--window",
        metavar="10ms:25ms",
        type=_typed(span),
        help="time since the job's start, with its unit: ns, us, ms or s; an end may be left out",
    )


def _add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMATS, help="default: what the ending of -o says, else table")


def _add_budget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--budget",
        metavar="TOKENS",
        type=_typed(_budget),
        help="most tokens of JSON, four characters each, or all (default: 4000 to stdout, all to a file)",
    )


def _add_output(parser: argparse.ArgumentParser, more: str = "") -> None:
    what = f"write to a file instead of stdout{more}"
    parser.add_argument("-o", "--output", metavar="FILE", default="-", help=what)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"{text!r} is not a number of rows")
    return int(text)


def _budget(text: str) -> int | str:
    if text != "all" and (not text.isdecimal() or not int(text)):
        raise UsageError(f"{text!r} is not a number of tokens, nor all")
    return text if text == "all" else int(text)


def _typed(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """`convert` as argparse wants it, so that its message comes with the name of the argument."""

    def typed(text: str) -> Any:
        try:
            return convert(text)
        except UsageError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return typed
