"""An HTTP server on this machine that serves files from memory, with faults on request."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Fault = Callable[["Handler", bytes], bool]
"""Does something instead of answering; False: the request is answered after all."""


@dataclass
class Server:
    """What it serves, and what it was asked for.

    `files` are their contents by path; `faults` what goes wrong, by path, one after the other; `asked` the
    method, path and first byte of each request; `ranges` whether range requests are known; `stated` whether
    versions are.
    """

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    asked: list[tuple[str, str, int]] = field(default_factory=list)
    ranges: bool = True
    stated: bool = True
    at_once: int = 0
    most_at_once: int = 0
    delay: float = 0.0
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Handler(BaseHTTPRequestHandler):
    state: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        with self.state.lock:
            self.state.at_once += 1
            self.state.most_at_once = max(self.state.most_at_once, self.state.at_once)
        time.sleep(self.state.delay)
        try:
            self.answer(body=True)
        finally:
            with self.state.lock:
                self.state.at_once -= 1

    def answer(self, body: bool) -> None:
        path = self.path.partition("?")[0]
        wanted = self.headers.get("Range", "")
        first, last = 0, None
        if self.state.ranges and wanted:
            begin, _, end = wanted.removeprefix("bytes=").partition("-")
            first, last = int(begin), int(end) + 1 if end else None
        self.state.asked.append((self.command, path, first))
        data = self.state.files.get(path)
        if data is None and path.endswith("/"):
            data = self.page(path)
        faults = self.state.faults.get(path, [])
        if faults and (body or not getattr(faults[0], "of_body", False)) and faults.pop(0)(self, data or b""):
            return
        if data is None and self.page(f"{path}/"):
            self.send_response(301)
            self.send_header("Location", f"{path}/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if data is None:
            self.send_error(404)
            return
        part = data[first:last]
        self.send_response(206 if wanted and self.state.ranges else 200)
        if wanted and self.state.ranges:
            self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}")
        if not self.state.ranges:
            self.send_header("Accept-Ranges", "none")
        if self.state.stated:
            self.send_header("ETag", f'"{hash(data)}"')
        page = path.endswith(("/", ".html"))
        self.send_header("Content-Type", "text/html" if page else "application/octet-stream")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        if body:
            self.wfile.write(part)

    def page(self, folder: str) -> bytes | None:
        """A list of links, as Apache and nginx write it."""
        below = {
            name[len(folder) :].partition("/")[0] + "/" * ("/" in name[len(folder) :])
            for name in self.state.files
            if name.startswith(folder)
        }
        links = ["?C=N;O=D", "../", *sorted(below)]
        text = "".join(f'<a href="{link}">{link}</a>' for link in links)
        return f"<!DOCTYPE html><html><body>{text}</body></html>".encode() if below else None


@contextmanager
def serving() -> Iterator[Server]:
    """A context in which a server runs on a free port of the loopback interface."""
    state = Server()
    handler = type("Serving", (Handler,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


def status(code: int) -> Fault:
    """Answer with this status."""

    def fault(handler: Handler, _data: bytes) -> bool:
        handler.send_error(code)
        return True

    return fault


def cut(after: int) -> Fault:
    """Promise everything that was asked for, and close the connection after so many bytes of the body."""

    def fault(handler: Handler, data: bytes) -> bool:
        first = handler.state.asked[-1][2]
        handler.send_response(206 if first else 200)
        handler.send_header("Content-Length", str(len(data) - first))
        if first:
            handler.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        handler.end_headers()
        handler.wfile.write(data[first : first + after])
        handler.close_connection = True
        return True

    fault.of_body = True  # type: ignore[attr-defined]
    return fault


def fine(_handler: Handler, _data: bytes) -> bool:
    """No fault: for the requests before one."""
    return False


fine.of_body = True  # type: ignore[attr-defined]


def silent(handler: Handler, _data: bytes) -> bool:
    """Say nothing until the server closes."""
    handler.state.closing.wait(20)
    return True


silent.of_body = True  # type: ignore[attr-defined]
