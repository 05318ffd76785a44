"""What is measured: hta_widgets as its users have it, in an environment of its own (`make bench` runs this).

pip builds the wheel in isolation. A checkout differs from it: what one forgets to put into the wheel, such as
translated kernels, is there. Measurements run in a folder in which the checkout's package cannot be found.
"""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import subprocess
import tempfile
import venv
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".bench"
NEEDED = ("benchmarks", "examples", "tests")  # by functions that are measured in a process of their own


def interpreter() -> str:
    """The interpreter of the environment."""
    found = ENVIRONMENT / "bin" / "python"
    if not found.exists():
        raise SystemExit("The wheel is not installed: `make bench` installs it into .bench")
    return str(found)


@cache
def folder() -> Path:
    """Where measurements run: the modules that they need beside the wheel, and not the package.

    It lies outside of the checkout, where what builds an sdist would follow its links.
    """
    beside = Path(tempfile.mkdtemp(prefix="hta_widgets-benchmarks-"))
    atexit.register(shutil.rmtree, beside, ignore_errors=True)
    for name in NEEDED:
        (beside / name).symlink_to(ROOT / name)
    return beside


def main() -> None:
    """Make the environment anew."""
    argparse.ArgumentParser(prog="python -m benchmarks.installed", description=__doc__).parse_args()
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    pip = [interpreter(), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([*pip, f"{ROOT}[hta]"], env={**clean, "CI": "true"}, check=True)  # or it fails


if __name__ == "__main__":
    main()
