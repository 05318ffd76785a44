"""Constants of HTA, and the description of one event argument."""

from __future__ import annotations

import re
import tempfile
from enum import Enum
from pathlib import Path
from typing import NamedTuple

DEFAULT_TRACE_DIR = str(Path(tempfile.gettempdir()) / "trace")
DEFAULT_CONFIG_FILENAME = "trace_analyzer.json"
DF_SYMBOL_COLUMNS = ["cat", "name"]


class YamlVersion(NamedTuple):
    """Version of the argument catalogue."""

    major: int
    minor: int
    patch: int

    def get_version_str(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @staticmethod
    def from_string(version_str: str) -> YamlVersion:
        """Read ``"1.0.0"``.

        Raises:
            ValueError: the text is no version.
        """
        match = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", version_str)
        if match is None:
            raise ValueError(f"no version: {version_str!r}")
        return YamlVersion(*(int(part) for part in match.groups()))


class ValueType(Enum):
    """What an argument holds."""

    Int = 1
    Float = 2
    String = 3
    Object = 4


V1_0_0 = YamlVersion(1, 0, 0)


class AttributeSpec(NamedTuple):
    """One event argument and the column it becomes."""

    name: str  # the column
    raw_name: str  # the key in the event's ``args``
    value_type: ValueType  # what it holds
    default_value: object  # where the event has no such argument
    # of the catalogue; two specs that differ only in it are equal
    min_supported_version: YamlVersion = V1_0_0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AttributeSpec) and tuple(self)[:4] == tuple(other)[:4]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.name, self.raw_name, self.value_type))


class EventArgs(NamedTuple):
    """The catalogue and its groups."""

    AVAILABLE_ARGS: dict[str, AttributeSpec]
    ARGS_INPUT_SHAPE: list[AttributeSpec]
    ARGS_BANDWIDTH: list[AttributeSpec]
    ARGS_SYNC: list[AttributeSpec]
    ARGS_MINIMUM: list[AttributeSpec]
    ARGS_COMPLETE: list[AttributeSpec]
    ARGS_INFO: list[AttributeSpec]
    ARGS_COMMUNICATION: list[AttributeSpec]
    ARGS_TRITON_KERNELS: list[AttributeSpec]
    ARGS_DEFAULT: list[AttributeSpec]
