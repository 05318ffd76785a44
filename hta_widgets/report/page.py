"""Writes a report: the front end's bundle, and the parts of an explorer as they were, in one HTML file.

The file asks nobody for anything: its Content-Security-Policy allows the one script whose hash it names, and
no request. What comes from traces is never part of the markup: it travels as data that the script reads
(``js/src/report``) and draws as text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hta_widgets.report.payload import pack

__all__ = ["Frozen", "Question", "page", "write"]


@dataclass(frozen=True)
class Question:
    """What a view may ask, with the answer.

    Attributes:
        method: name of the question.
        result: the answer; None: there is none, and the view goes on without.
        buffers: its binary part.
        once: answered at the first time only; to later ones there is no answer.
    """

    method: str
    result: Mapping[str, Any] | None = None
    buffers: Sequence[bytes] = ()
    once: bool = False


@dataclass(frozen=True)
class Frozen:
    """A part as it was: its traits by name, and the questions of its view that can be answered."""

    state: Mapping[str, Any]
    questions: Sequence[Question] = ()


TEMPLATE = """<!doctype html>
<html lang="en" data-hta-report>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main><p>Opening the report needs JavaScript, and a browser from 2023 or newer.</p></main>
<script type="text/plain" id="hta-payload">{payload}</script>
<script type="module">{bundle}</script>
</body>
</html>
"""

STYLE = """
:root{color-scheme:light dark}
body{margin:0;background:#fff;color:#1c1e21;font:13px/20px system-ui,sans-serif}
main{max-width:1600px;margin:0 auto;padding:16px}
@media (prefers-color-scheme:dark){body{background:#111418;color:#e8eaed}}
@media print{main{max-width:none;padding:0}}
"""

_ENDS_SCRIPT = re.compile(r"</script|<!--", re.IGNORECASE)


def page(parts: Mapping[str, Frozen], root: str, *, title: str, bundle: str, facts: Mapping[str, Any]) -> str:
    """The HTML document.

    Args:
        parts: the parts by the reference under which others name them.
        root: the part to draw; it draws the others.
        title: of the document.
        bundle: text of the front end's JavaScript module.
        facts: what the report says about itself, see ``js/src/report/open.tsx``.

    Raises:
        ValueError: the bundle cannot stand in a page as it is.
    """
    if _ENDS_SCRIPT.search(bundle):  # esbuild writes neither
        raise ValueError("the front end's bundle would end its own script element")
    content = {
        "root": root,
        "facts": dict(facts),
        "parts": {
            ref: {"state": dict(part.state), "questions": [_plain(question) for question in part.questions]}
            for ref, part in parts.items()
        },
    }
    return TEMPLATE.format(
        policy=html.escape(_policy(bundle)),
        title=html.escape(title),
        style=STYLE,
        payload=base64.b64encode(pack(content)).decode(),
        bundle=bundle,
    )


def write(path: str | os.PathLike[str], document: str) -> Path:
    """Write the document to `path`, whole or not at all; returns the path.

    Raises:
        OSError: it cannot be written.
    """
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        # bytes: a platform that turns line ends would break the script's hash
        beside.write_bytes(document.encode("utf-8", "backslashreplace"))
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
    return target


def _policy(bundle: str) -> str:
    digest = base64.b64encode(hashlib.sha256(bundle.encode()).digest()).decode()
    # Views set styles and add style sheets; a style can load nothing where nothing may be loaded. A chart
    # that is saved as a picture goes through an image that the page itself makes.
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _plain(question: Question) -> dict[str, Any]:
    return {
        "method": question.method,
        "result": question.result,
        "buffers": list(question.buffers),
        "once": question.once,
    }
