"""The HTTP server: metrics, health checks and the status page.

It is exposed to untrusted clients, so it limits the size and duration of every request, and never
echoes what it received. Clients that hold connections open cannot block others: at the limit, the
oldest connection is closed.
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


class RequestTooLarge(Exception):
    """The request exceeds `MOST_REQUEST_BYTES`."""


class LimitedReader(io.RawIOBase):
    """Reads from a socket, up to a number of bytes and a deadline."""

    def __init__(self, connection: socket.socket, most_bytes: int, seconds: float) -> None:
        self._connection = connection
        self._left = most_bytes
        self._until = time.monotonic() + seconds

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Receive; raises `RequestTooLarge` and `TimeoutError` at the limits."""
        seconds = self._until - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        if not self._left:
            raise RequestTooLarge
        self._connection.settimeout(seconds)
        count = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        return count


Check: TypeAlias = Callable[[], tuple[bool, str]]
"""Whether a check passes, and the reason if it does not."""


def service_pages(registry: CollectorRegistry, alive: Check, ready: Check) -> dict[str, Page]:
    """Metrics and health checks, by path."""
    return {
        "/metrics": lambda: Answer(
            HTTPStatus.OK, CONTENT_TYPE_PLAIN_0_0_4, generate_latest(registry)
        ),
        "/healthz": lambda: _checked(alive),
        "/readyz": lambda: _checked(ready),
    }


def _checked(check: Check) -> Answer:
    passed, reason = check()
    status = HTTPStatus.OK if passed else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(status, TEXT, f"{'ok' if passed else reason}\n".encode())


_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def status_pages(status: Callable[[], Status]) -> dict[str, Page]:
    """The status page and its parts, by path."""
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
"""Timeout of a whole request, from the connection to its last header, and of each write."""
MOST_CONNECTIONS: Final = 32
"""Concurrent connections, each with a thread; at the limit, the oldest is closed."""
LEAST_SECONDS: Final = 0.05
"""Time that every connection is granted before it may be closed: ample for a regular client."""
_CLOSE_SECONDS: Final = 1.0
"""Timeout for the thread of a closed connection to end."""
_BACKLOG: Final = 128
"""Connections that the system queues."""
_POLL_SECONDS: Final = 0.1
"""Interval of checks for a requested shutdown."""

_LOGGER: Final = logging.getLogger("stream_fs.web")
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Browsers may load only what this server serves."""
TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of a page."""

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
            target=self._server.serve_forever, args=(_POLL_SECONDS,), name="web", daemon=True
        )

    @property
    def host(self) -> str:
        """The listening address."""
        return str(self._server.server_address[0])

    @property
    def port(self) -> int:
        """The listening port."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start serving."""
        self._thread.start()

    def close(self) -> None:
        """Stop serving, and free the port."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """Bounded in the number of its threads."""

    daemon_threads = True
    request_queue_size = _BACKLOG
    # Closing must not wait for a silent client.
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
        """Connections being served, the oldest first, and their start times."""
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        # HTTPServer's own method would make a DNS lookup for a name that is not used.
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
        """Close the oldest connection after its granted time; whether a place is free now."""
        for oldest, since in list(self._connections.items())[:1]:
            left = since + LEAST_SECONDS - time.monotonic()
            if left > 0 and self._places.acquire(timeout=left):
                return True
            with contextlib.suppress(OSError):  # it is already closed
                oldest.shutdown(socket.SHUT_RDWR)
            self._connections.pop(oldest, None)
        return self._places.acquire(timeout=_CLOSE_SECONDS)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002  # signature of the base class
        _LOGGER.debug("a request was aborted", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """Handles one request, then closes the connection."""

    # For a request without a version. The library's default is 0.9, which has no headers.
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
        # `send_error` needs these, also where the request is cut off before them.
        self.requestline, self.request_version, self.command = "", "HTTP/1.0", ""
        try:
            self.raw_requestline = self.rfile.readline()
            if self.raw_requestline and self.parse_request():
                self._answer(self._page())
        except RequestTooLarge:
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        except TimeoutError:
            self.send_error(HTTPStatus.REQUEST_TIMEOUT)

    def handle_expect_100(self) -> bool:
        """Never ask for a body, since none is read."""
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
            _LOGGER.exception("an HTTP request failed")
            return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR)

    def _answer(self, answer: Answer) -> None:
        """Send the answer, unless one has already been started."""
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

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002  # the base class quotes the request
        self._answer(_refusal(HTTPStatus(code)))

    def version_string(self) -> str:
        return "stream-fs"

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: requests are not events of the stream, and the library quotes them."""


def _refusal(status: HTTPStatus) -> Answer:
    return Answer(status, TEXT, f"{status.phrase}\n".encode())
