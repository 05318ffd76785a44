"""HTA's `hta.utils.checker`: can a folder be used?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass
class OperationOutcome:
    """Whether something succeeded, and if not, why (else ``""``)."""

    success: bool
    reason: str


def is_valid_directory(path_to_directory: str, must_be_writable: bool = False) -> OperationOutcome:
    """Is this a folder that can be read, and written if asked for?"""
    reason = _objection(path_to_directory, must_be_writable)
    return OperationOutcome(not reason, reason)


def _objection(folder: str, must_be_writable: bool) -> str:
    if not folder:
        return "the path is empty: a non-empty string is needed"
    if not Path(folder).exists():
        return f"{folder!r} does not exist"
    if not Path(folder).is_dir():
        return f"{folder!r} is not a directory"
    if not os.access(folder, os.R_OK):
        return f"{folder!r} is not readable"
    if must_be_writable and not os.access(folder, os.W_OK):
        return f"{folder!r} is not writable"
    return ""
