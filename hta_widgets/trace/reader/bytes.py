"""Wide reads of text: 8 bytes as a word, 64 bytes as a bit mask.  All machine-level code of the scanner is in
this module.

numba has no unaligned loads and no vector compares, so seven small intrinsics supply them.  Every function
takes the array and an index, never an address.  Reads may reach PADDING bytes past the last byte of interest;
callers allocate that.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hta_widgets.jit import inline, intrinsic

Text = npt.NDArray[np.uint8]
u64 = np.uint64

PADDING: Final = 256
"""Bytes that must be readable after the end of any text given to these functions."""

CHECKED: Final = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
"""Whether wide reads check their bounds too (NUMBA_BOUNDSCHECK=1)."""

_Emit = Callable[[Any, Any, Any], Any]

# numba and llvmlite are imported where code is written: who runs code that is there needs neither


def _ir() -> Any:
    """The module of LLVM's types and instructions."""
    return import_module("llvmlite.ir")


def _on_text(result: str, emit: _Emit, *operands: str) -> Any:
    """An intrinsic over (text, index, *operands), whose types go by their names in numba: `emit(builder,
    pointer to text[index], operands)` writes its code.
    """
    from numba import types

    def typing(context: Any, text: Any, index: Any, *rest: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, args[0])
            return emit(builder, builder.gep(array.data, [args[1]]), args[2:])

        kinds = [getattr(types, operand) for operand in operands]
        return getattr(types, result)(text, types.int64, *kinds), codegen

    return typing


def _load(builder: Any, pointer: Any, kind: Any) -> Any:
    value = builder.load(builder.bitcast(pointer, kind.as_pointer()))
    value.align = 1
    return value


def _chunk() -> Any:
    """The type of 64 bytes, read at once."""
    return _ir().VectorType(_ir().IntType(8), 64)


def _spread(builder: Any, value: Any) -> Any:
    """The low byte of `value` in all 64 lanes."""
    lane = _ir().IntType(32)
    empty = _ir().Constant(_chunk(), _ir().Undefined)
    first = builder.insert_element(empty, builder.trunc(value, _ir().IntType(8)), _ir().Constant(lane, 0))
    return builder.shuffle_vector(first, empty, _ir().Constant(_ir().VectorType(lane, 64), [0] * 64))


def _emit_byte(builder: Any, pointer: Any, operands: Any) -> Any:
    return builder.zext(_load(builder, pointer, _ir().IntType(8)), _ir().IntType(64))


def _emit_word(builder: Any, pointer: Any, operands: Any) -> Any:
    return _load(builder, pointer, _ir().IntType(64))


def _emit_mask(relation: str, fold_case: bool = False) -> _Emit:
    def emit(builder: Any, pointer: Any, operands: Any) -> Any:
        chunk = _load(builder, pointer, _chunk())
        if fold_case:
            chunk = builder.or_(chunk, _ir().Constant(_chunk(), [0x20] * 64))
        equal = builder.icmp_unsigned(relation, chunk, _spread(builder, operands[0]))
        return builder.bitcast(equal, _ir().IntType(64))

    return emit


@intrinsic
def _byte(context, text, index):  # type: ignore[no-untyped-def]
    return _on_text("int64", _emit_byte)(context, text, index)


@intrinsic
def _word(context, text, index):  # type: ignore[no-untyped-def]
    return _on_text("uint64", _emit_word)(context, text, index)


@intrinsic
def _mask_equal(context, text, index, value):  # type: ignore[no-untyped-def]
    return _on_text("uint64", _emit_mask("=="), "int64")(context, text, index, value)


@intrinsic
def _mask_above(context, text, index, value):  # type: ignore[no-untyped-def]
    return _on_text("uint64", _emit_mask(">"), "int64")(context, text, index, value)


@intrinsic
def _mask_folded(context, text, index, value):  # type: ignore[no-untyped-def]
    return _on_text("uint64", _emit_mask("==", fold_case=True), "int64")(context, text, index, value)


@intrinsic
def _trailing_zeros(context, word):  # type: ignore[no-untyped-def]
    from numba import types

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.cttz(args[0], _ir().Constant(_ir().IntType(1), 0))

    return types.int64(types.uint64), codegen


