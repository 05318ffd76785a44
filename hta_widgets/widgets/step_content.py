"""Two steps beside each other as plain values, for the panel of steps and the inspector."""

from __future__ import annotations

from typing import Any

from hta_widgets.analysis.idle.split import SERIES
from hta_widgets.analysis.inspect.step_difference import StepDifference
from hta_widgets.kernel_names import short_kernel_name

_CLASSES = {"memory_copy": "memory", "memory_set": "memory"}


def difference_content(found: StepDifference) -> dict[str, Any]:
    """{title, sentence, first, second, first_ns, second_ns, parts, names}.

    parts: [label, class of time, pattern, change in ns] of those that changed; they add up to second_ns less
    first_ns. names: [name, short name, class of time, change in ns].
    """
    rows = found.parts
    changes = dict(zip(rows["part"].tolist(), rows["change_ns"].tolist(), strict=True))
    whole = rows.iloc[-1]
    parts = [(series, int(changes[series.column.removesuffix("_ns")])) for series in SERIES]
    names = found.names[["name", "event_class", "change_ns"]].to_numpy().tolist()
    return {
        "title": found.title,
        "sentence": found.sentence,
        "first": found.first,
        "second": found.second,
        "first_ns": int(whole["first_ns"]),
        "second_ns": int(whole["second_ns"]),
        "parts": [[part.label, part.time_class, part.pattern, change] for part, change in parts if change],
        "names": [
            [name, short_kernel_name(name), _CLASSES.get(kind, kind), int(change)]
            for name, kind, change in names
        ],
    }
