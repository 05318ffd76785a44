"""Whether a trace file is one that the analyses can read, and which event arguments it lacks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

import pandas as pd

from hta_widgets.errors import HtaWidgetsError
from hta_widgets.hta.common.trace_file import read_trace
from hta_widgets.hta.configs.default_event_args import event_args
from hta_widgets.hta.configs.default_values import AttributeSpec, ValueType

LEVELS = ("minimal", "standard", "complete")
_TYPES: Mapping[ValueType, tuple[type, ...]] = {
    ValueType.Int: (int,),
    ValueType.Float: (int, float),
    ValueType.String: (str,),
    ValueType.Object: (object,),
}


def get_argument_spec(level: str = "standard") -> list[AttributeSpec]:
    """The arguments that a level expects.

    Raises:
        ValueError: there is no such level.
    """
    groups = event_args()
    chosen = dict(zip(LEVELS, (groups.ARGS_MINIMUM, groups.ARGS_DEFAULT, groups.ARGS_COMPLETE), strict=True))
    if level not in chosen:
        raise ValueError(f"level is one of {', '.join(LEVELS)}, not {level!r}")
    return chosen[level]


def get_expected_arguments(attribute_specs: list[AttributeSpec]) -> pd.DataFrame:
    """The arguments of a level as a table.

    Returns:
        One row per argument: arg_keys (key in the file), arg_value_types (`ValueType`), arg_default_values,
        trace_df_column_name (column of HTA's frames).
    """
    return pd.DataFrame(
        {
            "arg_keys": [spec.raw_name for spec in attribute_specs],
            "arg_value_types": [spec.value_type for spec in attribute_specs],
            "arg_default_values": [spec.default_value for spec in attribute_specs],
            "trace_df_column_name": [spec.name for spec in attribute_specs],
        }
    )


def validate_trace_format(
    trace_file_path: str, level: str = "standard", ignore_missing_arguments: bool = True
) -> tuple[bool, dict[str, list[str]]]:
    """Check a trace file.

    Args:
        level: "minimal", "standard" or "complete": which arguments are looked at.
        ignore_missing_arguments: arguments that no event has are no error.

    Returns:
        Whether the file is valid, and what is wrong by kind: ``trace_read_error``, ``trace_data_error``,
        ``args_data_type``, ``skipped_arguments``, ``type_violations``.
    """
    specs = get_argument_spec(level)
    try:
        document = read_trace(trace_file_path)
    except (HtaWidgetsError, OSError, ValueError, EOFError) as error:
        return False, {"trace_read_error": [str(error)]}
    events = document.get("traceEvents")
    if not isinstance(events, list) or not events:
        return False, {"trace_data_error": ["there are no traceEvents"]}
    lasting = [event for event in events if isinstance(event, dict) and "dur" in event and "cat" in event]
    if not lasting:
        return False, {"trace_data_error": ["no event has a duration and a category"]}
    with_args = [event["args"] for event in lasting if "args" in event]
    errors: dict[str, list[str]] = {}
    if wrong := sum(not isinstance(args, dict) for args in with_args):
        errors["args_data_type"] = [f"args of {wrong} events is no object"]
    values = [args for args in with_args if isinstance(args, dict)]
    present = set().union(*values)
    missing = [spec.raw_name for spec in specs if spec.raw_name not in present]
    if missing and not ignore_missing_arguments:
        errors["skipped_arguments"] = missing
    violations = [text for spec in specs if (text := _violation(spec, values))]
    if violations:
        errors["type_violations"] = violations
    return not errors, errors


def _violation(spec: AttributeSpec, values: list[dict[str, Any]]) -> str:
    allowed = _TYPES[spec.value_type]
    found = {type(args[spec.raw_name]) for args in values if spec.raw_name in args}
    wrong = sorted(event.__name__ for event in found if not issubclass(event, allowed))
    return f"{spec.raw_name} holds {', '.join(wrong)}, not {spec.value_type.name}" if wrong else ""


def main(arguments: list[str] | None = None) -> int:
    """``python -m hta_widgets.hta.utils.validate_trace FILE [--level LEVEL]``; 0 for a valid file, else 1."""
    parser = argparse.ArgumentParser(description="Check a trace file.")
    parser.add_argument("file")
    parser.add_argument("--level", choices=LEVELS, default="standard")
    chosen = parser.parse_args(arguments)
    valid, errors = validate_trace_format(chosen.file, chosen.level)
    for kind, details in errors.items():
        for detail in details:
            print(f"{kind}: {detail}")  # noqa: T201 - the answer
    print("valid" if valid else "not valid")  # noqa: T201 - the answer
    return 0 if valid else 1


if __name__ == "__main__":
    sys.exit(main())
