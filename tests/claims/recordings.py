"""All recordings that there are to check sentences on: the bundled examples, and the shared ones."""

from __future__ import annotations

from pathlib import Path

from hta_widgets import examples
from tests.support import ROOT, SHARED_TRACES

__all__ = ["EXAMPLES", "SHARED", "path_of"]

_BESIDE = SHARED_TRACES.parent


def _shared() -> list[str]:
    found = [f"traces/{path.relative_to(SHARED_TRACES)}" for path in _files(SHARED_TRACES)]
    for folder in ("recordings", "cases", "cases/serving"):
        if (_BESIDE / folder).is_dir():
            found += [
                f"{folder}/{each.name}"
                for each in sorted((_BESIDE / folder).iterdir())
                if each.name not in ("serving", "README.md")
            ]
    return found


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [path for path in sorted(folder.rglob("*")) if path.name.endswith((".json", ".json.gz"))]


EXAMPLES = examples.names()
SHARED = _shared()


def path_of(name: str) -> Path:
    """Where a recording lies."""
    if name in EXAMPLES:
        return ROOT / "hta_widgets" / "examples" / "data" / name
    if name.startswith("traces/"):
        return SHARED_TRACES / name.removeprefix("traces/")
    return _BESIDE / name
