"""Traces of other machines: what a URL stands for, faults of the network, and how they are told."""

from __future__ import annotations

import gzip
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import pytest

from hta_widgets.engine import Superseded, Ticket, submit
from hta_widgets.errors import AccessDeniedError, RemoteError, TraceFormatError, TraceNotFoundError
from hta_widgets.trace import Trace
from hta_widgets.trace.reader import remote
from hta_widgets.trace.reader.cache import fingerprint
from hta_widgets.trace.reader.discovery import discover
from hta_widgets.trace.reader.remote import RemoteFile, connected
from hta_widgets.trace.reader.remote_errors import is_final, library_error, shown
from tests.trace.helpers import kernel, slice_
from tests.trace.http_server import Server, cut, fine, serving, silent, status

pytestmark = pytest.mark.slow


def content(rank: int, events: int = 2) -> bytes:
    """A trace; with many events larger than the blocks that are read at once."""
    noise = random.Random(rank)
    slices = [slice_(f"aten::add_{noise.random()}", "cpu_op", 9.0 * at, 5.0) for at in range(events)]
    return json.dumps(
        {"distributedInfo": {"rank": rank, "world_size": 4}, "traceEvents": [*slices, kernel("k", 2, 1)]}
    ).encode()


@pytest.fixture
def server() -> Iterator[Server]:
    pytest.importorskip("aiohttp", reason="the driver of fsspec for http")
    with serving() as state:
        for rank in range(3):
            state.files[f"/run/rank{rank}.json"] = content(rank)
        yield state


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short waits."""
    monkeypatch.setattr(remote, "STALL_SECONDS", 1.0)
    monkeypatch.setattr(remote, "PAUSES", (0.05, 0.05))


def opened(path: Any, **options: Any) -> Trace:
    return Trace.open(path, cache=False, **options)


def local(tmp_path: Path, data: bytes) -> Trace:
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    return opened(path)


def put(where: str, data: bytes) -> None:
    with fsspec.open(f"memory://{where}", "wb") as file:
        file.write(data)


# -- what a URL stands for ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "ranks"),
    [
        ("run/", [0, 1, 2]),
        ("run", [0, 1, 2]),
        ("run/rank1.json", [1]),
        ("run/rank[01].json", [0, 1]),
        ("run/rank*", [0, 1, 2]),
        ("nested/host_*", [0, 1]),
        ("nested", [0, 1]),
        ("nested/*/1.json", [1]),
    ],
)
def test_files_folders_and_patterns_of_any_file_system(url: str, ranks: list[int]) -> None:
    for rank in range(3):
        put(f"/patterns/run/rank{rank}.json", content(rank))
    for rank in range(2):
        put(f"/patterns/nested/host_{rank}/{rank}.json", content(rank))
    put("/patterns/run/readme.txt", b"no trace")
    assert opened(f"memory://patterns/{url}").ranks == ranks


def test_nothing_there() -> None:
    with pytest.raises(TraceNotFoundError, match=r"nothing matches memory://nowhere/\*"):
        opened("memory://nowhere/*")
    with pytest.raises(TraceNotFoundError, match=r"no such file or folder: memory:///?nowhere"):
        opened("memory://nowhere")
    with pytest.raises(TraceNotFoundError, match=r"memory:///nowhere.json: no such file"):
        opened("memory://nowhere.json")


@pytest.mark.parametrize("url", ["/run/", "/run", "/", "/run/rank*.json"])
def test_folders_and_patterns_of_the_web(server: Server, url: str) -> None:
    assert opened(server.url + url).ranks == [0, 1, 2]


def test_links_out_of_a_folder_are_not_followed(server: Server) -> None:
    with serving() as other:
        other.files["/run/rank8.json"] = content(8)
        server.files["/up/rank7.json"] = server.files["/run/sub/rank6.json"] = content(7)
        links = [
            f"{other.url}/run/rank8.json", other.url.removeprefix("http:") + "/run/rank8.json",
            "../up/rank7.json", "%2e%2e/up/rank7.json", "sub/../../up/rank7.json", r"..\up\rank7.json",
            "/up/rank7.json", f"{server.url}/up/rank7.json", "file:///run/rank8.json",
            "memory://run/rank8.json", "rank0.json",
        ]  # fmt: skip
        server.files["/run/"] = "".join(f'<a href="{link}">a trace</a>' for link in links).encode()
        trace = opened(f"{server.url}/run/")
        assert (trace.ranks, trace.failed, other.asked) == ([0], {}, [])
        assert {path for _, path, _ in server.asked} <= {"/run/", "/run/rank0.json", "/run/hta_widgets.toml"}


def test_the_page_of_a_folder_is_not_a_trace(server: Server) -> None:
    server.files["/login.json"] = b"\n<!DOCTYPE html><html>Please log in</html>"
    trace = opened([f"{server.url}/login.json", f"{server.url}/run/rank0.json"])
    assert "a web page, not a trace" in str(trace.failed["login.json"])
    server.files = {"/empty/readme.txt": b""}
    with pytest.raises(TraceNotFoundError, match="no trace file"):
        opened(f"{server.url}/empty/")


def test_a_file_with_any_name_by_its_own_address(server: Server) -> None:
    server.files["/download"] = content(3)
    assert opened(f"{server.url}/download?id=7").ranks == [3]


def test_secrets_of_a_url_are_sent_and_not_shown(server: Server) -> None:
    url = server.url.replace("http://", "http://user:password@") + "/run/rank1.json?signature=abc"
    trace = opened(url)
    assert trace.summary["files"] == [f"{server.url}/run/rank1.json"]
    server.files.clear()
    with pytest.raises(TraceNotFoundError) as error:
        opened(url)
    assert not {"password", "abc"} & set(str(error.value).replace("=", " ").replace(":", " ").split())
    assert shown("s3://bucket/a?b") == "s3://bucket/a?b"


def test_the_caller_may_open_with_options(server: Server) -> None:
    assert opened(fsspec.open(f"{server.url}/run/rank2.json", headers={"X-Key": "1"})).ranks == [2]


# -- one bad file ------------------------------------------------------------------------------------------


def test_each_fault_costs_one_rank_and_is_told_as_what_it_is(server: Server, soon: None) -> None:
    server.faults["/run/rank1.json"] = [status(403)] * 20
    server.faults["/run/rank2.json"] = [status(500)] * 20
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        bad = [f"http://127.0.0.1:{port}/refused.json", f"{server.url}/gone.json"]
        trace = opened([f"{server.url}/run/rank{rank}.json" for rank in range(3)] + bad)
    assert trace.ranks == [0]
    assert {name: type(error) for name, error in trace.failed.items()} == {
        "rank1.json": AccessDeniedError,
        "rank2.json": RemoteError,
        "refused.json": RemoteError,
        "gone.json": TraceNotFoundError,
    }
    said = {name: str(error) for name, error in trace.failed.items()}
    assert "access is denied (403). Pass what the server asks for" in said["rank1.json"]
    assert "status 500" in said["rank2.json"]
    assert "the connection is refused. Check host and port" in said["refused.json"]
    assert set(trace.health.loc[trace.health["check"] == "unreadable", "severity"]) == {"error"}


def test_a_folder_that_is_out_of_reach_costs_its_own_ranks(server: Server, soon: None) -> None:
    server.faults["/other/"] = [status(403)] * 20
    trace = opened([f"{server.url}/run/", f"{server.url}/other/"])
    assert trace.ranks == [0, 1, 2]
    assert isinstance(trace.failed[f"{server.url}/other/"], AccessDeniedError)
    with pytest.raises(AccessDeniedError):
        opened([f"{server.url}/other/", f"{server.url}/other/"])


def test_a_url_out_of_reach_among_others_by_rank() -> None:
    put("/by_rank/a.json", content(0))
    trace = opened({4: "memory://by_rank/a.json", 5: "nothing://bucket/b.json", 6: "memory://by_rank/none/"})
    assert (trace.ranks, set(trace.failed)) == ([4], {"nothing://bucket/b.json", "memory://by_rank/none/"})
    with pytest.raises(RemoteError, match="knows no nothing://"):
        opened({5: "nothing://bucket/b.json"})


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("s3://bucket/run/", "pip install s3fs"),
        ("gs://bucket/run/*.json", "pip install gcsfs"),
        ("abfs://bucket/run/rank0.json", "pip install adlfs"),
        ("nothing://bucket/run/", "fsspec knows no nothing://"),
    ],
)
def test_a_missing_driver_is_named_with_what_to_install(
    url: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def import_fails(name: str, *_: object, **__: object) -> None:
        raise ImportError(f"Install {name} to access it")

    if not url.startswith("nothing"):  # the drivers may be there
        monkeypatch.setattr("fsspec.core.get_filesystem_class", import_fails)
    with pytest.raises(RemoteError, match=words):
        opened(url)


class NoCredentialsError(Exception):
    """As botocore calls it."""


class ClientError(Exception):
    """Like botocore's: the status is in the response."""

    def __init__(self, code: int) -> None:
        super().__init__("An error occurred")
        self.response = {"ResponseMetadata": {"HTTPStatusCode": code}}


