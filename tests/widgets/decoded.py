"""The browser's half of the table codec, in Python."""

from typing import Any

import numpy as np

from hta_widgets.widgets.table_codec import Wire


def numbers(table: Wire, name: str) -> list[float]:
    """The numbers of a column as the browser has them."""
    column: dict[str, Any] = next(column for column in table["columns"] if column["name"] == name)
    size = column.get("bytes")
    kind = f"<u{size}" if size else "<f8"
    values = np.frombuffer(table["data"], kind, table["rows"], column["offset"]).astype(np.float64)
    return (column.get("least", 0.0) + values).tolist()
