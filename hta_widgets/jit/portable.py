"""Translates kernels to portable LLVM code, which `machine_code` runs: part of the build, with numba.

Which kernels, and for which arguments, is seen while something runs that calls them.
"""

from __future__ import annotations

import dis
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from hta_widgets.jit import Kernel
from hta_widgets.jit.machine_code import ALLOCATOR, INDEX, digest_of, shape_of

_COUNTING = re.compile(r"^define [^\n]*@(NRT_[id][ne]cref)\(.*?^}$", re.DOTALL | re.MULTILINE)
_NOTHING = r"define internal void @\1(ptr %0) {\n  ret void\n}"
_GIVEN = {"memcpy", "memmove", "memset", *ALLOCATOR}
_ALLOCATES = re.compile("@NRT_(MemInfo_alloc|Allocate)")
_DECLARED = re.compile(
    r"^declare [^\n]*@NRT_(MemInfo_alloc_aligned|MemInfo_alloc|Allocate|Free)\(.*\n", re.MULTILINE
)
# What numba's runtime does for arrays, over Python's allocator: a block begins with its count of references,
# two pointers that are unused here, where its data are and their size. Only the kernel's own thread counts:
# nothing is atomic.
_MEMORY = """
declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
define internal ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
entry:
  %wide = zext i32 %align to i64
  %room = add i64 %wide, 64
  %whole = add i64 %size, %room
  %short = icmp ult i64 %whole, %size
  br i1 %short, label %none, label %ask
ask:
  %block = call ptr @PyMem_RawMalloc(i64 %whole)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %none, label %made
made:
  %address = ptrtoint ptr %block to i64
  %after = add i64 %address, 63
  %past = add i64 %after, %wide
  %beyond = urem i64 %past, %wide
  %start = sub i64 %past, %beyond
  %data = inttoptr i64 %start to ptr
  store i64 1, ptr %block
  %second = getelementptr i8, ptr %block, i64 8
  store ptr null, ptr %second
  %third = getelementptr i8, ptr %block, i64 16
  store ptr null, ptr %third
  %fourth = getelementptr i8, ptr %block, i64 24
  store ptr %data, ptr %fourth
  %fifth = getelementptr i8, ptr %block, i64 32
  store i64 %size, ptr %fifth
  ret ptr %block
none:
  ret ptr null
}
define internal ptr @NRT_MemInfo_alloc(i64 %size) {
  %block = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 16)
  ret ptr %block
}
define internal ptr @NRT_Allocate(i64 %size) {
  %block = call ptr @PyMem_RawMalloc(i64 %size)
  ret ptr %block
}
define internal void @NRT_Free(ptr %block) {
  call void @PyMem_RawFree(ptr %block)
  ret void
}
define internal void @NRT_incref(ptr %block) {
  %outside = icmp eq ptr %block, null
  br i1 %outside, label %done, label %count
count:
  %old = load i64, ptr %block
  %new = add i64 %old, 1
  store i64 %new, ptr %block
  br label %done
done:
  ret void
}
define internal void @NRT_decref(ptr %block) {
  %outside = icmp eq ptr %block, null
  br i1 %outside, label %done, label %count
count:
  %old = load i64, ptr %block
  %new = sub i64 %old, 1
  store i64 %new, ptr %block
  %last = icmp eq i64 %new, 0
  br i1 %last, label %free, label %done
free:
  call void @PyMem_RawFree(ptr %block)
  br label %done
done:
  ret void
}
"""


@contextmanager
def calls() -> Iterator[dict[Kernel, tuple[Any, ...]]]:
    """The kernels called in this context, and the arguments of the last call of each."""
    seen: dict[Kernel, tuple[Any, ...]] = {}

    def call(kernel: Kernel, *arguments: Any) -> Any:
        seen[kernel] = arguments
        return kernel.dispatcher(*arguments)

    with mock.patch.object(Kernel, "__call__", call):
        yield seen


class Translation(NamedTuple):
    """A kernel's portable code, and what its index says of it."""

    code: bytes
    entry: dict[str, Any]


def translated(seen: dict[Kernel, tuple[Any, ...]]) -> tuple[dict[str, Translation], dict[str, str]]:
    """Kernels for arguments like those they were called with, by name; and why others are left to numba."""
    found: dict[str, Translation] = {}
    left: dict[str, str] = {}
    for kernel, arguments in seen.items():
        try:
            shape, answer = shape_of(arguments), _answer_of(kernel, arguments)
            code = zlib.compress(_translated(kernel, arguments, answer).encode(), 9)
        except (TypeError, ValueError) as error:
            left[kernel.name] = str(error)
            continue
        entry = {
            "content": kernel.content,
            "digest": digest_of(code).hex(),
            "arguments": shape,
            "answer": answer,
        }
        found[kernel.name] = Translation(code, entry)
    return found, left


