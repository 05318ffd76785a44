"""Writes a report: the front end's bundle and the frozen parts of an explorer in one HTML file.

The file makes no requests: its Content-Security-Policy allows the one script whose hash it contains, and
nothing else. Text from traces is never part of the markup: it is data that the script reads
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
from hta_widgets.visible import visible
from hta_widgets.whole_files import replacing


@dataclass(frozen=True)
class Question:
    """A call that a view may make, with its answer."""

    method: str  # name of the method
    result: Mapping[str, Any] | None = None  # the answer; None: there is none, and the view does without
    buffers: Sequence[bytes] = ()  # its binary part
    once: bool = False  # answer the first call only; later ones get no answer


@dataclass(frozen=True)
class Frozen:
    """A frozen part: its traits by name, and the calls of its view that can be answered."""

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


def page(parts: Mapping[str, Frozen], root: str, *, title: str, bundle: str, about: Mapping[str, Any]) -> str:
    """The HTML document.

    Args:
        parts: the parts by the reference that others use for them.
        root: the part to draw; it draws the others.
        bundle: text of the front end's JavaScript module.
        about: what the report says about itself, see ``js/src/report/open.tsx``.

    Raises:
        ValueError: the bundle cannot be embedded in a page.
    """
    if _ENDS_SCRIPT.search(bundle):  # esbuild writes neither
        raise ValueError("the front end's bundle would end its own script element")
    content = {
        "root": root,
        "about": dict(about),
        "parts": {
            ref: {"state": dict(part.state), "questions": [_plain(question) for question in part.questions]}
            for ref, part in parts.items()
        },
    }
    return TEMPLATE.format(
        policy=html.escape(_policy(bundle)),
        title=html.escape(visible(title)),
        style=STYLE,
        payload=base64.b64encode(pack(content)).decode(),
        bundle=bundle,
    )


def write(path: str | os.PathLike[str], document: str) -> Path:
    """Write the document to `path` atomically; returns the path.

    Raises:
        OSError: it cannot be written.
    """
    target = Path(path)
    with replacing(target) as file:
        # bytes: converted line ends would break the script's hash
        file.write(document.encode("utf-8", "backslashreplace"))
    return target


def _policy(bundle: str) -> str:
    digest = base64.b64encode(hashlib.sha256(bundle.encode()).digest()).decode()
    # Views set styles and add style sheets, which cannot load anything since no request is allowed. A chart
    # saved as a picture uses an image that the page itself creates.
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
