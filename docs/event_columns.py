"""Writes event_columns.md from the schema: `python docs/event_columns.py`; a test compares the two."""

from pathlib import Path

from hta_widgets.trace.reader.schema import ARGUMENT_COLUMNS, Column

PAGE = Path(__file__).with_suffix(".md")

HEAD = """\
# Columns of the event table

`trace.events(scope)` returns one row per event with a duration. Absent values are null (`<NA>` or NaN),
never -1. This page is written by `docs/event_columns.py`.

## Always there

| column | dtype | meaning |
|---|---|---|
| `rank` | int64 | rank of the file |
| `event_id` | int64 | number of the event in its file, from 0; it and `rank` identify an event permanently |
| `name` | category | name, as in the file |
| `category` | category | the trace's own `cat` |
| `event_class` | category | compute, communication, memory_copy, memory_set, sync, host_op, runtime, \
annotation, python, overhead or other |
| `pid`, `tid` | category | process and thread or stream, as text |
| `device`, `stream` | Int64 | where a device event ran |
| `start_ns`, `end_ns` | int64 | ns since the job's start |
| `dur_ns` | int64 | `end_ns` - `start_ns` |
| `correlation` | Int64 | ties a device event to the host call that launched it |
| `launch_id` | Int64 | `event_id` of that call |
| `iteration` | Int64 | iteration it belongs to; for a device event, that of its launch |
| `parent_id` | Int64 | `event_id` of the enclosing host event on the same thread |
| `depth` | Int64 | nesting depth on its thread, from 0; null for device events |
| `mark` | category | what cannot be true about it, "" for nothing: "late_end", ... (`trace.records()`) |

## Arguments, where the trace has them

| column | key in the file | type | meaning |
|---|---|---|---|
"""


def page() -> str:
    """The page's text."""
    return HEAD + "".join(map(_row, ARGUMENT_COLUMNS))


def _row(column: Column) -> str:
    keys = ", ".join(f"`{key}`" for key in (column.key, *column.aliases))
    meaning = f"{column.doc} ({column.unit})" if column.unit else column.doc
    return f"| `{column.name}` | {keys} | {column.kind} | {meaning} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
