"""Traces in a store of objects: moto plays S3, s3fs reads it, and the same words tell what fails."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import fsspec
import pandas as pd
import pytest
from moto.server import ThreadedMotoServer

from hta_widgets.errors import AccessDeniedError, RemoteError, TraceFormatError, TraceNotFoundError
from hta_widgets.trace import Trace
from hta_widgets.trace.reader import remote
from tests.trace.test_remote import content

pytestmark = pytest.mark.slow

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def store(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of another program, which puts objects into an empty bucket."""
    for name in KEYS:
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(remote, "PAUSES", (0.05, 0.05))
    client = boto3.client("s3")
    client.create_bucket(Bucket="job")
    yield client
    for found in client.list_objects_v2(Bucket="job").get("Contents", []):
        client.delete_object(Bucket="job", Key=found["Key"])
    client.delete_bucket(Bucket="job")
    fsspec.filesystem("s3").clear_instance_cache()


def put(store: Any, *keys: str, events: int = 2, **options: Any) -> None:
    for rank, key in enumerate(keys):
        store.put_object(Bucket="job", Key=key, Body=content(rank, events), **options)


def opened(path: Any, cache: bool | str | Path = False) -> Trace:
    return Trace.open(path, cache=cache)


@pytest.mark.parametrize(
    ("url", "ranks"),
    [
        ("s3://job/run", [0, 1, 2]),
        ("s3://job/run/", [0, 1, 2]),
        ("s3a://job/run/rank[12].json", [1, 2]),
        ("s3://job/run/rank1.json", [1]),
        ("s3://job/*/rank*", [0, 1, 2]),
        ("s3://job", [0, 1, 2]),
    ],
)
def test_folders_patterns_and_files(store: Any, url: str, ranks: list[int]) -> None:
    put(store, *(f"run/rank{rank}.json" for rank in range(3)))
    assert opened(url).ranks == ranks


def test_a_large_object_is_read_in_blocks_to_the_same_events(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_BLOCK", 1 << 17)
    put(store, "run/rank0.json", events=4_000)  # more than one block
    local = tmp_path / "rank0.json"
    local.write_bytes(content(0, 4_000))
    assert local.stat().st_size > 2 * remote._BLOCK
    pd.testing.assert_frame_equal(opened("s3://job/run").events(), opened(tmp_path).events())


def test_what_came_or_changed_since_the_last_opening_is_seen(store: Any, tmp_path: Path) -> None:
    put(store, "run/rank0.json", "run/rank1.json", events=5)
    cache = tmp_path / "cache"
    before = opened("s3://job/run", cache)
    assert before.ranks == [0, 1]
    store.put_object(Bucket="job", Key="run/rank0.json", Body=content(0, events=9))
    store.put_object(Bucket="job", Key="run/rank2.json", Body=content(2))
    after = opened("s3://job/run", cache)
    assert after.ranks == [0, 1, 2]
    assert after.rank(0).n == before.rank(0).n + 4
    store.put_object(Bucket="job", Key="run/rank1.json", Body=content(1, events=7))
    alone = opened(fsspec.open("s3://job/run/rank1.json"), cache)
    assert alone.rank(1).n == before.rank(1).n + 2


@pytest.mark.parametrize("url", ["s3://job/none", "s3://job/run/rank7.json", "s3://another/run"])
def test_nothing_there(store: Any, url: str) -> None:
    put(store, "run/rank0.json")
    with pytest.raises(TraceNotFoundError, match="no such file"):
        opened(url)


def test_no_credentials_and_none_needed(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, "run/rank0.json", ACL="public-read")
    put(store, "run/rank1.json")
    for name in KEYS:
        monkeypatch.delenv(name)
    fsspec.filesystem("s3").clear_instance_cache()
    with pytest.raises(RemoteError, match=r"no credentials for s3://.*AWS_PROFILE.*anon=True"):
        opened("s3://job/run")
    assert opened(fsspec.open("s3://job/run/rank0.json", anon=True)).ranks == [0]
    with pytest.raises(AccessDeniedError, match=r"denied \(403\).*AWS_PROFILE"):
        opened(fsspec.open("s3://job/run/rank1.json", anon=True))


def test_a_bad_object_costs_one_rank(store: Any) -> None:
    put(store, "run/rank0.json", "run/rank1.json")
    store.put_object(Bucket="job", Key="run/rank2.json", Body=b"[1, 2")
    trace = opened("s3://job/run")
    assert trace.ranks == [0, 1]
    (error,) = trace.failed.values()
    assert isinstance(error, TraceFormatError)
