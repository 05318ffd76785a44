"""The build's step that translates kernels: `python -m hta_widgets.cli.translate`.

It does what a warm-up does, notes which kernels that calls and with what, and writes them as portable code.
What cannot be translated is left to numba, and named.
"""

from __future__ import annotations

import io
import os
import sys
import warnings

# code for any processor: before numba reads them
os.environ |= {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_BOUNDSCHECK": "0"}

from hta_widgets.cli import warm_up
from hta_widgets.jit import portable
from hta_widgets.jit.machine_code import FOLDER
from hta_widgets.trace.reader import scanner

_EVENT = b'{"ph":"X","name":"%d","cat":"kernel","ts":1,"dur":2,"args":{"stream":7}}'
_NAMES = 10_000  # more than a dictionary has room for at first


def main() -> None:
    """Translate, and say what was not."""
    with warnings.catch_warnings(), portable.calls() as seen:
        warnings.simplefilter("ignore")  # about the examples
        scanner.scan(io.BytesIO(b'{"traceEvents":[%s]}' % b",".join(_EVENT % i for i in range(_NAMES))))
        for step in warm_up.STEPS.values():
            step()
    left = portable.write(seen, FOLDER)
    sys.stdout.write(f"{len(seen) - len(left)} kernels translated\n")
    for name, reason in left.items():
        sys.stdout.write(f"left to numba: {name} ({reason})\n")


if __name__ == "__main__":
    main()