@pytest.mark.parametrize(
    ("error", "words", "final"),
    [
        (
            NoCredentialsError("Unable to locate credentials"),
            "no credentials for s3://. Set AWS_PROFILE",
            True,
        ),
        (ClientError(403), r"access is denied \(403\). Set AWS_PROFILE", True),
        (PermissionError("Forbidden"), "access is denied. Set AWS_PROFILE", True),
        (ClientError(404), "no such file or folder: s3://bucket/key", True),
        (ClientError(503), "status 503", False),
        (ClientError(429), "status 429", False),
        (ConnectionResetError(104, "reset"), "the connection was cut. Try again", False),
        (OSError("EOF in transport"), "OSError: EOF in transport", False),
        (FileNotFoundError("bucket/key"), "no such file", True),
    ],
)
def test_errors_of_drivers_in_words(error: Exception, words: str, final: bool) -> None:
    with pytest.raises((RemoteError, TraceNotFoundError), match=words):
        raise library_error(error, "s3://bucket/key")
    assert is_final(error, begun=False) is final


def test_a_refused_connection_is_tried_again_only_where_there_was_one() -> None:
    refused = ConnectionRefusedError(111, "refused")
    assert (is_final(refused, begun=False), is_final(refused, begun=True)) == (True, False)


# -- faults that pass --------------------------------------------------------------------------------------


