"""What a tool of the MCP server answers: the text of its command, or an error with a remedy."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from hta_widgets.analysis.evidence.budget import dumped
from hta_widgets.analysis.evidence.names import cleaned
from hta_widgets.cli.arguments import parse
from hta_widgets.cli.exits import Exit, UsageError, code_of
from hta_widgets.cli.mcp_tools import Tool
from hta_widgets.cli.output import taken
from hta_widgets.cli.paths import check_paths
from hta_widgets.errors import HtaWidgetsError

_MOST_FILES: Final = 100_000
_MESSAGE: Final = 400
_REMEDIES: Final = {
    Exit.USAGE: "Correct the arguments; the message names what there is.",
    Exit.UNREADABLE: "Name a trace of torch.profiler, or the folder that holds its files.",
    Exit.MISSING: "Record again as the message says; or ask another question.",
    Exit.INTERNAL: "Please report it: this is a fault of hta_widgets.",
}


@dataclass(frozen=True)
class Roots:
    """The folders and files that may be read, resolved; and whether URLs may be opened."""

    paths: tuple[Path, ...]
    urls: bool = False

    @classmethod
    def of(cls, paths: Sequence[str], urls: bool) -> Roots:
        """The roots of these paths.

        Raises:
            UsageError: one does not exist.
        """
        for path in paths:
            if not Path(path).exists():
                raise UsageError(f"the root {path} does not exist")
        return cls(tuple(Path(path).resolve() for path in paths), urls)

    def check(self, path: str) -> None:
        """Check that a path, and every file below it, lies within the roots, links followed.

        Raises:
            UsageError: it does not, or it is standard input, or a URL and those are not allowed.
        """
        if "://" in path or "::" in path:
            if not self.urls:
                raise UsageError(f"{path}: URLs are not allowed; start the server with --allow-urls")
            return
        if path == "-" or not self._holds(Path(path)):
            raise UsageError(f"{path} is not below a root of this server: {', '.join(map(str, self.paths))}")
        for at, (folder, folders, files) in enumerate(os.walk(path)):
            for name in (*folders, *files):
                if Path(folder, name).is_symlink() and not self._holds(Path(folder, name)):
                    raise UsageError(f"{path} holds a link to a file that is not below a root: {name}")
            if at > _MOST_FILES:
                raise UsageError(f"{path} holds too many folders: name the one of the recording")

    def _holds(self, path: Path) -> bool:
        resolved = path.resolve()
        return any(resolved.is_relative_to(root) for root in self.paths)


def answered(roots: Roots, tool: Tool, given: Mapping[str, Any]) -> tuple[str, bool]:
    """The text of an answer, and whether it is an error.

    Args:
        roots: what may be read.
        given: the arguments of the client, not yet checked.
    """
    try:
        _check(tool, given)
        paths = [path for name in tool.paths for path in _listed(given[name])]
        for path in paths:
            roots.check(path)
        arguments = parse(tool.argv(given, paths))
        arguments.quiet = True
        check_paths(paths)
        command = import_module(f"hta_widgets.cli.{arguments.command.replace('-', '_')}")
        with taken() as lines:
            command.run(arguments)
    except Exception as error:
        return dumped(refused(error)), True
    return "".join(f"{line}\n" for line in lines), False


def refused(error: Exception) -> dict[str, Any]:
    """An error as a result: its code is the exit code of the command line."""
    code = code_of(error)
    known = isinstance(error, HtaWidgetsError)
    message = str(error) if known else f"internal error, {type(error).__name__}"
    remedy = str(getattr(error, "remedy", "") or _REMEDIES.get(code, ""))
    said = {"code": int(code), "message": cleaned(message, _MESSAGE), "remedy": cleaned(remedy, _MESSAGE)}
    return {"error": said}


def _check(tool: Tool, given: Mapping[str, Any]) -> None:
    """Check arguments against the schema of their tool.

    Raises:
        UsageError: they do not fit.
    """
    import jsonschema  # comes with the package mcp

    found = jsonschema.Draft202012Validator(tool.schema).iter_errors(given)
    wrong = min(found, key=lambda error: list(map(str, error.path)), default=None)
    if wrong is not None:
        where = "".join(f"{part}: " for part in wrong.path)
        raise UsageError(f"{tool.name}: {where}{wrong.message}")


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
