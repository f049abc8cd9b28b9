"""A proxy in front of one listener, whose connections can be cut, slowed down and silenced."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from stream_fs.broker.node import free_ports

_PIECE = 16_384
_RESET = struct.pack("ii", 1, 0)
"""For SO_LINGER: closing sends RST, as a middlebox that drops a connection."""

Result = TypeVar("Result")


@dataclass
class LinkConditions:
    """The conditions of all connections, in both directions."""

    delay: float = 0.0
    """Seconds for each piece of at most 16 kB."""
    rate: float | None = None
    """Bytes per second of each connection and direction."""
    open: bool = True
    """Whether connections are accepted at all."""


class Proxy:
    """Listens on a port of its own, in a thread of its own, until it is closed.

    Clients connect to its `address`; `upstream` is that of the broker.
    """

    def __init__(self) -> None:
        (port,) = free_ports(1)
        self.address = f"127.0.0.1:{port}"
        self.upstream: str | None = None
        self.conditions = LinkConditions()
        self._pipes: set[_Pipe] = set()
        self._bytes_to_clients = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._server = self._do(asyncio.start_server(self._accept, "127.0.0.1", port))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> int:
        """Reset every connection, and refuse new ones until `restore`; how many were reset."""
        self.conditions.open = False
        return self._do(self._end_all())

    @property
    def bytes_to_clients(self) -> int:
        """Bytes sent to clients so far."""
        return self._bytes_to_clients

    def slow_down(self, delay: float, rate: float) -> None:
        """Forward bytes slowly until `restore`; see `LinkConditions`."""
        self.conditions.delay, self.conditions.rate = delay, rate

    def restore(self) -> None:
        """Forward everything again; silenced connections stay silent."""
        self.conditions.delay, self.conditions.rate, self.conditions.open = 0.0, None, True

    def silence(self) -> int:
        """Drop all bytes of the open connections from now on; the number of connections.

        Neither side is notified, as when a router fails. New connections work.
        """
        return self._do(self._silence_all())

    def lose_answers(self) -> int:
        """Drop the broker's answers on the open connections; the number of connections.

        Requests on them are still served. New connections work.
        """
        return self._do(self._mute_all())

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.conditions.open or self.upstream is None:
            _reset(writer)
            return
        host, _, port = self.upstream.rpartition(":")
        try:
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            _reset(writer)
            return
        pipe = _Pipe(self.conditions, (reader, writer), (far_reader, far_writer), self._count)
        self._pipes.add(pipe)
        try:
            await pipe.run()
        finally:
            self._pipes.discard(pipe)

    def _count(self, size: int) -> None:
        self._bytes_to_clients += size

    async def _end_all(self) -> int:
        for pipe in self._pipes:
            pipe.end()
        return len(self._pipes)

    async def _silence_all(self) -> int:
        for pipe in self._pipes:
            pipe.silent = True
        return len(self._pipes)

    async def _mute_all(self) -> int:
        for pipe in self._pipes:
            pipe.mute = True
        return len(self._pipes)

    async def _close(self) -> None:
        self._server.close()
        await self._end_all()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _do(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Pipe:
    """One connection; when one direction ends, both do."""

    def __init__(
        self, conditions: LinkConditions, near: Ends, far: Ends, count: Callable[[int], None]
    ) -> None:
        """`count` is called with the number of bytes sent to the client."""
        self._weather = conditions
        self._near = near
        self._far = far
        self._count = count
        self.silent = False
        """Whether all bytes are dropped."""
        self.mute = False
        """Whether bytes to the client are dropped."""

    async def run(self) -> None:
        (near_reader, near_writer), (far_reader, far_writer) = self._near, self._far
        ways = [
            asyncio.create_task(self._forward(near_reader, far_writer, answers=False)),
            asyncio.create_task(self._forward(far_reader, near_writer, answers=True)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.end()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    def end(self) -> None:
        for _, writer in (self._near, self._far):
            _reset(writer)

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        while piece := await self._receive(reader):
            conditions = self._weather
            seconds = conditions.delay + (len(piece) / conditions.rate if conditions.rate else 0.0)
            if seconds:
                await asyncio.sleep(seconds)
            if self.silent or (answers and self.mute):
                continue
            writer.write(piece)
            if answers:
                self._count(len(piece))
            try:
                await writer.drain()
            except OSError:
                return

    @staticmethod
    async def _receive(reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.read(_PIECE)
        except OSError:
            return b""


def _reset(writer: asyncio.StreamWriter) -> None:
    found: socket.socket | None = writer.get_extra_info("socket")
    if found is not None and not writer.is_closing():
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.close()
