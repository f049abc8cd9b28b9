"""Hostile clients of the HTTP port, and a supervisor that probes it."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from random import Random
from typing import Final

from tests.hostile.mutations import mutate

TIMEOUT_SECONDS: Final = 60.0
MARKER: Final = b"Zx9mArKeR"
"""Part of every hostile request; no answer may repeat it."""
PATHS: Final = ("/", "/healthz", "/readyz", "/metrics", "/api/status")
REQUESTS: Final = tuple(
    request.replace(b"MARKER", MARKER)
    for request in (
        b"GET /healthz HTTP/1.1\r\nHost: MARKER\r\n\r\n",
        b"GET /MARKER HTTP/1.1\r\nX: MARKER\r\n\r\n",
        b"GET /MARKER\x1b[31m\x00\x07 HTTP/1.1\r\n\r\n",
        b"GET /healthz%0d%0aMARKER: 1 HTTP/1.1\r\n\r\n",
        b"GET /MARKER\rInjected: 1 HTTP/1.1\r\n\r\n",
        b"GET /../../../../etc/passwd?MARKER HTTP/1.1\r\n\r\n",
        b"GET /page/../../MARKER HTTP/1.1\r\n\r\n",
        b"GET /page/%2e%2e%2fMARKER HTTP/1.1\r\n\r\n",
        b"GET http://MARKER/healthz HTTP/1.1\r\nHost: MARKER\r\n\r\n",
        b"GET //MARKER/healthz HTTP/1.1\r\n\r\n",
        b"CONNECT MARKER:443 HTTP/1.1\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nX: MARKER\r\n\r\n",
        b"TRACE /healthz HTTP/1.1\r\nX: MARKER\r\n\r\n",
        b"POST /healthz HTTP/1.1\r\nContent-Length: 6\r\n\r\nMARKER",
        b"POST /healthz HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nMARKER\r\n0\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nContent-Length: -1\r\nX: MARKER\r\n\r\n",
        b"GET /healthz\r\n\r\nMARKER",
        b"GET /healthz HTTP/1.1\r\n\r\nGET /MARKER HTTP/1.1\r\n\r\n" * 3,
        b"GET /MARKER HTTP/9.9\r\n\r\n",
        b"GET /MARKER HTTP/0.0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nMARKER",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfcMARKER\r\n\r\n",
        b"MARKER\r\n\r\n",
        b"\r\n\r\nMARKER",
        b"GET /healthz HTTP/1.1\r\nX:" + b" MARKER" * 40 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + b"X: MARKER\r\n" * 150 + b"\r\n",
        b"GET /" + b"MARKER" * 2000 + b" HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
    )
)


class Port:
    """The HTTP port of a service."""

    def __init__(self, host: str, port: int) -> None:
        self._place = (host, port)

    def connect(self) -> socket.socket:
        return socket.create_connection(self._place, timeout=TIMEOUT_SECONDS)

    def send(self, request: bytes) -> bytes:
        """The whole answer; the sending side is closed after the request."""
        received = b""
        with contextlib.suppress(OSError), self.connect() as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            while more := connection.recv(65536):
                received += more
        return received

    def status(self, path: str, method: str = "GET") -> int:
        """The HTTP status of a page; 0 where there is no answer."""
        connection = http.client.HTTPConnection(*self._place, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(method, path)
            with connection.getresponse() as answer:
                answer.read()
                return answer.status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()


def raw_requests(port: Port, seed: int, count: int) -> Iterator[str]:
    """Faults in the answers to hostile requests, unchanged and mutated."""
    for number in range(count):
        chance = Random(f"{seed}/http/{number}")
        request = REQUESTS[number] if number < len(REQUESTS) else mutate(chance, REQUESTS)
        answer = port.send(request)
        head, _, _ = answer.partition(b"\r\n\r\n")
        request_text = f"request {number} {request[:200]!r}: {head[:200]!r}"
        if MARKER.lower() in answer.lower():
            yield f"the request is repeated: {request_text}"
        if answer and not head.startswith(b"HTTP/1.0 "):
            yield f"not an answer: {request_text}"
        if answer and b"\r\nX-Content-Type-Options: nosniff" not in head:
            yield f"without security headers: {request_text}"
        if b" 500 " in head.partition(b"\r\n")[0]:
            yield f"internal error: {request_text}"


def only_its_paths(port: Port) -> Iterator[str]:
    """Faults of any path with any method: GET and HEAD of pages work, others are 404 or 405."""
    methods = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND")
    for path in (*PATHS, "/healthz/", "/HEALTHZ", "/admin", "/page/", "/.git/config", "/metrics/x"):
        for method in methods:
            status = port.status(path, method)
            reading = method in ("GET", "HEAD")
            known = path in PATHS
            expected = (200, 503) if reading and known else (405,) if known else (404,)
            if status not in expected:
                yield f"{method} {path}: {status}"


class Siege:
    """Clients that hold connections in the context: silent, trickling, or not reading."""

    def __init__(self, port: Port, clients: int) -> None:
        self._port = port
        self._over = threading.Event()
        kinds: list[Callable[[], None]] = [
            self._silent,
            self._trickling,
            self._not_reading,
            self._rushing,
        ]
        self._threads = [
            threading.Thread(target=self._repeat, args=(kinds[number % len(kinds)],))
            for number in range(clients)
        ]
        self.connections = 0
        """Number of opened connections."""

    def __enter__(self) -> Siege:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, attack: Callable[[], None]) -> None:
        while not self._over.is_set():
            self.connections += 1
            with contextlib.suppress(OSError):
                attack()

    def _silent(self) -> None:
        with self._port.connect() as connection:
            connection.settimeout(0.5)
            while not self._over.is_set():
                with contextlib.suppress(TimeoutError):
                    if not connection.recv(1):
                        return

    def _trickling(self) -> None:
        with self._port.connect() as connection:
            while not self._over.wait(0.05):
                connection.sendall(b"a")

    def _not_reading(self) -> None:
        with self._port.connect() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            self._over.wait(0.5)

    def _rushing(self) -> None:
        self._port.connect().close()
        self._over.wait(0.01)


def stays_alive(port: Port, probes: int) -> Iterator[str]:
    """Faults of /healthz as a supervisor sees them: three probes in a row without an answer."""
    failures = 0
    for number in range(probes):
        failures = 0 if port.status("/healthz") == HTTPStatus.OK else failures + 1
        if failures == 3:
            yield f"/healthz did not answer three times in a row, until probe {number}"
        time.sleep(0.02)
