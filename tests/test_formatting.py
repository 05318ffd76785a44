"""Numbers read the same in Python and in the browser: `js/test/format.test.ts` reads the same cases."""

import json
import math
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hta_widgets import formatting
from hta_widgets.formatting import amount, brief, column_format, duration, signed, significant, unit_of

CASES = json.loads((Path(__file__).parent / "formatting_cases.json").read_text("utf-8"))
FUNCTIONS = {
    **{name: getattr(formatting, name) for name in CASES if hasattr(formatting, name)},
    "signed_duration": lambda value: signed(value, duration(value)),
}
QUANTITIES = ["ns", "bytes", "gbps", "flops", "pct", ""]

numbers = st.floats(-1e15, 1e15) | st.integers(-(10**15), 10**15)


def number(value: float | None) -> float:
    return math.nan if value is None else value


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [(kind, *case) for kind, cases in CASES.items() if kind != "column" for case in cases],
)
def test_cases(kind: str, value: float | None, text: str) -> None:
    assert FUNCTIONS[kind](number(value)) == text


@pytest.mark.parametrize("case", CASES["column"])
def test_columns(case: dict) -> None:
    values = [number(value) for value in case["values"]]
    found = column_format(case["name"], values)
    assert (found.heading, found.unit.name) == (case["heading"], case["unit"])
    assert [found.cell(value) for value in values] == case["cells"]


def test_the_unit_of_a_column_can_be_given() -> None:
    assert column_format("idle_ns", [1_000], unit_of("ns", [5_000_000])).cell(1_000) == "0.00100"


def test_infinity_is_no_value() -> None:
    assert [significant(value) for value in (math.inf, -math.inf)] == ["–", "–"]
    assert unit_of("ns", [math.inf, 2_000_000]).name == "ms"


@given(numbers)
def test_three_digits_are_kept(value: float) -> None:
    """The text is the nearest number with so many digits: three, all before the point, or six decimals."""
    text = significant(value).replace(",", "").replace("−", "-")
    decimals = len(text.partition(".")[2])
    off = abs(Decimal(text) - Decimal(repr(float(value))))
    assert off <= Decimal(1).scaleb(-decimals) / 2
    digits = text.lstrip("-").replace(".", "").lstrip("0")
    assert value == 0 or len(digits) == 3 or decimals == 6 or (decimals == 0 and len(digits) > 3)


@given(numbers, st.sampled_from(QUANTITIES))
def test_units(value: float, quantity: str) -> None:
    """A text never has as many of a unit as make the next one; a negative value differs by its sign."""
    if quantity == "pct" and abs(value) < 0.01:  # of which there is only that
        return
    digits, _, name = amount(value, quantity).partition(" ")
    unit = unit_of(quantity, [value])
    assert name == unit.name
    larger = unit_of(quantity, [unit.scale * 2000])
    if larger != unit:
        assert abs(Decimal(digits.strip("−").replace(",", ""))) < (1024 if quantity == "bytes" else 1000)
    if value > 0:
        assert amount(-value, quantity) == f"−{amount(value, quantity)}"


@given(st.lists(st.integers(0, 10**15), min_size=1))
def test_the_largest_value_chooses_the_unit(values: list[int]) -> None:
    found = column_format("dur_ns", values)
    assert f"{found.cell(max(values))} {found.unit.name}" == duration(max(values))


def test_brief() -> None:
    assert brief("a" * 60) == "a" * 60
    assert brief("begin" + "x" * 100 + "end", 11) == "begin…xxend"
