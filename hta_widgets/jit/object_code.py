"""Puts machine code into memory on Linux and x86-64 without LLVM, whose library takes 45 MB and 50 ms to
load.

LLVM compiles for code that may lie anywhere (its large model): all that such an object needs filled in are
whole addresses (R_X86_64_64), of its own parts and of a few functions of this process.  An object with
anything else in it is left to LLVM's own linker.  The layout is that of ELF and its supplement for x86-64.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

IS_POSSIBLE: Final = sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 1 << 32

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")
_BEGIN: Final = b"\x7fELF\2\1\1"  # 64 bits, little-endian
_OBJECT, _X86_64 = 1, 62  # kinds of file and machine
_CONTENT, _SYMBOLS, _RELOCATIONS, _UNWINDING = 1, 2, 4, 0x70000001  # kinds of section
_WRITABLE, _LOADED = 1, 2  # flags of a section
_WHOLE_ADDRESS, _KIND = 1, 0xFFFFFFFF  # the kind of a relocation, and where it stands


class NotPlacedError(Exception):
    """The object is left to LLVM."""


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    at: int  # in the file
    size: int
    link: int  # the symbols of relocations, the names of symbols
    target: int  # of relocations
    alignment: int
    entry_size: int


def placed(code: bytes, function: str) -> int:
    """The address of a function of an object, which stays in memory as long as the process lives.

    Raises:
        NotPlacedError: the object holds what only LLVM can place, or no such function, or this is another
            kind of machine, or one that does not run what was written into memory.
    """
    if not IS_POSSIBLE:
        raise NotPlacedError
    sections = _sections(code)
    places, size = _places(sections)
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))  # never unmapped: threads may run it to the very end
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for number, place in places.items():
        section = sections[number]
        memory[place : place + section.size] = code[section.at : section.at + section.size]

    process = _process()
    (table,) = (section for section in sections if section.kind == _SYMBOLS)
    symbols = list(_entries(_SYMBOL, code, table))

    def name_of(symbol: tuple[Any, ...]) -> str:
        begin = sections[table.link].at + symbol[0]
        return code[begin : code.index(b"\0", begin)].decode()

    def address_of(symbol: tuple[Any, ...]) -> int:
        _, _, _, number, value, _ = symbol
        if number in places:
            return base + places[number] + int(value)
        found = getattr(process, name_of(symbol), None) if number == 0 else None
        if found is None:
            raise NotPlacedError
        return ctypes.cast(found, ctypes.c_void_p).value or 0

    for section in sections:
        if section.kind == _RELOCATIONS and section.target in places:
            for offset, what, addend in _entries(_RELOCATION, code, section):
                if what & _KIND != _WHOLE_ADDRESS:
                    raise NotPlacedError
                address = address_of(symbols[what >> 32]) + addend
                struct.pack_into("<Q", memory, places[section.target] + offset, address)
    found = next((symbol for symbol in symbols if symbol[3] in places and name_of(symbol) == function), None)
    read_and_run = mmap.PROT_READ | mmap.PROT_EXEC
    if found is None or process.mprotect(ctypes.c_void_p(base), ctypes.c_size_t(size), read_and_run):
        raise NotPlacedError
    return address_of(found)


@cache
def _process() -> ctypes.CDLL:
    """The functions of this process."""
    return ctypes.CDLL(None)


def _sections(code: bytes) -> list[_Section]:
    begin, kind, machine, _, _, _, first, _, _, _, _, size, count, _ = _HEADER.unpack_from(code)
    if not begin.startswith(_BEGIN) or (kind, machine, size) != (_OBJECT, _X86_64, _SECTION.size):
        raise NotPlacedError
    return [_Section(*_SECTION.unpack_from(code, first + number * size)) for number in range(count)]


def _places(sections: list[_Section]) -> tuple[dict[int, int], int]:
    """Where in memory the sections come to lie that are needed to run, and how much that takes."""
    places: dict[int, int] = {}
    end = 0
    for number, section in enumerate(sections):
        if not section.flags & _LOADED or section.kind == _UNWINDING:  # kernels raise nothing
            continue
        if section.kind != _CONTENT or section.flags & _WRITABLE or section.alignment > mmap.PAGESIZE:
            raise NotPlacedError
        places[number] = end + -end % max(section.alignment, 1)
        end = places[number] + section.size
    return places, end


def _entries(layout: struct.Struct, code: bytes, section: _Section) -> Iterator[tuple[Any, ...]]:
    return layout.iter_unpack(code[section.at : section.at + section.size])
