"""How the scanner's functions are compiled: without the GIL, and once per machine.

`kernel` marks an entry point; its machine code is kept on disk (beside the module, or where NUMBA_CACHE_DIR
says). `inline` marks a helper that melts into its caller.  numba notices a change of the kernel's own module
only: after editing a helper's module, touch the kernel's.

With NUMBA_BOUNDSCHECK=1 every array access is checked, and so are the wide loads of `bytes` (see CHECKED
there).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit
from numba.extending import intrinsic as numba_intrinsic

F = TypeVar("F", bound=Callable[..., Any])


def intrinsic(function: Callable[..., Any]) -> Any:
    """A function of numba types that writes LLVM code."""
    return numba_intrinsic(function)


def inline(function: F) -> F:
    """Compile a helper into its callers."""
    return cast(F, njit(nogil=True, forceinline=True, error_model="numpy")(function))


def outline(function: F) -> F:
    """Compile a helper once, to be called: for rare paths, whose copies would only cost compile time."""
    return cast(F, njit(nogil=True, error_model="numpy")(function))


def kernel(function: F) -> F:
    """Compile an entry point, cached on disk where a writable place is found."""
    try:
        return cast(F, njit(nogil=True, cache=True, error_model="numpy")(function))
    except RuntimeError:  # numba found no writable folder
        return cast(F, njit(nogil=True, error_model="numpy")(function))


def compiled(function: Callable[..., Any]) -> bool:
    """Whether a kernel has been compiled, or loaded from disk, in this process."""
    return bool(getattr(function, "signatures", ()))
