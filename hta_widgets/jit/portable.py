"""Translates kernels to portable LLVM code, which `machine_code` runs: part of the build, with numba.

Which kernels, and for which arguments, is seen while something runs that calls them.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from hta_widgets.jit import Kernel
from hta_widgets.jit.machine_code import INDEX, digest_of, shape_of

__all__ = ["calls", "write"]

_COUNTING = re.compile(r"^define [^\n]*@(NRT_[id][ne]cref)\(.*?^}$", re.DOTALL | re.MULTILINE)
_NOTHING = r"define internal void @\1(ptr %0) {\n  ret void\n}"


@contextmanager
def calls() -> Iterator[dict[Kernel, tuple[Any, ...]]]:
    """The kernels called in this context, and the arguments of the last call of each."""
    seen: dict[Kernel, tuple[Any, ...]] = {}

    def call(kernel: Kernel, *arguments: Any) -> Any:
        seen[kernel] = arguments
        return kernel.dispatcher(*arguments)

    with mock.patch.object(Kernel, "__call__", call):
        yield seen


def write(seen: dict[Kernel, tuple[Any, ...]], folder: Path) -> dict[str, str]:
    """Translate kernels for arguments like those they were called with; what was in the folder is removed.

    Returns the names of those that cannot be translated, and why.
    """
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    index, left = {}, {}
    for kernel, arguments in seen.items():
        try:
            shape, results = shape_of(arguments), _results(kernel, arguments)
            text = zlib.compress(_translated(kernel, arguments, results).encode(), 9)
        except (TypeError, ValueError) as error:
            left[kernel.name] = str(error)
            continue
        (folder / f"{kernel.name}.ll.z").write_bytes(text)
        index[kernel.name] = {
            "content": kernel.content,
            "digest": digest_of(text).hex(),
            "arguments": shape,
            "results": results,
        }
    (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    return left


def _results(kernel: Kernel, arguments: tuple[Any, ...]) -> int:
    """How many words the answer takes."""
    from numba import typeof, types

    kind = kernel.dispatcher.overloads[tuple(map(typeof, arguments))].signature.return_type
    if kind == types.none:
        return 0
    parts: tuple[Any, ...] = tuple(kind) if isinstance(kind, types.BaseTuple) else (kind,)  # type: ignore[arg-type]
    if all(part == types.int64 for part in parts):
        return len(parts)
    raise TypeError(f"its answer is {kind}")


def _translated(kernel: Kernel, arguments: tuple[Any, ...], results: int) -> str:
    """LLVM code of a function that finds a kernel's arguments in words, and adds its results.

    It has the kernel's name: numba numbers what it compiles, so that its own names differ from build to
    build, and two builds give the same one to different kernels.
    """
    from numba import cfunc
    from numba.np.numpy_support import carray

    names: dict[str, Any] = {"kernel": kernel, "carray": carray, "at": _pointer()}
    words = iter(range(1 << 16))

    def read(value: Any) -> str:
        """The expression of an argument."""
        if isinstance(value, tuple):
            names[type(value).__name__] = type(value)
            parts = ", ".join(map(read, value))
            return f"({parts},)" if type(value) is tuple else f"{type(value).__name__}({parts})"
        first = next(words)
        if not isinstance(value, np.ndarray):
            return f"words[{first}]"
        names[f"dtype_{value.dtype.name}"] = value.dtype
        shape = ", ".join(f"words[{next(words)}]" for _ in range(value.ndim))
        return f"carray(at(words[{first}]), ({shape},), dtype_{value.dtype.name})"

    call = f"kernel({', '.join(map(read, arguments))})"
    first = next(words)
    lines = {
        0: [call],
        1: [f"words[{first}] = {call}"],
    }.get(results, [f"answer = {call}", *(f"words[{first + k}] = answer[{k}]" for k in range(results))])
    exec("def entry(words):\n    " + "\n    ".join(lines) + "\n", names)
    entry = cfunc("void(CPointer(int64))", error_model="numpy")(names["entry"])
    symbol = entry.native_name.removeprefix("cfunc.")  # without what would tell Python of exceptions
    return _alone(entry.inspect_llvm(), symbol, kernel.name)


def _alone(text: str, symbol: str, name: str) -> str:
    """One function of a module that numba wrote, optimised, and all that it needs, under another name.

    Raises:
        ValueError: it needs numba's or Python's functions: it owns memory, or may raise.
    """
    import llvmlite.binding as llvm  # type: ignore[import-untyped]

    # arrays come from outside: there are no references to count
    module = llvm.parse_assembly(_COUNTING.sub(_NOTHING, text))
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
    if foreign := {name for name in needs if not name.startswith("llvm.")} - {"memcpy", "memmove", "memset"}:
        raise ValueError(f"it needs {', '.join(sorted(foreign))}")
    if bound := {name for name in needs if name.startswith(("llvm.x86.", "llvm.aarch64."))}:
        raise ValueError(f"it needs {', '.join(sorted(bound))}, which not every processor has")
    return str(module)


def _pointer() -> Any:
    """An intrinsic: the address in a word as a pointer."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def at(context, word):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

        return types.voidptr(types.int64), codegen

    return at
