"""A command run in this process, with traces that stay open from one command to the next."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hta_widgets.cli import main

__all__ = ["Answer", "ask", "filled"]


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def tokens(self) -> int:
        return -(-len(self.out) // 4)


def ask(*argv: object) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in argv])
    return Answer(code, out.getvalue(), err.getvalue())


def filled(argv: Sequence[str], trace: object) -> list[str]:
    """The arguments of a command of a document, about this trace, without the program's name."""
    assert argv[0] == "hta-widgets"
    return [str(trace) if word == "TRACE" else word for word in argv[1:]]