@intrinsic
def _ones(context, word):  # type: ignore[no-untyped-def]
    from numba import types

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@intrinsic
def borrowed(context, array):  # type: ignore[no-untyped-def]
    """The same array without its reference count.

    numba counts references at every use of an array inside a tuple, which costs ten times the scan itself; a
    kernel borrows its arguments, which its caller keeps alive.
    """

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        make = context.make_array(signature.return_type)
        owned, lent = make(context, builder, args[0]), make(context, builder)
        for field in ("nitems", "itemsize", "data", "shape", "strides"):
            setattr(lent, field, getattr(owned, field))
        for field in ("meminfo", "parent"):
            setattr(lent, field, _ir().Constant(getattr(owned, field).type, None))
        return lent._getvalue()

    return array(array), codegen


@inline
def check(text: Text, i: int, width: int) -> None:
    """Raise where `width` bytes at i are not inside the text (checked builds only)."""
    if CHECKED and (i < 0 or i + width > text.size):
        raise IndexError("wide read outside the text")


@inline
def byte_at(text: Text, i: int) -> int:
    """text[i] as an int64 (indexing would give a uint8, and mixed arithmetic floats)."""
    check(text, i, 1)
    return _byte(text, i)


@inline
def word_at(text: Text, i: int) -> np.uint64:
    """The 8 bytes at i, little-endian."""
    check(text, i, 8)
    return _word(text, i)


@inline
def mask_equal(text: Text, i: int, value: int) -> np.uint64:
    """Bit k is set where text[i + k] == value, 0 <= k < 64."""
    check(text, i, 64)
    return _mask_equal(text, i, value)


@inline
def mask_above(text: Text, i: int, value: int) -> np.uint64:
    """Bit k is set where text[i + k] > value, 0 <= k < 64."""
    check(text, i, 64)
    return _mask_above(text, i, value)


@inline
def mask_folded(text: Text, i: int, value: int) -> np.uint64:
    """Bit k is set where (text[i + k] | 0x20) == value: '{' finds both '{' and '[', '}' both '}' and ']'."""
    check(text, i, 64)
    return _mask_folded(text, i, value)


@inline
def first_bit(mask: np.uint64) -> int:
    """Position of the lowest set bit."""
    return _trailing_zeros(mask)


@inline
def count_bits(mask: np.uint64) -> int:
    """Number of set bits."""
    return _ones(mask)


@inline
def same_bytes(a: Text, i: int, b: Text, j: int, n: int) -> bool:
    """Whether a[i : i + n] == b[j : j + n]."""
    while n > 8:
        if word_at(a, i) != word_at(b, j):
            return False
        i += 8
        j += 8
        n -= 8
    return n <= 0 or ((word_at(a, i) ^ word_at(b, j)) << u64((8 - n) * 8)) == u64(0)


@inline
def hash_bytes(text: Text, i: int, n: int) -> np.uint64:
    """A 64-bit hash of text[i : i + n]: multiply and fold, 16 bytes a step, the last 16 read as they lie."""
    h = u64(n) * u64(0x9E3779B97F4A7C15)
    if n > 8:
        g = h ^ u64(0xC2B2AE3D27D4EB4F)
        last = i + n - 8
        first_of_rest = i if n <= 16 else i + n - 16
        while n > 16:
            h = (h ^ word_at(text, i)) * u64(0xD6E8FEB86659FD93)
            g = (g ^ word_at(text, i + 8)) * u64(0xA0761D6478BD642F)
            h ^= h >> u64(32)
            g ^= g >> u64(29)
            i += 16
            n -= 16
        h = (h ^ word_at(text, first_of_rest)) * u64(0xD6E8FEB86659FD93)
        g = (g ^ word_at(text, last)) * u64(0xA0761D6478BD642F)
        h ^= g ^ (g >> u64(31))
    elif n > 0:
        h = (h ^ (word_at(text, i) & (u64(0xFFFFFFFFFFFFFFFF) >> u64((8 - n) * 8)))) * u64(0xD6E8FEB86659FD93)
    h ^= h >> u64(32)
    h *= u64(0x9E3779B97F4A7C15)
    return h ^ (h >> u64(29))
