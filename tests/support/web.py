"""An HTTP client for the pages of the service."""

from __future__ import annotations

import http.client

from stream_fs.service.http import WebServer

TIMEOUT_SECONDS = 20.0


def ask(server: WebServer, path: str, method: str = "GET") -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()
