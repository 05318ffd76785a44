"""How functions become machine code: compiled to run without the GIL, and once per machine.

`kernel` marks an entry point, `inline` and `outline` the helpers that kernels call, `intrinsic` those that
write LLVM code themselves.  numba, which takes longer to start than a small file takes to read, is imported
when the first kernel is compiled: kernels that the build has translated (`portable`) run without it
(`machine_code`).

What numba compiles it keeps on disk: in `__pycache__` beside the module, where that is read-only in the
user's cache folder, or where NUMBA_CACHE_DIR says.  A kernel's machine code contains that of its helpers.
But numba looks only at the kernel's own file to see whether the code on disk is still good, and pip leaves
that code in place when it upgrades a package.  So the qualified name of a kernel, after which numba names the
files, ends in a hash of all that its machine code is made of (see `_content`).  Editing a helper, or
installing another version, recompiles the kernels that use what changed, and no others.

With NUMBA_BOUNDSCHECK=1 every array access is checked, and so are the wide loads of `bytes` (see CHECKED
there).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property, update_wrapper
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, TypeVar, cast

from hta_widgets.jit.machine_code import Translated, translation

__all__ = ["Helper", "Kernel", "compiled", "inline", "intrinsic", "kernel", "outline"]

F = TypeVar("F", bound=Callable[..., Any])

_CONTENTS: dict[str, tuple[ModuleSpec | None, str | None]] = {}
"""Module -> its import (reloading makes a new spec) and what `_content` then found for it."""


class Helper:
    """A function that kernels call, as numba sees it once a kernel is compiled."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        """`options` are numba's; without any the function is an intrinsic."""
        update_wrapper(self, function)
        self._function, self._options = function, options
        _content(function)

    @cached_property
    def compiled(self) -> Any:
        """The function as numba has it."""
        from numba import njit
        from numba.extending import intrinsic as numba_intrinsic

        if not self._options:
            return numba_intrinsic(self._function)
        # what Python would call it by is machine code of its own, for each helper of a helper, too
        options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **self._options}
        return njit(**options)(self._function)

    @cached_property
    def _from_python(self) -> Any:
        """The same for tests, which call it by itself."""
        from numba import njit

        return njit(**self._options)(self._function) if self._options else self.compiled

    @property
    def _numba_type_(self) -> Any:
        """Where numba looks for the type of a global that it does not know."""
        from numba.core.registry import cpu_target

        function = self.compiled  # first, for it adds to what the context then reads
        cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(function)

    def __call__(self, *arguments: Any) -> Any:
        return self._from_python(*arguments)


class Kernel:
    """An entry point: the build's translation of it where there is one for the arguments, else numba's."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.content = _content(function)
        if self.content is not None:
            function.__qualname__ += f"-{self.content}"
        self.name = f"{function.__module__}.{function.__name__}"
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        translated = self.translated
        if translated is not None:
            answer = translated(arguments)
            if answer is not NotImplemented:
                return answer
        return self.dispatcher(*arguments)

    @cached_property
    def translated(self) -> Translated | None:
        """The build's translation, if it is one of these very sources."""
        return translation(self.name, self.content)

    @cached_property
    def dispatcher(self) -> Any:
        """The function as numba has it; its machine code stays on disk where a writable folder is found."""
        from numba import njit

        try:
            return njit(nogil=True, cache=self.content is not None, error_model="numpy")(self._function)
        except RuntimeError:  # numba found no writable folder
            return njit(nogil=True, error_model="numpy")(self._function)

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    @property
    def is_compiled(self) -> bool:
        """Whether its machine code is there, in this process."""
        if "dispatcher" in vars(self):
            return bool(self.dispatcher.signatures)
        return self.translated is not None and self.translated.is_loaded


def intrinsic(function: Callable[..., Any]) -> Any:
    """A function of numba types that writes LLVM code."""
    return Helper(function)


def inline(function: F) -> F:
    """Compile a helper into its callers."""
    return cast(F, Helper(function, nogil=True, forceinline=True, error_model="numpy"))


def outline(function: F) -> F:
    """Compile a helper once, to be called: for rare paths, whose copies would only cost compile time."""
    return cast(F, Helper(function, nogil=True, error_model="numpy"))


def kernel(function: F) -> F:
    """Compile an entry point."""
    return cast(F, Kernel(function))


def compiled(function: Callable[..., Any]) -> bool:
    """Whether a kernel has been compiled, or loaded from disk, in this process."""
    return cast(Kernel, function).is_compiled


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