def write(found: dict[str, Translation], folder: Path) -> None:
    """Write translations into a folder; what was in it is removed."""
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, each in found.items():
        (folder / f"{name}.ll.z").write_bytes(each.code)
    index = {name: each.entry for name, each in found.items()}
    (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")


def _answer_of(kernel: Kernel, arguments: tuple[Any, ...]) -> Any:
    """The shape of the answer, as `shape_of` tells those of arguments; None for nothing."""
    from numba import typeof

    return _shape(kernel.dispatcher.overloads[tuple(map(typeof, arguments))].signature.return_type)


def _shape(kind: Any) -> Any:
    from numba import types
    from numba.np.numpy_support import as_dtype

    if kind == types.none:
        return None
    if isinstance(kind, types.BaseTuple):
        return [_shape(part) for part in kind]  # type: ignore[attr-defined]
    if isinstance(kind, types.Array) and kind.layout == "C":
        return f"{as_dtype(kind.dtype).name} {kind.ndim}"
    if kind in (types.int64, types.float64):
        return str(kind)
    raise TypeError(f"its answer is {kind}")


def _translated(kernel: Kernel, arguments: tuple[Any, ...], answer: Any) -> str:
    """LLVM code of a function that finds a kernel's arguments in words, and adds its answer.

    It has the kernel's name: numba numbers what it compiles, so that its own names differ from build to
    build, and two builds give the same one to different kernels.
    """
    from numba import cfunc
    from numba.np.numpy_support import carray

    if any(each.opname == "RAISE_VARARGS" for each in dis.get_instructions(kernel.dispatcher.py_func)):
        raise ValueError("it raises errors of its own")
    names: dict[str, Any] = {"kernel": kernel, "carray": carray, **_intrinsics()}
    words = iter(range(1 << 16))

    def read(value: Any) -> str:
        """The expression of an argument."""
        if isinstance(value, tuple):
            names[type(value).__name__] = type(value)
            parts = ", ".join(map(read, value))
            return f"({parts},)" if type(value) is tuple else f"{type(value).__name__}({parts})"
        first = next(words)
        if isinstance(value, float):
            return f"as_float(words[{first}])"
        if not isinstance(value, np.ndarray):
            return f"words[{first}]"
        names[f"dtype_{value.dtype.name}"] = value.dtype
        shape = ", ".join(f"words[{next(words)}]" for _ in range(value.ndim))
        return f"carray(at(words[{first}]), ({shape},), dtype_{value.dtype.name})"

    lines = [f"answer = kernel({', '.join(map(read, arguments))})"]

    def tell(name: str, shape: Any) -> None:
        """Add what puts a part of the answer into words."""
        if isinstance(shape, list):
            for place, part in enumerate(shape):
                tell(f"{name}[{place}]", part)
        elif shape is not None:
            kind, _, dimensions = shape.partition(" ")
            values = [f"as_word({name})" if kind == "float64" else name]
            if dimensions:
                sizes = [f"{name}.shape[{axis}]" for axis in range(int(dimensions))]
                values = [f"{name}.ctypes.data", f"kept({name})", *sizes]
            lines.extend(f"words[{next(words)}] = {value}" for value in values)

    tell("answer", answer)
    exec("def entry(words):\n    " + "\n    ".join(lines) + "\n", names)
    entry = cfunc("void(CPointer(int64))", error_model="numpy")(names["entry"])
    symbol = entry.native_name.removeprefix("cfunc.")  # without what would tell Python of exceptions
    return _alone(entry.inspect_llvm(), symbol, kernel.name)


def _alone(text: str, symbol: str, name: str) -> str:
    """One function of a module that numba wrote, optimised, and all that it needs, under another name.

    Raises:
        ValueError: it needs other functions of numba's or Python's.
    """
    import llvmlite.binding as llvm  # type: ignore[import-untyped]

    if _ALLOCATES.search(text):
        text = _DECLARED.sub("", _COUNTING.sub("", text)) + _MEMORY
    else:  # arrays come from outside: there are no references to count
        text = _COUNTING.sub(_NOTHING, text)
    module = llvm.parse_assembly(text)
    for function in module.functions:
        if not function.is_declaration and function.name != symbol:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    module.get_function(symbol).name = name
    target = llvm.Target.from_default_triple().create_target_machine(cpu="generic")
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    needs = {each.name for each in (*module.functions, *module.global_variables) if each.is_declaration}
    if foreign := {name for name in needs if not name.startswith("llvm.")} - _GIVEN:
        raise ValueError(f"it needs {', '.join(sorted(foreign))}")
    if bound := {name for name in needs if name.startswith(("llvm.x86.", "llvm.aarch64."))}:
        raise ValueError(f"it needs {', '.join(sorted(bound))}, which not every processor has")
    return str(module)


def _intrinsics() -> dict[str, Any]:
    """What the entry needs beside Python: words as addresses and floats and back, arrays that stay."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic
    def at(context, word):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

        return types.voidptr(types.int64), codegen

    @intrinsic
    def as_float(context, word):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return builder.bitcast(args[0], ir.DoubleType())

        return types.float64(types.int64), codegen

    @intrinsic
    def as_word(context, number):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return builder.bitcast(args[0], ir.IntType(64))

        return types.int64(types.float64), codegen

    @intrinsic
    def kept(context, array):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            context.nrt.incref(builder, signature.args[0], args[0])
            parts = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0])  # type: ignore[no-untyped-call]
            return builder.ptrtoint(parts.meminfo, ir.IntType(64))

        return types.int64(array), codegen

    return {"at": at, "as_float": as_float, "as_word": as_word, "kept": kept}
