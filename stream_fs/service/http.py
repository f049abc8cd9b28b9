"""A small HTTP server for a few pages.

It stands in the open, so it reads little, waits little and repeats nothing of what it was sent.
Whoever asks and takes the answer is served, also while others hold as many connections as they can:
where there is no place left, the connection that has been there longest is let go.
"""

from __future__ import annotations

import contextlib
import io
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, Final, Self, TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from stream_fs.errors import InvalidConfiguration
from stream_fs.service.observability.status_document import Status, encode


class TooMuch(Exception):
    """The request is larger than anything we would answer."""


class LimitedReader(io.RawIOBase):
    """What a socket receives, up to a number of bytes and a moment."""

    def __init__(self, connection: socket.socket, most_bytes: int, seconds: float) -> None:
        self._connection = connection
        self._left = most_bytes
        self._until = time.monotonic() + seconds

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Receive; raises `TooMuch` and `TimeoutError` at the bounds."""
        seconds = self._until - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        if not self._left:
            raise TooMuch
        self._connection.settimeout(seconds)
        count = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        return count


Check: TypeAlias = Callable[[], tuple[bool, str]]
"""Whether all is well, and if not, why not."""


def service_pages(registry: CollectorRegistry, alive: Check, ready: Check) -> dict[str, Page]:
    """The pages that every service has, by path."""
    return {
        "/metrics": lambda: Answer(
            HTTPStatus.OK, CONTENT_TYPE_PLAIN_0_0_4, generate_latest(registry)
        ),
        "/healthz": lambda: _checked(alive),
        "/readyz": lambda: _checked(ready),
    }


def _checked(check: Check) -> Answer:
    well, reason = check()
    status = HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(status, TEXT, f"{'ok' if well else reason}\n".encode())


_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def status_pages(status: Callable[[], Status]) -> dict[str, Page]:
    """The status page, by path."""
    parts = {
        f"/page/{file.name}": Answer(
            HTTPStatus.OK, _TYPES[file.name.rpartition(".")[2]], file.read_bytes()
        )
        for file in files(__package__).joinpath("page").iterdir()
    }
    parts["/"] = parts.pop("/page/index.html")
    served: dict[str, Page] = {path: _fixed(answer) for path, answer in parts.items()}
    served["/api/status"] = lambda: Answer(HTTPStatus.OK, "application/json", encode(status()))
    return served


def _fixed(answer: Answer) -> Page:
    return lambda: answer


MOST_REQUEST_BYTES: Final = 8192
"""Request line and headers together."""
MOST_SECONDS: Final = 5.0
"""For a whole request, from the connection to its last header, and for each write."""
MOST_CONNECTIONS: Final = 32
"""At a time, each with a thread; for one more, the oldest is let go."""
LEAST_SECONDS: Final = 0.05
"""What every connection has before it can be let go: many times what an honest one needs."""
_GONE_SECONDS: Final = 1.0
"""How long the thread of a connection that was let go may take to notice."""
_WAITING: Final = 128
"""Connections that the system keeps until we come to them."""
_END_SECONDS: Final = 0.1
"""How soon it notices that it should end."""

_LOGGER: Final = logging.getLogger("stream_fs.web")
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What a browser may do with a page: load what is served here, and nothing else."""
TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a page gives."""

    status: HTTPStatus
    content_type: str
    body: bytes


Page: TypeAlias = Callable[[], Answer]


class WebServer:
    """Serves pages from threads of its own, within `with` or from `start` to `close`."""

    def __init__(
        self,
        host: str,
        port: int,
        pages: Mapping[str, Page],
        *,
        most_seconds: float = MOST_SECONDS,
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        try:
            self._server = _Server(host, port, pages, most_seconds, most_connections)
        except OSError as error:
            place = f"{host} port {port}: {error.strerror}"
            raise InvalidConfiguration(
                [f"service.host, service.port: cannot listen on {place}"]
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_END_SECONDS,), name="web", daemon=True
        )

    @property
    def host(self) -> str:
        """The address that it listens on."""
        return str(self._server.server_address[0])

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Answer no more, and free the port."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """Bounded in the number of its threads."""

    daemon_threads = True
    request_queue_size = _WAITING
    # Closing must not wait for a client that says nothing.
    block_on_close = False

    def __init__(
        self,
        host: str,
        port: int,
        pages: Mapping[str, Page],
        most_seconds: float,
        most_connections: int,
    ) -> None:
        if ":" in host:
            self.address_family = socket.AF_INET6
        self.pages = pages
        self.most_seconds = most_seconds
        self._places = threading.BoundedSemaphore(most_connections)
        self._connections: dict[socket.socket, float] = {}
        """Those that are served, the oldest first, and since when."""
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        # Not HTTPServer's, which asks the resolver for a name that nobody needs.
        super(ThreadingHTTPServer, self).server_bind()

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False) or self._make_place():
            self._connections[request] = time.monotonic()
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.pop(request, None)
            self._places.release()

    def _make_place(self) -> bool:
        """Let the oldest connection go, when it has had its time; whether there is a place now."""
        for oldest, since in list(self._connections.items())[:1]:
            left = since + LEAST_SECONDS - time.monotonic()
            if left > 0 and self._places.acquire(timeout=left):
                return True
            with contextlib.suppress(OSError):  # it has gone by itself
                oldest.shutdown(socket.SHUT_RDWR)
            self._connections.pop(oldest, None)
        return self._places.acquire(timeout=_GONE_SECONDS)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002  # theirs
        _LOGGER.debug("a request was broken off", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """One request; then the connection ends."""

    # Of a request that names none. Theirs is 0.9, whose answers have no headers.
    default_request_version = "HTTP/1.0"
    server: _Server
    rfile: io.BufferedReader
    _answered = False

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        limits = (MOST_REQUEST_BYTES, self.server.most_seconds)
        self.rfile = io.BufferedReader(LimitedReader(self.connection, *limits))

    def handle_one_request(self) -> None:
        self.close_connection = True
        # What `send_error` needs, should the request not come as far as to say it.
        self.requestline, self.request_version, self.command = "", "HTTP/1.0", ""
        try:
            self.raw_requestline = self.rfile.readline()
            if self.raw_requestline and self.parse_request():
                self._answer(self._page())
        except TooMuch:
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        except TimeoutError:
            self.send_error(HTTPStatus.REQUEST_TIMEOUT)

    def handle_expect_100(self) -> bool:
        """No body is read, so nobody is asked to send one."""
        return True

    def _page(self) -> Answer:
        page = self.server.pages.get(self.path.partition("?")[0])
        if page is None:
            return _refusal(HTTPStatus.NOT_FOUND)
        if self.command not in ("GET", "HEAD"):
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        try:
            return page()
        except Exception:
            _LOGGER.exception("a page failed")
            return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR)

    def _answer(self, answer: Answer) -> None:
        """Send the answer; where one has begun, only the end of the connection may follow it."""
        if self._answered:
            return
        self._answered = True
        self.connection.settimeout(self.server.most_seconds)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Connection", "close")
        if answer.status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002  # theirs quote the request
        self._answer(_refusal(HTTPStatus(code)))

    def version_string(self) -> str:
        return "stream-fs"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: requests are not events of the stream, and theirs quotes them."""


def _refusal(status: HTTPStatus) -> Answer:
    return Answer(status, TEXT, f"{status.phrase}\n".encode())
