"""How functions become machine code: compiled to run without the GIL, and once per machine.

`kernel` marks an entry point. numba keeps its machine code on disk: in `__pycache__` beside the module, where
that is read-only in the user's cache folder, or where NUMBA_CACHE_DIR says. `inline` and `outline` mark the
helpers that kernels call, `intrinsic` those that write LLVM code themselves.

A kernel's machine code contains that of its helpers. But numba looks only at the kernel's own file to see
whether the code on disk is still good, and pip leaves that code in place when it upgrades a package. So the
qualified name of a kernel, after which numba names the files, ends in a hash of all that its machine code is
made of (see `_content`). Editing a helper, or installing another version, recompiles the kernels that use
what changed, and no others.

With NUMBA_BOUNDSCHECK=1 every array access is checked, and so are the wide loads of `bytes` (see CHECKED
there).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, TypeVar, cast

from numba import njit
from numba.extending import intrinsic as numba_intrinsic

F = TypeVar("F", bound=Callable[..., Any])

_CONTENTS: dict[str, tuple[ModuleSpec | None, str | None]] = {}
"""Module -> its import (reloading makes a new spec) and what `_content` then found for it."""


def intrinsic(function: Callable[..., Any]) -> Any:
    """A function of numba types that writes LLVM code."""
    _content(function)
    return numba_intrinsic(function)


def inline(function: F) -> F:
    """Compile a helper into its callers."""
    _content(function)
    return cast(F, njit(nogil=True, forceinline=True, error_model="numpy")(function))


def outline(function: F) -> F:
    """Compile a helper once, to be called: for rare paths, whose copies would only cost compile time."""
    _content(function)
    return cast(F, njit(nogil=True, error_model="numpy")(function))


def kernel(function: F) -> F:
    """Compile an entry point; its machine code stays on disk where a writable folder is found."""
    content = _content(function)
    if content is not None:
        function.__qualname__ += f"-{content}"
    try:
        return cast(F, njit(nogil=True, cache=content is not None, error_model="numpy")(function))
    except RuntimeError:  # numba found no writable folder
        return cast(F, njit(nogil=True, error_model="numpy")(function))


def compiled(function: Callable[..., Any]) -> bool:
    """Whether a kernel has been compiled, or loaded from disk, in this process."""
    return bool(getattr(function, "signatures", ()))


def _content(function: Callable[..., Any]) -> str | None:
    """Hash of what the compiled functions of a module are made of; None where a source cannot be read.

    That is the module's text, the content of every module from which it imports compiled functions, the
    numbers above its first compiled function (machine code holds their values, and they may be imported or
    depend on the environment), and the compiler's options in this module.
    """
    module, names = function.__module__, function.__globals__
    spec = names.get("__spec__")
    if module not in _CONTENTS or _CONTENTS[module][0] is not spec:
        parts = {_OPTIONS, _source(names, function.__code__.co_filename)}
        for name, value in names.items():
            if isinstance(value, int | float):
                parts.add(f"{name}={value!r}")
            home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if home != module and home in _CONTENTS:
                parts.add(_CONTENTS[home][1])
        known = [part for part in parts if part is not None]
        content = _hash("\n".join(sorted(known)).encode()) if len(known) == len(parts) else None
        _CONTENTS[module] = spec, content
    return _CONTENTS[module][1]


def _source(names: dict[str, Any], path: str) -> str | None:
    """Hash of a module's text, which its loader finds in a zip archive too."""
    try:
        return _hash(names["__loader__"].get_data(path))
    except (AttributeError, KeyError, OSError):
        return None


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


_OPTIONS = _source(globals(), __file__)
