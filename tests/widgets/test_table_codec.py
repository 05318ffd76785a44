"""DataFrames as sent to the browser: exact, typed, missing values marked."""

import numpy as np
import pandas as pd

from hta_widgets.widgets.table_codec import encode


def test_columns_and_buffer() -> None:
    frame = pd.DataFrame(
        {
            "rank": pd.array([0, None], dtype="Int64"),
            "dur_ns": np.array([2**53 - 1, -5]),
            "pct": [0.5, np.nan],
            "partial": [True, False],
            "name": pd.Categorical(["a<b>", None]),
        }
    )
    table = encode(frame)
    kinds = {column["name"]: column["kind"] for column in table["columns"]}
    assert kinds == {"rank": "int", "dur_ns": "int", "pct": "float", "partial": "int", "name": "text"}
    offsets = [column["offset"] for column in table["columns"][:4]]
    numbers = np.array([np.frombuffer(table["data"], "<f8", 2, offset) for offset in offsets])
    np.testing.assert_array_equal(numbers, [[0, np.nan], [2**53 - 1, -5], [0.5, np.nan], [1, 0]])
    assert table["columns"][4]["values"] == ["a<b>", ""]


def test_empty() -> None:
    table = encode(pd.DataFrame({"rank": np.zeros(0, np.int64)}))
    assert table["rows"] == 0
    assert table["data"] == b""
