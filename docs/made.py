"""Where recordings lie that are made for pages."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path


def folder_for(name: str) -> Path:
    """A folder, there until the process ends."""
    folder = tempfile.mkdtemp(prefix=f"{name}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
