"""The slow, exact path for numbers that the kernels deferred: `json` and `decimal`."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation

from hta_widgets.trace.reader.schema import Kind

_LONGEST_NUMBER = 400
_EXACT = Context(
    prec=_LONGEST_NUMBER, rounding="ROUND_HALF_EVEN", Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[InvalidOperation]
)


def read_text(raw: bytes) -> Decimal | None:
    """The finite value of a JSON number, a quoted number or a quoted hexadecimal integer, else None."""
    if len(raw) > _LONGEST_NUMBER:
        return None
    text = raw.decode("ascii", "replace").strip('" \t\r\n')
    try:
        if text.lower().startswith(("0x", "-0x")):
            return Decimal(int(text, 16))
        value = Decimal(text, _EXACT)
    except (InvalidOperation, ValueError):
        return None
    return value if value.is_finite() and (not value or value.adjusted() < _LONGEST_NUMBER) else None


def is_null(raw: bytes) -> bool:
    """Whether the text stands for no value: null, nothing, or an empty string."""
    return raw.strip() in (b"", b"null", b'""')


def to_nanoseconds(value: Decimal) -> int | None:
    """Microseconds to int64 nanoseconds, half to even; None outside int64."""
    return _as_int64(int(value.scaleb(3, _EXACT).to_integral_value(context=_EXACT)))


def to_integer(value: Decimal) -> int | None:
    """An integral value as int64, from 2**63 to 2**64 - 1 as its two's complement; None for anything else."""
    if abs(value) >= 1 << 64 or value != value.to_integral_value():
        return None
    integer = int(value)
    return _as_int64(integer - (1 << 64) if integer >= 1 << 63 else integer)


def to_float(raw: bytes) -> float | None:
    """float64, not a number and the infinities included, else None."""
    try:
        value = float(raw.decode("ascii", "replace").strip('" \t\r\n'))
    except ValueError:
        return None
    return value if len(raw) <= _LONGEST_NUMBER else None


def resolve(raw: bytes, kind: Kind, is_time: bool) -> int | float | None:
    """The value of a deferred int or float cell from its JSON text; None where it holds no number."""
    if kind == "float":
        return to_float(raw)
    number = read_text(raw)
    if number is None:
        return None
    return to_nanoseconds(number) if is_time else to_integer(number)


def _as_int64(value: int) -> int | None:
    return value if -(1 << 63) < value < 1 << 63 else None
