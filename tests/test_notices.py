"""Bundles, the wheel's notices and every report carry the licences of the packages that are bundled."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from hta_widgets import TraceExplorer, examples
from hta_widgets.widgets.runtime import STATIC
from tests.support import ROOT

JS = ROOT / "js"
LOCK = json.loads((JS / "package-lock.json").read_text(encoding="utf-8"))["packages"]
BUNDLED = sorted(path for path, entry in LOCK.items() if path and not entry.get("dev"))
NODE = shutil.which("node")


def missing(text: str) -> list[str]:
    """The bundled packages whose name, version or licence is not in a text."""
    if not (JS / "node_modules").exists():
        pytest.skip("needs the front end's packages: `make frontend`")
    return [
        path
        for path in BUNDLED
        if f"{path.removeprefix('node_modules/')} {LOCK[path]['version']}" not in text
        or (JS / path / "LICENSE").read_text(encoding="utf-8").strip() not in text
    ]


def test_what_is_bundled_is_known() -> None:
    assert BUNDLED == [
        "node_modules/@preact/signals",
        "node_modules/@preact/signals-core",
        "node_modules/preact",
    ]
    assert missing("") == BUNDLED


@pytest.mark.parametrize("path", sorted(STATIC.iterdir()), ids=lambda path: path.name)
def test_licences_go_with_each_bundle(path: Path) -> None:
    assert missing(path.read_text(encoding="utf-8")) == []


def test_licences_go_with_a_report(tmp_path: Path) -> None:
    explorer = TraceExplorer(examples.load("single_gpu_dataloader_stall"))
    html = explorer.to_html(tmp_path / "report.html", panels=[]).read_text(encoding="utf-8")
    assert missing(html) == []


def notices(folder: Path, *inputs: str) -> subprocess.CompletedProcess[str]:
    """What the bundler's build makes of inputs below a folder."""
    if NODE is None:
        pytest.skip("needs node")
    program = (
        f"import {{ notices }} from {json.dumps((JS / 'notices.mjs').as_uri())};"
        f"process.stdout.write(await notices({json.dumps({path: {} for path in inputs})}, process.argv[1]));"
    )
    command = [NODE, "--input-type=module", "--eval", program, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def package(folder: Path, name: str, **files: str) -> None:
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"name": name, "version": "1.0"}))
    for file, text in files.items():
        (folder / file).write_text(text)


def test_each_licence_is_there_once_and_names_its_packages(tmp_path: Path) -> None:
    modules = tmp_path / "node_modules"
    package(modules / "a", "a", LICENSE="Mine.\n")
    package(modules / "@scope/b", "@scope/b", LICENCE="Mine.\r\n")
    package(modules / "a/node_modules/c", "c", LICENSE="Theirs.", NOTICE="Read this.")
    package(modules / "unused", "unused", LICENSE="Nobody's.")
    inputs = (
        "src/index.ts",
        "node_modules/a/x.js",
        "node_modules/a/node_modules/c/x.js",
        "node_modules/@scope/b/d/x.js",
    )
    assert (
        notices(tmp_path, *inputs).stdout
        == "@scope/b 1.0, a 1.0\n\nMine.\n\nc 1.0\n\nTheirs.\n\nRead this.\n"
    )
    assert notices(tmp_path, "src/index.ts").stdout == ""


def test_a_package_without_a_licence_is_not_bundled(tmp_path: Path) -> None:
    package(tmp_path / "node_modules/a", "a", README="Take it.")
    done = notices(tmp_path, "node_modules/a/x.js")
    assert done.returncode and "a is bundled, but" in done.stderr
