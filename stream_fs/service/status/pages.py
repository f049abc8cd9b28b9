"""What is served: the page at `/`, its parts under `/page/`, and `/api/status`.

The page is made of the files in the folder `page`, as they are: no build step, nothing from
elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from importlib.resources import files
from typing import Final

from stream_fs.service.status.document import Status, encode
from stream_fs.service.web import Answer, Page

_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def pages(status: Callable[[], Status]) -> dict[str, Page]:
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
