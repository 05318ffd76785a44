"""What a report says about the machine that made it: no folder and no user, unless it is asked to."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hta_widgets import DiffViewer, TraceExplorer, examples
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.short_paths import shorten, shortener
from tests.report.reading import content

SECRETS = (b"alice", b"wonderland")
FUNCTION = "/home/alice/wonderland project/train.py(12): main"
NOTE = "load /home/alice/wonderland/batch.bin"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An example in a private folder, with private paths in names, arguments and metadata."""
    folder = tmp_path_factory.mktemp("base") / "home" / "alice" / "wonderland run" / "trace"
    folder.mkdir(parents=True)
    for source in sorted(Path(examples.path("gpt2_baseline")).glob("*.json*")):
        data = source.read_bytes()
        trace = json.loads(gzip.decompress(data) if source.suffix == ".gz" else data)
        host = [event for event in trace["traceEvents"] if event.get("cat") == "cpu_op"]
        for number, event in enumerate(host):
            event.setdefault("args", {})["Call stack"] = FUNCTION
            if number % 3 == 0:
                event["name"] = FUNCTION
            elif number % 3 == 1:
                event.update(name=NOTE, cat="user_annotation")
            else:
                trace["traceEvents"].append(
                    {**event, "name": FUNCTION, "cat": "python_function", "args": {"Python id": number}}
                )
        trace["trace_name"] = "/home/alice/wonderland/trace.json"
        (folder / source.name.removesuffix(".gz")).write_text(json.dumps(trace))
    return folder


def texts(value: Any) -> Iterator[bytes]:
    """All that a reader of the file can find in it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from texts(key)
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str):
        yield value.encode("utf-8", "backslashreplace")
    elif isinstance(value, bytes):
        yield value
        try:
            yield zlib.decompress(value)
        except zlib.error:
            return


def disclosed(file: Path) -> list[bytes]:
    html = file.read_text()
    found = [text for text in texts(content(html)) if any(secret in text for secret in SECRETS)]
    return [*found, *(secret for secret in SECRETS if secret.decode() in html)]


def test_an_explorer_discloses_no_path(job: Path, tmp_path: Path) -> None:
    with_panels = [kind for kind in ANALYSES if kind not in ("slowdown", "pipeline")]
    explorer = TraceExplorer(job, panels=[*with_panels, "events", "what_if"])
    rank_trace = explorer.trace.rank(explorer.trace.ranks[0])
    row = next(row for row, name in enumerate(rank_trace.name) if rank_trace.names[name] == FUNCTION)
    explorer.selection.focus = (rank_trace.rank, int(rank_trace.event_id[row]))
    report = explorer.to_html(tmp_path / "short.html")
    assert disclosed(report) == []
    assert "train.py(12): main" in json.dumps(content(report.read_text()), default=str)
    full = explorer.to_html(tmp_path / "full.html", paths="full")
    assert any(FUNCTION.encode() in text for text in disclosed(full)), "it is there to be cut"
    assert any(str(job).encode() in text for text in disclosed(full))
    picture = explorer.snapshot()
    assert not any(secret.decode() in picture.to_svg() for secret in SECRETS)
    with pytest.raises(ValueError, match="short"):
        explorer.to_html(tmp_path / "other.html", paths="none")  # type: ignore[arg-type]
    explorer.close()


def test_a_comparison_discloses_no_path(job: Path, tmp_path: Path) -> None:
    viewer = DiffViewer(job, examples.path("gpt2_baseline"), names=["private", "public"])
    assert disclosed(viewer.to_html(tmp_path / "diff.html")) == []
    viewer.close()


@pytest.mark.parametrize(("text", "short"), [
    (FUNCTION, "train.py(12): main"),
    ("TraceExplorer('/data/ada/job', panels=[])", "TraceExplorer('job', panels=[])"),
    ("/home/ada", "~"), ("in /home/ada/, of", "in ~, of"), (r"C:\Users\ada", "~"), ("/Users/ada", "~"),
    (r"C:\Users\ada\run\a.json", "a.json"), (r"'C:\\Users\\ada\\a.json'", "'a.json'"),
    (r"\\server\share\a.json", "a.json"), ("file:///home/ada/a.json", "a.json"),
    ("s3://bucket/ada/a.json", "a.json"), ("see /usr/lib/x.so.1 and /opt/y/z", "see x.so.1 and z"),
    # no paths of this machine
    ("https://pytorch.org/docs/a.html", "https://pytorch.org/docs/a.html"),
    ("torch/nn/module.py(12): forward", "torch/nn/module.py(12): forward"),
    ("3/4 of forward/backward, 1 s/step", "3/4 of forward/backward, 1 s/step"),
    ("void f<a/b>(int*, ncclWork*)", "void f<a/b>(int*, ncclWork*)"), ("a // b", "a // b"), ("/", "/"),
])  # fmt: skip
def test_paths_in_text(text: str, short: str) -> None:
    assert shorten(text) == short
    assert shorten(short) == short


def test_what_was_opened_is_known_with_all_its_spaces() -> None:
    cut = shortener([["/tmp/my dir/run 1/rank0.json", "s3://a b/c/x.json?X-Sig=1"], Path("/data/q/r")])
    assert cut("open('/tmp/my dir/run 1/rank0.json')") == "open('rank0.json')"
    assert cut("open('s3://a b/c/x.json?X-Sig=1')") == "open('x.json')"
    assert cut("/data/q/r") == "r"
