"""Kernels that the build has translated to LLVM code, run without numba.

`portable` writes that code, which names no processor, into FOLDER.  It is made machine code when it is first
used on a machine, and kept in the user's cache folder (NUMBA_CACHE_DIR names another) under a hash of itself,
the processor and the compiler: what is kept cannot be stale.  `object_code` then runs it where it can, and
LLVM's library, which takes much memory, is not loaded at all.  A kernel takes one pointer to 64-bit words:
addresses and shapes of arrays, and numbers; those of its answer follow.  Memory that it asks for is Python's;
an array that it made belongs to the answer.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.util
import json
import os
import stat
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import numpy as np
import platformdirs

from hta_widgets.jit import object_code
from hta_widgets.whole_files import private_folder, write_whole

FOLDER: Final = Path(__file__).parent / "portable_code"
INDEX: Final = "index.json"
ALLOCATOR: Final = ("PyMem_RawMalloc", "PyMem_RawFree")  # needs no GIL
_KEPT_SECONDS = 30 * 86400.0
_USED_SECONDS = 86400.0  # how exactly it is known when a file was last used
_DIGEST = 16

_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)

_lock = threading.RLock()
if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@cache
def _index() -> dict[str, dict[str, Any]]:
    """What the build wrote; nothing where it did not, or could not."""
    try:
        found = json.loads((FOLDER / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def translation(name: str, content: str | None) -> Translated | None:
    """The translation of a kernel whose sources have this hash."""
    entry = _index().get(name)
    return Translated(name, entry) if entry is not None and entry["content"] == content is not None else None


class Translated:
    """A kernel that takes arguments of one shape."""

    def __init__(self, name: str, entry: dict[str, Any]) -> None:
        self._name, self._digest = name, entry.get("digest")
        self._shape, self._answer = _checked(entry["arguments"]), _checked(entry["answer"])
        self._words = _words_of(self._answer)
        self._function: Callable[..., int] | None = None
        self._is_unusable = False

    @property
    def is_loaded(self) -> bool:
        """Whether its machine code is in this process."""
        return self._function is not None

    def __call__(self, arguments: tuple[Any, ...]) -> Any:
        """The kernel's answer; NotImplemented if the shape is another, or the code cannot be loaded."""
        words: list[int] = []
        if not _flatten(arguments, self._shape, words):
            return NotImplemented
        function = self._function or self._load()
        if function is None:
            return NotImplemented
        count = len(words)
        memory = (ctypes.c_int64 * (count + self._words))(*words)
        unused = (ctypes.c_int64 * 2)()
        if function(unused, ctypes.byref(unused, 8), memory):
            raise MemoryError(f"there is not enough memory for {self._name}")
        return _answer(iter(memory[count:]), self._answer, {})

    def _load(self) -> Callable[..., int] | None:
        with _lock:
            if self._function is None and not self._is_unusable:
                try:
                    text = (FOLDER / f"{self._name}.ll.z").read_bytes()
                    if digest_of(text).hex() != self._digest:  # of another version, installed over this one
                        raise OSError("it is not what the index lists")
                    self._function = _loaded(_machine_code(self._name, text), self._name)
                except (ImportError, OSError, RuntimeError, zlib.error):
                    self._is_unusable = True
            return self._function


def shape_of(value: Any) -> Any:
    """The shape of an argument as JSON: a list for a tuple, "int64 2" for an array, "int64" or "float64".

    Raises:
        TypeError: it is none of these.
    """
    if isinstance(value, tuple):
        return [shape_of(part) for part in value]
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name} {value.ndim}"
    if isinstance(value, int | np.int64):
        return "int64"
    if isinstance(value, float):
        return "float64"
    raise TypeError(f"it takes a {type(value).__name__}")


def _checked(shape: Any) -> Any:
    """A shape from JSON: lists, None for nothing, (dtype, dimensions), which are -1 for a number."""
    if isinstance(shape, list):
        return [_checked(part) for part in shape]
    if shape is None:
        return None
    name, _, dimensions = shape.partition(" ")
    return np.dtype(name), int(dimensions or -1)


def _words_of(answer: Any) -> int:
    """How many words an answer takes: a number one, an array its address, its owner and its shape."""
    if isinstance(answer, list):
        return sum(map(_words_of, answer))
    if answer is None:
        return 0
    return 1 if answer[1] < 0 else 2 + int(answer[1])


def _answer(words: Iterator[int], shape: Any, blocks: dict[int, _Block]) -> Any:
    """An answer of a shape, and the blocks that its arrays share."""
    if isinstance(shape, list):
        return tuple(_answer(words, part, blocks) for part in shape)
    if shape is None:
        return None
    kind, dimensions = shape
    if dimensions < 0:
        word = next(words)
        return word if kind.kind == "i" else struct.unpack("=d", struct.pack("=q", word))[0]
    address, owner = next(words), next(words)
    if owner and owner not in blocks:
        blocks[owner] = _Block(owner)
    memory = _Memory(address, tuple(next(words) for _ in range(dimensions)), kind, blocks.get(owner))
    if 0 in memory.shape:
        return np.empty(memory.shape, kind)
    array = np.asarray(memory)
    return array if owner else array.copy()  # of an argument, which the caller may change