def test_a_server_that_fails_once_is_asked_again(server: Server, soon: None) -> None:
    server.faults["/run/rank1.json"] = [status(500), status(503)]
    server.faults["/run/"] = [status(500)]
    assert opened(f"{server.url}/run/").ranks == [0, 1, 2]


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_connection_that_is_cut_goes_on_where_it_was(
    server: Server,
    soon: None,
    tmp_path: Path,
    ranges: bool,
    zipped: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, "_BLOCK", 1 << 14)
    text = content(1, 4_000)
    path = "/large.json.gz" if zipped else "/large.json"
    data = gzip.compress(text, 1) if zipped else text
    server.files, server.ranges = {path: data}, ranges
    server.faults[path] = [fine, cut(10_000), cut(100)] if ranges else [cut(len(data) // 2), cut(100)]
    trace = opened(server.url + path)
    pd.testing.assert_frame_equal(trace.events(), local(tmp_path, text).events())
    assert not set(trace.health["check"]) & {"truncated", "damaged"}
    assert not server.faults[path]
    begins = [first for method, asked, first in server.asked if (method, asked) == ("GET", path)]
    if ranges:  # only the blocks that were cut are asked for again
        assert begins.count(0) == 1
        assert min(begins[1:]) >= remote._BLOCK
        assert len(begins) > len(data) / (2 * remote._BLOCK) + 2
    else:
        assert begins == [0, 0, 0]


def test_a_server_that_hides_that_it_knows_no_ranges(
    server: Server, soon: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_BLOCK", 1 << 17)
    text = content(1, 5_000)
    server.files["/large.json"] = text

    def whole(handler: Any, data: bytes) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        if handler.command == "GET":
            try:
                handler.wfile.write(data)
            except OSError:  # the reader has seen enough
                handler.close_connection = True
        return True

    server.faults["/large.json"] = [whole] * 50
    trace = opened(f"{server.url}/large.json")
    pd.testing.assert_frame_equal(trace.events(), local(tmp_path, text).events())


def test_a_silent_server_is_left_and_asked_again(server: Server, soon: None, tmp_path: Path) -> None:
    server.faults["/run/rank1.json"] = [silent]
    began = time.monotonic()
    assert opened(f"{server.url}/run/rank1.json").ranks == [1]
    assert 0.9 < time.monotonic() - began < 8
    server.faults["/run/rank1.json"] = [silent] * 9
    with pytest.raises(RemoteError, match="nothing came for 1 s"):
        opened(f"{server.url}/run/rank1.json")


def test_what_stays_cut_is_told_and_no_trace(server: Server, soon: None) -> None:
    server.faults["/run/rank1.json"] = [cut(10)] * 20
    with pytest.raises(RemoteError):
        opened(f"{server.url}/run/rank1.json")


# -- cancelling, and many files ----------------------------------------------------------------------------


def test_cancelling_ends_the_reading_within_a_second(server: Server) -> None:
    for rank in range(3):
        server.faults[f"/run/rank{rank}.json"] = [silent] * 9
    begun = time.monotonic()
    raised = []

    def cancel(*_: object) -> None:
        if time.monotonic() - begun > 0.5:
            raised.append(time.monotonic())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        opened([f"{server.url}/run/rank{rank}.json" for rank in range(3)], progress=cancel)
    assert time.monotonic() - raised[0] < 1.0


def test_a_superseded_search_for_files_ends_within_a_second(server: Server) -> None:
    server.faults["/run/"] = [silent] * 9
    ticket = Ticket()
    found = submit(lambda: discover(f"{server.url}/run/"), ticket)
    time.sleep(0.3)
    ticket.revoke()
    with pytest.raises(Superseded):
        found.result(1.0)


def test_many_small_files_are_read_at_the_same_time(server: Server) -> None:
    server.files = {f"/many/rank{rank}.json": content(rank) for rank in range(40)}
    server.delay = 0.1
    trace = opened(f"{server.url}/many/")
    assert trace.ranks == list(range(40))
    assert 4 < server.most_at_once <= 20


def test_no_thread_is_left_behind(server: Server) -> None:
    opened(f"{server.url}/run/")
    until = time.monotonic() + 5
    while time.monotonic() < until and any("remote" in thread.name for thread in threading.enumerate()):
        time.sleep(0.05)
    assert not [thread.name for thread in threading.enumerate() if "hta_widgets_remote" in thread.name]


# -- the cache ---------------------------------------------------------------------------------------------


def test_a_file_that_changed_is_read_again(server: Server, tmp_path: Path) -> None:
    url = f"{server.url}/run/rank1.json"
    assert Trace.open(url, cache=tmp_path).ranks == [1]
    before = len(server.asked)
    assert Trace.open(f"{url}?signature=other", cache=tmp_path).ranks == [1]
    assert [method for method, path, _ in server.asked[before:] if path.endswith("rank1.json")] == ["HEAD"]
    server.files["/run/rank1.json"] = content(2)
    assert Trace.open(url, cache=tmp_path).ranks == [2]


def test_without_a_stated_version_nothing_is_cached(server: Server) -> None:
    server.stated = False
    file = RemoteFile(*connected(f"{server.url}/run/rank1.json"))
    assert fingerprint(file) is None
    server.stated = True
    assert fingerprint(RemoteFile(*connected(f"{server.url}/run/rank0.json"))) is not None


def test_a_file_of_rules_beside_remote_traces_is_read() -> None:
    put("/ruled/rank0.json", content(0))
    put("/ruled/hta_widgets.toml", b'[[class]]\nname = "^k$"\nclass = "communication"\n')
    events = opened("memory://ruled").events()
    assert set(events.loc[events["name"] == "k", "event_class"]) == {"communication"}


def test_a_store_that_refuses_files_of_rules_is_no_problem(server: Server) -> None:
    server.faults["/run/hta_widgets.toml"] = [status(403)] * 4
    trace = opened(f"{server.url}/run/")
    assert "class_rules" not in set(trace.health["check"])


def test_foreign_files_by_url_are_told(server: Server) -> None:
    server.files["/a.json"] = b'{"nodes": []}'
    with pytest.raises(TraceFormatError):
        opened(f"{server.url}/a.json")
