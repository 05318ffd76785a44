"""What is measured: hta_widgets as its users have it, in an environment of its own (`make bench` runs this).

pip builds the wheel in isolation, from the sdist; tests/test_packaging.py looks at both. A checkout differs
from it: what one forgets to put into the wheel, such as translated kernels, is there. Measurements run in a
folder in which the checkout's package cannot be found.
"""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".bench"
DISTRIBUTIONS = ENVIRONMENT / "dist"
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


def build(target: Path, translated: bool = True) -> None:
    """Put an sdist of the checkout into a folder, and the wheel that pip builds from it in isolation.

    Args:
        target: the folder.
        translated: the sdist keeps the kernels that the checkout has translated; else the wheel's build does.
    """
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(target), str(ROOT)]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    with tempfile.TemporaryDirectory() as folder:
        source = unpacked(target, Path(folder))
        if not translated:
            shutil.rmtree(source / "hta_widgets/jit/portable_code")
        pip(Path(sys.executable), "wheel", "--no-deps", "--wheel-dir", str(target), str(source))


def unpacked(distributions: Path, folder: Path) -> Path:
    """The tree of the sdist, in a folder."""
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return folder / sdist.name.removesuffix(".tar.gz")


def pip(python: Path, *arguments: str) -> None:
    """Run pip for an environment, as CI does: it fails if kernels cannot be translated."""
    command = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"CI": "true"}
    done = subprocess.run([*command, *arguments], env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)


def main() -> None:
    """Make the environment anew."""
    argparse.ArgumentParser(prog="python -m benchmarks.installed", description=__doc__).parse_args()
    venv.create(ENVIRONMENT, clear=True)
    build(DISTRIBUTIONS)
    (wheel,) = DISTRIBUTIONS.glob("*.whl")
    pip(Path(interpreter()), "install", f"{wheel}[hta]")


if __name__ == "__main__":
    main()