class _Memory:
    """An array as numpy wants it told, and the block that it keeps."""

    def __init__(
        self, address: int, shape: tuple[int, ...], kind: np.dtype[Any], block: _Block | None
    ) -> None:
        self.shape, self._block = shape, block
        self.__array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "typestr": kind.str,
            "version": 3,
        }


class _Block:
    """Memory that a kernel asked for: freed with the last array in it."""

    def __init__(self, address: int) -> None:
        self._address = address

    # what it calls is bound here: at the interpreter's end the module's own names may be gone
    def __del__(self, free: Any = ctypes.pythonapi.PyMem_RawFree, pointer: Any = ctypes.c_void_p) -> None:
        free(pointer(self._address))


def _flatten(arguments: Sequence[Any], shape: list[Any], words: list[int]) -> bool:
    """Append the words of arguments; False if their shape is another."""
    if len(arguments) != len(shape):
        return False
    for value, expected in zip(arguments, shape, strict=True):
        if isinstance(expected, list):
            if not isinstance(value, tuple) or not _flatten(value, expected, words):
                return False
            continue
        kind, dimensions = expected
        if dimensions < 0:
            if not isinstance(value, int | np.int64 if kind.kind == "i" else float):
                return False
            words.append(int(value) if kind.kind == "i" else struct.unpack("=q", struct.pack("=d", value))[0])
        else:
            if not isinstance(value, np.ndarray) or value.dtype != kind or value.ndim != dimensions:
                return False
            if not (value.flags.c_contiguous and value.flags.aligned):
                return False
            words.append(value.__array_interface__["data"][0])
            words.extend(value.shape)
    return True


def _machine_code(name: str, text: bytes) -> bytes:
    """From the user's cache folder, else made, and kept there where that is possible."""
    file = _kept_folder() / f"{name}-{_key(text)}.o"
    with contextlib.suppress(OSError):
        data = file.read_bytes()
        if _is_safe(file.parent) and digest_of(data[_DIGEST:]) == data[:_DIGEST]:
            if time.time() - file.stat().st_mtime > _USED_SECONDS:
                os.utime(file)
            return data[_DIGEST:]
    code = _lowered(zlib.decompress(text).decode())
    with contextlib.suppress(OSError):
        private_folder(file.parent)
        write_whole(file, lambda out: out.write(digest_of(code) + code))
        _remove_unused(file.parent)
    return code


def _kept_folder() -> Path:
    named = os.environ.get("NUMBA_CACHE_DIR")
    above = Path(named) if named else Path(platformdirs.user_cache_dir("hta_widgets", appauthor=False))
    return above / "machine_code"


def _is_safe(folder: Path) -> bool:
    """Machine code of others is not run: nobody else may write to its folder."""
    status = folder.stat()
    others = stat.S_IWGRP | stat.S_IWOTH
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & others)


def _remove_unused(folder: Path) -> None:
    for other in folder.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - other.stat().st_mtime > _KEPT_SECONDS:
                other.unlink()


def _key(text: bytes) -> str:
    return digest_of(text + repr(_host()).encode()).hex()


@cache
def _host() -> tuple[object, ...]:
    """The processor and the compiler; where files tell of both, without loading LLVM."""
    if object_code.IS_POSSIBLE:
        with contextlib.suppress(OSError):
            return _processor(), _compiler()
    import llvmlite  # type: ignore[import-untyped]

    llvm = _llvm()
    host = (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    return (*host, llvmlite.__version__, llvm.llvm_version_info, llvm.get_process_triple())


def _processor() -> list[str]:
    """What Linux tells of an x86-64 processor: its model, and what it can do."""
    keys = ("vendor_id", "cpu family", "model", "stepping", "flags")
    with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
        first = takewhile(str.strip, file)  # all are of one kind
        return [line for line in first if line.partition(":")[0].strip() in keys]


def _compiler() -> bytes:
    """llvmlite's own note of its version and revision."""
    found = importlib.util.find_spec("llvmlite")
    if found is None or found.origin is None:
        raise FileNotFoundError("llvmlite")
    return Path(found.origin).with_name("_version.py").read_bytes()


def digest_of(data: bytes) -> bytes:
    """Under which translations and machine code are known again."""
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()


@cache
def _llvm() -> Any:
    import llvmlite.binding as llvm  # type: ignore[import-untyped]

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in ALLOCATOR:
        llvm.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
    return llvm


def _target() -> Any:
    llvm = _llvm()
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        codemodel="jitdefault",
        jit=True,
    )


def _lowered(text: str) -> bytes:
    """Portable LLVM code as machine code of this processor."""
    llvm, target = _llvm(), _target()
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = llvm.get_process_triple(), str(target.target_data)
    module.verify()
    return bytes(target.emit_object(module))


@cache
def _engine() -> Any:
    llvm = _llvm()
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target())


def _loaded(code: bytes, symbol: str) -> Callable[..., int]:
    """numba's function of (answer, exception, words), which has neither; it runs without the GIL."""
    try:
        return _SIGNATURE(object_code.placed(code, symbol))
    except object_code.NotPlacedError:
        return _SIGNATURE(_linked(code, symbol))


def _linked(code: bytes, symbol: str) -> int:
    """The same address, by LLVM's linker."""
    engine = _engine()
    engine.add_object_file(_llvm().ObjectFileRef.from_data(code))
    engine.finalize_object()
    address: int = engine.get_function_address(symbol)
    if not address:
        raise RuntimeError(f"there is no {symbol} in it")
    return address
