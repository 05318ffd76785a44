"""Which Python code is not the program's own: that of PyTorch, installed packages and Python itself."""

from __future__ import annotations

import re
import sys
from typing import Final

_SCRIPTS: Final = {"code", "profile", "trace"}
"""Modules of Python whose names programs of one file have, too."""
_MODULES: Final = "|".join(sorted(sys.stdlib_module_names - _SCRIPTS))
_PACKAGES: Final = "asyncio|collections|concurrent|http|importlib|json|logging|multiprocessing|re|urllib"
LIBRARY: Final = re.compile(
    r"^<|(?:^|/)(?:torch|triton|numpy|site-packages|dist-packages|lib/python[\d.]+)/"
    rf"|^(?:{_PACKAGES})/|^(?:{_MODULES})\.py(?:\(|$)"
)
"""Of a recorded function or a file; the profiler leaves out the folder from which it was imported."""
