"""DataFrames as sent to the browser: exact, typed, missing values marked."""

import numpy as np
import pandas as pd

from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.widgets.table_codec import encode
from tests.widgets.decoded import numbers


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


def test_whole_numbers_of_many_rows_take_as_many_bytes_as_their_range() -> None:
    rows = np.arange(100)
    frame = pd.DataFrame(
        {
            "byte": rows % 7 == 0,
            "word": -5 + 600 * rows,
            "long": 2**53 - 1 - 40_000_000 * rows,
            "range": 2**32 * (rows == 3),
            "share": rows / 3,
            "zero": np.zeros(100),
            "missing": pd.array([None, *rows[1:]], dtype="Int64"),
            "endless": np.where(rows == 1, np.inf, 1.0),
        }
    )
    table = encode(frame)
    sizes = {column["name"]: column.get("bytes", 8) for column in table["columns"]}
    assert sizes == {
        "byte": 1, "word": 2, "long": 4, "range": 8, "share": 8, "zero": 1, "missing": 8, "endless": 8,
    }  # fmt: skip
    assert len(table["data"]) == 100 * sum(sizes.values())
    for name in frame:
        expected = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
        np.testing.assert_array_equal(numbers(table, str(name)), expected)


def test_empty() -> None:
    table = encode(pd.DataFrame({"rank": np.zeros(0, np.int64)}))
    assert table["rows"] == 0
    assert table["data"] == b""


def test_long_names_of_events_have_short_ones_beside_them() -> None:
    kernel = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, {}>(int)"
    names = [kernel.format("a"), kernel.format("b"), "gemm", kernel.format("a")]
    frame = pd.DataFrame({"name": names, "detail": names})
    name, detail = encode(frame)["columns"]
    assert name["values"] == names and detail["values"] == names
    assert "short" not in detail  # a sentence is no name
    assert name["short"].keys() == set(names) - {"gemm"}
    first, second = name["short"].values()
    assert first != second and first.startswith("vectorized_elementwise_kernel<")
    (alone,) = encode(frame[:1])["columns"][0]["short"].values()
    assert alone == short_kernel_name(names[0])
    assert "short" not in encode(frame[2:3])["columns"][0]
