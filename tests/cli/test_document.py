"""Frames as JSON: every integer exact, everything absent null, whatever pandas calls its types."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd

from hta_widgets.cli.document import dtypes, json_lines, plain


def test_values_and_types() -> None:
    frame = pd.DataFrame(
        {
            "time_ns": np.array([2**53 + 1, -(2**63)], np.int64),
            "bytes": pd.array([2**62 + 1, None], dtype="Int64"),
            "pct": [math.nan, math.inf],
            "partial": [True, False],
            "name": pd.Categorical(["\x1b[2J\x7f核", None]),
            "text": pd.Series(["a", None], dtype="object"),
        }
    )
    document = json.loads("\n".join(json_lines({"kind": "made"}, frame)))
    types = {"time_ns": "int64", "bytes": "int64", "pct": "float64", "partial": "bool"}
    assert document == {
        "kind": "made",
        "columns": {**types, "name": "str", "text": "str"},
        "rows": [
            {
                "time_ns": 9_007_199_254_740_993,
                "bytes": 4_611_686_018_427_387_905,
                "pct": None,
                "partial": True,
                "name": "\x1b[2J\x7f核",
                "text": "a",
            },
            {
                "time_ns": -(2**63),
                "bytes": None,
                "pct": None,
                "partial": False,
                "name": None,
                "text": None,
            },
        ],
    }
    assert "".join(json_lines({}, frame)).isprintable()


def test_no_rows() -> None:
    frame = pd.DataFrame({"rank": np.array([], np.int32)})
    assert json.loads("\n".join(json_lines({}, frame))) == {"columns": {"rank": "int32"}, "rows": []}
    assert dtypes(frame) == {"rank": "int32"}


def test_nested_values() -> None:
    assert plain({1: (np.int64(3), math.nan, None, {"a": [np.float64(0.5)]})}) == {
        "1": [3, None, None, {"a": [0.5]}]
    }
