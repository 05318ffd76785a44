"""Decimal text to integers, eight digits at a time.  Common notations only: the rest is `deferred` to
`values`.

Times are exact: "1751410836123456.789" (microseconds) becomes 1751410836123456789 ns without passing through
a float.
"""

from __future__ import annotations

import numpy as np

from hta_widgets.jit import inline, outline
from hta_widgets.trace.reader.bytes import Text, byte_at, u64, word_at

DOT, MINUS = ord("."), ord("-")
LARGEST_EXACT_FLOAT = 1 << 53
LARGEST_WHOLE_MICROSECONDS = (1 << 63) // 1000 - 1


@inline
def digits_value(word: np.uint64, n: int) -> np.uint64:
    """Value of the n (1..8) ASCII digits in the low bytes of `word`: pairs, then fours, then eight at
    once.
    """
    word = (word ^ u64(0x3030303030303030)) << u64((8 - n) * 8)
    word = word * u64(10) + (word >> u64(8))
    low = (word & u64(0x000000FF000000FF)) * u64(0x000F424000000064)
    high = ((word >> u64(16)) & u64(0x000000FF000000FF)) * u64(0x0000271000000001)
    return ((low + high) >> u64(32)) & u64(0xFFFFFFFF)


@inline
def other_bytes(word: np.uint64) -> np.uint64:
    """0x80 in every byte of `word` that is no ASCII digit."""
    word ^= u64(0x3030303030303030)
    return (((word & u64(0x7F7F7F7F7F7F7F7F)) + u64(0x7676767676767676)) | word) & u64(0x8080808080808080)


@inline
def power_of_ten(n: int) -> np.uint64:
    """10**n for 0 <= n <= 18."""
    result = u64(1)
    for _ in range(n):
        result *= u64(10)
    return result


@inline
def read_digits(text: Text, i: int, n: int) -> tuple[np.uint64, bool]:
    """(value, whether all are digits) of the n bytes at i; not ok outside 1..18."""
    if n < 1 or n > 18:
        return u64(0), False
    first = word_at(text, i)
    if n <= 8:
        return digits_value(first, n), (other_bytes(first) << u64((8 - n) * 8)) == u64(0)
    # the last word overlaps the one before it, so that no read passes the number's end
    last = word_at(text, i + n - 8)
    if n <= 16:
        value = digits_value(first, n - 8) * u64(100000000) + digits_value(last, 8)
        return value, (other_bytes(first) | other_bytes(last)) == u64(0)
    middle = word_at(text, i + 8)
    head = digits_value(first, 8) * power_of_ten(n - 16) + digits_value(middle, n - 16)
    ok = (other_bytes(first) | other_bytes(middle) | other_bytes(last)) == u64(0)
    return head * u64(100000000) + digits_value(last, 8), ok


@outline
def read_int(text: Text, i: int, n: int) -> tuple[np.int64, bool]:
    """(value, ok) of the integer text[i : i + n]."""
    negative = byte_at(text, i) == MINUS
    value, ok = read_digits(text, i + 1, n - 1) if negative else read_digits(text, i, n)
    return (-np.int64(value) if negative else np.int64(value)), ok


@outline
def read_microseconds(text: Text, i: int, n: int) -> tuple[np.int64, bool]:
    """(ns, ok) of the decimal text[i : i + n] in microseconds; ok for up to three decimals."""
    negative = byte_at(text, i) == MINUS
    if negative:
        i += 1
        n -= 1
    decimals = 0
    if n > 4 and byte_at(text, i + n - 4) == DOT:
        decimals = 3
    elif n > 3 and byte_at(text, i + n - 3) == DOT:
        decimals = 2
    elif n > 2 and byte_at(text, i + n - 2) == DOT:
        decimals = 1
    value, ok = read_digits(text, i, n - decimals - 1 if decimals else n)
    ok = ok and bool(value <= u64(LARGEST_WHOLE_MICROSECONDS))
    value *= u64(1000)
    if decimals:
        fraction, fraction_ok = read_digits(text, i + n - decimals, decimals)
        value += fraction * power_of_ten(3 - decimals)
        ok = ok and fraction_ok
    return (-np.int64(value) if negative else np.int64(value)), ok


@outline
def read_decimal(text: Text, i: int, n: int) -> tuple[float, bool]:
    """(value, ok) of the decimal text[i : i + n]; ok where digits / 10**k is exact in both, hence rounded
    once.
    """
    negative = byte_at(text, i) == MINUS
    if negative:
        i += 1
        n -= 1
    whole = 0
    while whole < n and byte_at(text, i + whole) != DOT:
        whole += 1
    value, ok = read_digits(text, i, whole)
    scale = 1.0
    if whole < n:
        decimals = n - whole - 1
        fraction, fraction_ok = read_digits(text, i + whole + 1, decimals)
        ok = ok and fraction_ok and whole + decimals <= 18
        if ok:
            value = value * power_of_ten(decimals) + fraction
            scale = np.float64(power_of_ten(decimals))
    ok = ok and bool(value <= u64(LARGEST_EXACT_FLOAT))
    result = np.float64(value) / scale
    return (-result if negative else result), ok
