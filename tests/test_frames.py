"""Frames of rows: the types that were asked for, and what a row does not hold is missing."""

from hta_widgets.frames import typed_frame

DTYPES = {"rank": "int64", "share_pct": "float64", "partial": "bool", "iteration": "Int64", "name": "str"}


def test_columns_are_typed_in_the_order_asked_for():
    frame = typed_frame([{"name": "a", "rank": 1, "partial": True}, {"rank": 2, "iteration": 3}], DTYPES)
    assert dict(frame.dtypes.astype("str")) == DTYPES
    assert frame["rank"].tolist() == [1, 2]
    assert frame["iteration"].isna().tolist() == [True, False]
    assert frame["share_pct"].isna().all()
    assert frame["partial"].tolist() == [True, False]
    assert frame["name"].isna().tolist() == [False, True]


def test_no_rows():
    frame = typed_frame([], DTYPES)
    assert dict(frame.dtypes.astype("str")) == DTYPES
    assert frame.empty
