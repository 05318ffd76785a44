"""Files appear whole or not at all, and what killed writers left is removed."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hta_widgets.report import write
from hta_widgets.whole_files import private_folder, replacing, write_whole

GONE = 4_000_000_000  # no process has this number


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "out.html"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(target) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


def test_two_writers_of_one_process_do_not_meet(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with replacing(target) as first, replacing(target) as second:
        first.write(b"first")
        second.write(b"second")
    assert target.read_bytes() == b"first" and list(tmp_path.iterdir()) == [target]


def test_a_long_name_can_be_written(tmp_path: Path) -> None:
    target = tmp_path / ("é" * 125)
    write_whole(target, lambda file: file.write(b"x"))
    assert target.read_bytes() == b"x"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    write_whole(pipe, lambda out: out.write(b"told"))
    assert reading.communicate(timeout=60)[0] == b"told"
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


def test_what_was_left_beside_an_output_is_removed(tmp_path: Path) -> None:
    target = tmp_path / "out.html"
    left = [tmp_path / f".out.html.{GONE}", tmp_path / f".out.html.{GONE}.3"]
    kept = [
        tmp_path / f".out.html.{os.getpid()}",  # is being written
        tmp_path / f".other.html.{GONE}",  # of another output
        tmp_path / ".out.html.bak",
        tmp_path / f"out.html.{GONE}",
    ]
    for path in (*left, *kept):
        path.write_text("")
    write(target, "page")
    assert set(tmp_path.iterdir()) == {target, *kept}


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_killed_writer_is_cleaned_up_after(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from hta_widgets.whole_files import replacing
with replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    target = tmp_path / "out"
    assert subprocess.run([sys.executable, "-c", code, str(target)]).returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1 and not target.exists()
    write_whole(target, lambda file: file.write(b"whole"))
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(os.name != "posix", reason="no such permissions")
def test_folders_that_are_made_are_private(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    before = os.umask(0)
    try:
        private_folder(shared / "a" / "b")
        private_folder(shared / "a" / "b")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(folder.stat().st_mode) for folder in (shared, shared / "a", shared / "a" / "b")]
    assert modes == [0o755, 0o700, 0o700]
    (shared / "file").touch()
    with pytest.raises(FileExistsError):
        private_folder(shared / "file")
