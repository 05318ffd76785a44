"""Kernels that the build translated give the answers of those that numba compiles, and are never stale."""

import io
import json
import os
import random
import re
import struct
import subprocess
import sys
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from hta_widgets import Trace, examples
from hta_widgets.analysis import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.jit import Kernel, kernel, machine_code, object_code, portable
from hta_widgets.trace import links
from hta_widgets.trace.reader import dictionary, event_scan, head, scanner
from tests.fuzz.mutators import document
from tests.support import ROOT, is_asked, shared_input

Floats = npt.NDArray[np.float64]
READING = (dictionary.intern_text, dictionary.fill_slots, event_scan.scan_block, head._search)


@pytest.fixture
def left_to_numba(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Kernels as they are where the build translated nothing."""
    with monkeypatch.context() as patch:
        patch.setattr(Kernel, "translated", None)
        yield patch


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path / "machine_code"


def translated(kernel: Any) -> machine_code.Translated:
    """A kernel's translation, not loaded yet; without one the build has not run."""
    entry = machine_code._index()[kernel.name]
    assert kernel.content == entry["content"], "python hatch_build.py translates the kernels anew"
    return machine_code.Translated(kernel.name, entry)


def search(kernel: Any) -> int:
    text = np.frombuffer(b'{"a": 1, "traceEvents": [{', np.uint8)
    return kernel((text, np.zeros(head._STATES, np.int64)))  # type: ignore[no-any-return]


@pytest.mark.parametrize("kernel", READING)
def test_what_reads_a_file_is_translated(kernel: Any) -> None:
    assert translated(kernel)


def test_no_numba_is_imported(tmp_path: Path) -> None:
    uses = [
        "analysis.temporal_breakdown(Trace.open(folder, cache=False))",
        "TraceAnalysis(trace_dir=str(folder)).get_temporal_breakdown(visualize=False)",
        "TraceAnalysis(trace_dir=str(folder)).critical_path_analysis(0, 'ProfilerStep', 0)",
        "TraceExplorer(Trace.open(folder, cache=False)).to_html(sys.argv[1])",
    ]
    code = (
        "import sys; from hta_widgets import Trace, TraceExplorer, analysis, examples\n"
        "from hta_widgets.hta.trace_analysis import TraceAnalysis\n"
        "folder = examples.path('ddp_4ranks')\n"
        + "".join(f"{use}\nprint('numba' in sys.modules)\n" for use in uses)
    )
    command = [sys.executable, "-c", code, str(tmp_path / "report.html")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"] * len(uses), done.stderr


def test_first_screens_of_every_kind_of_recording_need_no_compiler() -> None:
    code = (
        "import sys; from hta_widgets import Trace; from hta_widgets.analysis.findings.story import story\n"
        "for path in sys.argv[1:]:\n"
        "    story(Trace.open(path, cache=False))\n"
        "    assert 'numba' not in sys.modules, path"
    )
    folder = shared_input("recordings")
    paths = [str(path) for path in sorted(folder.iterdir()) if path.is_dir() and is_asked(path)]
    assert len(paths) > 20
    done = subprocess.run([sys.executable, "-c", code, *paths], cwd=ROOT, capture_output=True, text=True)
    assert not done.returncode, done.stderr


placed_here = pytest.mark.skipif(not object_code.IS_POSSIBLE, reason="LLVM places machine code here")


@placed_here
def test_llvm_is_loaded_once_on_a_machine(kept: Path) -> None:
    code = (
        "import sys; from hta_widgets import Trace, analysis, examples\n"
        "analysis.temporal_breakdown(Trace.open(examples.path('ddp_4ranks'), cache=False))\n"
        "print('llvmlite' in sys.modules)"
    )

    def told() -> str:
        command = [sys.executable, "-c", code]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    assert [told(), told()] == ["True", "False"]


@placed_here
def test_every_kernel_is_placed_without_llvm() -> None:
    for name in machine_code._index():
        text = (machine_code.FOLDER / f"{name}.ll.z").read_bytes()
        assert object_code.placed(machine_code._machine_code(name, text), name)


def patched(code: bytes, at: int, layout: str, value: int) -> bytes:
    changed = bytearray(code)
    struct.pack_into(layout, changed, at, value)
    return bytes(changed)


@placed_here
@pytest.mark.parametrize("what", ["machine", "relocation", "variables", "no bits", "function", "of process"])
def test_what_is_not_plain_is_left_to_llvm(what: str) -> None:
    name = links._nest.name  # type: ignore[attr-defined]
    code = machine_code._machine_code(name, (machine_code.FOLDER / f"{name}.ll.z").read_bytes())
    first = struct.unpack_from("<Q", code, 40)[0]
    sections = object_code._sections(code)
    loaded = next(k for k, section in enumerate(sections) if section.flags & 2 and section.size)
    relocations = next(
        section for section in sections if section.kind == 4 and sections[section.target].kind == 1
    )
    other = {
        "machine": lambda: patched(code, 18, "<H", 183),
        "relocation": lambda: patched(code, relocations.at + 8, "<I", 2),
        "variables": lambda: patched(code, first + 64 * loaded + 8, "<Q", sections[loaded].flags | 1),
        "no bits": lambda: patched(code, first + 64 * loaded + 4, "<I", 8),
        "function": lambda: code.replace(name.encode(), name[::-1].encode()),
        "of process": lambda: code.replace(b"PyMem_RawMalloc", b"PyMem_RawMallox"),
    }[what]()
    assert other != code and object_code.placed(code, name)
    with pytest.raises(object_code.NotPlacedError):
        object_code.placed(other, name)


@placed_here
def test_llvm_places_what_is_left_to_it(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(code: bytes, function: str) -> int:
        raise object_code.NotPlacedError

    monkeypatch.setattr(object_code, "placed", refuse)
    assert search(translated(head._search)) == 24


def test_every_kernel_is_translated() -> None:
    """Kernels are found in the text of modules, so that one that the build never calls is missed here."""
    marked = re.compile(r"^@kernel\ndef (\w+)\(", re.MULTILINE)
    expected = {
        f"{'.'.join(file.relative_to(ROOT).with_suffix('').parts)}.{name}"
        for file in (ROOT / "hta_widgets").rglob("*.py")
        for name in marked.findall(file.read_text())
    }
    assert len(expected) > 50
    assert {name.replace(".__init__.", ".") for name in expected} == set(machine_code._index())


def columns_of(text: bytes) -> dict[str, Any]:
    table = scanner.scan(io.BytesIO(text), block_bytes=4096)
    dense = {name: table.codes(name).tolist() for name in table.text_columns}
    sparse = {name: [part.tolist() for part in table.sparse(name)] for name in table.columns}
    return {"n": table.n, "problems": table.problems, **dense, **sparse}


def test_files_are_read_the_same(left_to_numba: pytest.MonkeyPatch) -> None:
    texts = [document(random.Random(seed)) for seed in range(60)]
    texts.append(
        b'{"traceEvents":[%s]}' % b",".join(b'{"ph":"X","name":"%d","ts":1}' % i for i in range(9000))
    )

    def answers() -> list[Any]:
        found: list[Any] = []
        for text in texts:
            try:
                found.append(columns_of(text))
            except Exception as error:  # the same refusal, in the same words
                found.append(str(error))
        return found

    by_numba = answers()
    left_to_numba.undo()
    assert answers() == by_numba
    assert sum(isinstance(answer, dict) for answer in by_numba) > 30


@pytest.mark.slow
def test_analyses_answer_the_same(left_to_numba: pytest.MonkeyPatch) -> None:
    def answers() -> dict[str, pd.DataFrame]:
        trace = Trace.open(examples.path("ddp_4ranks"), cache=False)
        found = {}
        for name, entry in ANALYSES.items():
            try:
                found[name] = entry.function(trace)
            except MissingDataError:
                continue
        return found

    by_numba = answers()
    left_to_numba.undo()
    for name, frame in answers().items():
        pd.testing.assert_frame_equal(frame, by_numba.pop(name))
    assert not by_numba


def test_machine_code_is_kept_and_used_again(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert search(translated(head._search)) == 24
    (file,) = kept.glob("*.o")
    written = file.read_bytes()
    monkeypatch.setattr(machine_code, "_lowered", None)  # would fail if it were called
    assert search(translated(head._search)) == 24
    assert [file.read_bytes() for file in kept.iterdir()] == [written]


@pytest.mark.parametrize("damage", [(b"", b""), (b"\x7f", b"\x80")])
def test_damaged_machine_code_is_made_again(kept: Path, damage: tuple[bytes, bytes]) -> None:
    assert search(translated(head._search)) == 24
    (file,) = kept.glob("*.o")
    written = file.read_bytes()
    file.write_bytes(written.replace(*damage) if damage[0] else written[:-1])
    assert search(translated(head._search)) == 24
    assert file.read_bytes() == written


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no modes here")
def test_machine_code_that_others_may_write_is_not_run(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert search(translated(head._search)) == 24
    kept.chmod(0o777)
    made, lowered = [], machine_code._lowered
    monkeypatch.setattr(machine_code, "_lowered", lambda text: made.append(text) or lowered(text))
    assert search(translated(head._search)) == 24
    assert len(made) == 1


def test_without_a_folder_it_is_made_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert search(translated(head._search)) == 24


def test_what_nobody_used_for_a_month_goes(kept: Path) -> None:
    search(translated(head._search))
    (used,) = kept.glob("*.o")
    old, recent = kept / "old.o", kept / "recent.o"
    for file, days in ((old, 31), (recent, 29), (used, 29)):
        file.touch()
        os.utime(file, (time.time() - days * 86400,) * 2)
    search(translated(head._search))
    assert time.time() - used.stat().st_mtime < 86400
    translated(dictionary.intern_text)._load()
    assert not old.exists()
    assert recent.exists() and used.exists()


def test_what_another_build_wrote_is_not_run(
    kept: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another version may be installed over the one whose index this process has read."""
    name = head._search.name
    entry = machine_code._index()[name]
    other = (machine_code.FOLDER / f"{dictionary.intern_text.name}.ll.z").read_bytes()
    monkeypatch.setattr(machine_code, "FOLDER", tmp_path)
    (tmp_path / f"{name}.ll.z").write_bytes(other)
    assert search(machine_code.Translated(name, entry)) is NotImplemented
    assert search(machine_code.Translated(name, {**entry, "digest": None})) is NotImplemented
    assert not kept.exists()
    (tmp_path / "another.ll.z").write_bytes(other)
    known = entry | {"digest": machine_code.digest_of(other).hex()}
    assert search(machine_code.Translated("another", known)) is NotImplemented  # it has no such function


def test_a_translation_has_its_kernels_name() -> None:
    """numba numbers what it compiles, so that two builds give one name to different kernels."""
    for name in machine_code._index():
        text = zlib.decompress((machine_code.FOLDER / f"{name}.ll.z").read_bytes()).decode()
        defined = [line for line in text.splitlines() if line.startswith("define") and "internal" not in line]
        assert len(defined) == 1 and f"@{name}(" in defined[0].replace('"', "")


def test_other_sources_have_no_translation() -> None:
    name = head._search.name
    assert machine_code.translation(name, "0" * 16) is None
    assert machine_code.translation(name, None) is None
    assert machine_code.translation("no.such.kernel", "0" * 16) is None


def test_arguments_of_another_shape_are_left_to_numba() -> None:
    text, state = np.frombuffer(b'{"traceEvents": [', np.uint8), np.zeros(2 * head._STATES, np.int64)
    one = translated(head._search)
    for arguments in (
        (text,),
        (text, state.astype(np.int32)),
        (text, state.reshape(2, -1)),
        (text, state[::2]),
        (text, 5),
        (text, state.tolist()),
        (5, state),
    ):
        assert one(arguments) is NotImplemented
    assert head._search(text, state[::2]) == head._search(text, state[: head._STATES] * 0) == 16


def test_an_unreadable_build_is_no_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    entry = machine_code._index()[head._search.name]
    monkeypatch.setattr(machine_code, "FOLDER", tmp_path)
    assert search(machine_code.Translated("gone", entry)) is NotImplemented
    (tmp_path / "damaged.ll.z").write_bytes(b"not compressed")
    assert search(machine_code.Translated("damaged", entry)) is NotImplemented
    machine_code._index.cache_clear()
    try:
        for text in ("{", "[]", json.dumps("x")):
            (tmp_path / machine_code.INDEX).write_text(text)
            assert machine_code.translation("any", "0" * 16) is None
            machine_code._index.cache_clear()
    finally:
        monkeypatch.undo()
        machine_code._index.cache_clear()


@kernel
def scaled(values: Floats, factor: float, n: int) -> tuple[Floats, tuple[Floats, float], Floats, int]:
    """What makes arrays, hands some over, one of them twice, and drops one."""
    dropped = np.empty(n + 1000, np.float64)
    grid = np.empty((n, 2), np.float64)
    for i in range(n):
        dropped[i] = values[i] * factor
    for i in range(n):
        grid[i, 0] = dropped[i]
        grid[i, 1] = -dropped[i]
    return grid, (grid[1:], factor * 0.5), values, n


@kernel
def refused(n: int) -> int:
    if n < 0:
        raise ValueError("less than nothing")
    return n


@kernel
def listed(values: Floats) -> int:
    found = []
    for value in values:
        found.append(value)
    return len(found)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, str], Path]:
    """What a build makes of these kernels: what it left, and the folder of what it translated."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(machine_code, "FOLDER", tmp_path / "built")
    with portable.calls() as seen:
        scaled(np.arange(3.0), 2.0, 3)
        refused(1)
        listed(np.arange(3.0))
    found, left = portable.translated(seen)
    portable.write(found, tmp_path / "built")
    return left, tmp_path / "built"


def test_what_has_errors_or_needs_python_is_left_to_numba(built: tuple[dict[str, str], Path]) -> None:
    left, folder = built
    assert left[refused.name] == "it raises errors of its own"  # type: ignore[attr-defined]
    assert left[listed.name].startswith("it needs NRT_")  # type: ignore[attr-defined]
    assert list(json.loads((folder / machine_code.INDEX).read_text())) == [scaled.name]  # type: ignore[attr-defined]


def test_arrays_that_a_kernel_made_are_the_answers(built: tuple[dict[str, str], Path]) -> None:
    (entry,) = json.loads((built[1] / machine_code.INDEX).read_text()).values()
    code = machine_code.Translated(scaled.name, entry)  # type: ignore[attr-defined]
    values = np.arange(5.0)
    grid, (part, half), same, n = code((values, 3.0, 5))
    expected = scaled.dispatcher(values, 3.0, 5)  # type: ignore[attr-defined]
    assert np.array_equal(grid, expected[0]) and np.array_equal(part, expected[1][0])
    assert (half, n) == (1.5, 5)
    grid[1, 0] = 7.0  # both show the same memory, as numba's do
    assert part[0, 0] == 7.0
    del grid
    again = [code((values, 1.0, 5)) for _ in range(200)]  # would be written where freed memory was
    assert part[0, 0] == 7.0 and part[3, 1] == -12.0
    assert all(each[0][4, 1] == -4.0 for each in again)
    same[:] = 0  # a copy: numba gives the argument itself
    assert values[4] == 4.0
    assert code((values, 1.0, 0))[0].shape == (0, 2)
    assert code((values, 1, 5)) is NotImplemented  # an integer, which numba compiles anew


def test_memory_is_given_back(built: tuple[dict[str, str], Path]) -> None:
    (entry,) = json.loads((built[1] / machine_code.INDEX).read_text()).values()
    code = machine_code.Translated(scaled.name, entry)  # type: ignore[attr-defined]
    values = np.zeros(100_000)

    def traced() -> int:
        for _ in range(20):
            code((values, 1.0, len(values)))
        return tracemalloc.get_traced_memory()[0]  # Python's allocator tells it of what kernels ask for

    tracemalloc.start()
    try:
        first = traced()
        held = code((values, 1.0, len(values)))
        assert tracemalloc.get_traced_memory()[0] > first + held[0].nbytes
        del held
        assert traced() < first + values.nbytes
    finally:
        tracemalloc.stop()


def test_more_memory_than_there_is(built: tuple[dict[str, str], Path]) -> None:
    (entry,) = json.loads((built[1] / machine_code.INDEX).read_text()).values()
    code = machine_code.Translated(scaled.name, entry)  # type: ignore[attr-defined]
    with pytest.raises(MemoryError, match=r"not enough memory for tests\.test_machine_code\.scaled"):
        code((np.zeros(1), 1.0, 1 << 58))
