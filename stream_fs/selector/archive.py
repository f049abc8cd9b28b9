"""Arrays of an untrusted NumPy archive (`.npz`), read without pickle.

The header of an array is compared with the size of its entry in the archive before memory is
allocated. An archive may be compressed, so its own size does not bound that of its arrays; these
can be read a few rows at a time.
"""

from __future__ import annotations

import math
import os
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

NUMBERS: Final = "fiub"
"""Kinds of values that are numbers."""

_SUFFIX: Final = ".npy"
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED: Final = 0x1
_LONGEST: Final = 200


class Damaged(ValueError):
    """The file is not an intact archive of arrays; readers convert this to errors of their own."""

    def __init__(self, what: object) -> None:
        """The message may quote the file, so it is shortened and made printable."""
        text = "".join(char if char.isprintable() else "�" for char in str(what)[:_LONGEST])
        super().__init__(text)


_DAMAGES: Final = (
    ArithmeticError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,  # a method or a version that zipfile does not know; nesting
    SyntaxError,
    TypeError,
    ValueError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Errors of the libraries on malformed files."""


class Header(NamedTuple):
    """The header of an array; `stored` is whether its entry is uncompressed."""

    shape: tuple[int, ...]
    columns: bool
    """Whether the array is stored column by column."""
    dtype: np.dtype[Any]
    stored: bool

    @property
    def bytes(self) -> int:
        """Size of all values."""
        return math.prod(self.shape) * self.dtype.itemsize


class Archive:
    """An open archive; its methods raise `Damaged`, and `OSError` if the file cannot be read."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self._file = Path(path).open("rb")  # noqa: SIM115  # closed in __exit__
        try:
            if self._file.read(6) == b"\x93NUMPY":
                raise Damaged("it is a single array, not an archive with one array per view")
            self._zip = zipfile.ZipFile(self._file)
        except _DAMAGES as error:
            self._file.close()
            raise Damaged(error) from error
        members = [info for info in self._zip.infolist() if info.filename.endswith(_SUFFIX)]
        self._members = {info.filename.removesuffix(_SUFFIX): info for info in members}
        if len(self._members) != len(members):
            self.__exit__(None, None, None)
            raise Damaged("an array is in it twice")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._zip.close()
        self._file.close()

    @property
    def names(self) -> list[str]:
        """The names of its arrays."""
        return list(self._members)

    def header(self, name: str) -> Header:
        """The header of an array, checked against the size of its entry."""
        try:
            with self._opened(name) as member:
                return self._header(name, member)
        except _DAMAGES as error:
            raise _of(name, error) from error

    def array(self, name: str) -> NDArray[Any]:
        """Read a whole array."""
        header = self.header(name)
        try:
            with self._opened(name) as member:
                self._header(name, member)
                values = np.frombuffer(_exactly(member, header.bytes), header.dtype)
                _exactly(member, 0, last=True)
        except _DAMAGES as error:
            raise _of(name, error) from error
        return values.reshape(header.shape, order="F" if header.columns else "C")

    def blocks(self, name: str, rows: int) -> Iterator[NDArray[Any]]:
        """Read a matrix in blocks of rows; one stored column by column is read as a whole."""
        header = self.header(name)
        if header.columns:
            yield self.array(name)
            return
        row = header.bytes // header.shape[0] if header.shape[0] else 0
        left = header.shape[0]
        try:
            with self._opened(name) as member:
                self._header(name, member)
                while left:
                    count = min(rows, left)
                    left -= count
                    values = np.frombuffer(
                        _exactly(member, count * row, last=not left), header.dtype
                    )
                    yield values.reshape(count, *header.shape[1:])
        except _DAMAGES as error:
            raise _of(name, error) from error

    def _opened(self, name: str) -> IO[bytes]:
        info = self._members[name]
        if info.compress_type not in _METHODS or info.flag_bits & _ENCRYPTED:
            raise Damaged("neither stored nor deflated, or encrypted")
        if info.compress_size > os.fstat(self._file.fileno()).st_size:
            raise Damaged("it is longer than the file")
        return self._zip.open(info)

    def _header(self, name: str, member: IO[bytes]) -> Header:
        info = self._members[name]
        version = np.lib.format.read_magic(member)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about old headers
            if version == (1, 0):
                fields = np.lib.format.read_array_header_1_0(member)
            elif version == (2, 0):
                fields = np.lib.format.read_array_header_2_0(member)
            else:
                raise Damaged(f"format {version} of an array is not known")
        header = Header(*fields, stored=info.compress_type == zipfile.ZIP_STORED)
        if header.dtype.hasobject or not all(type(n) is int and n >= 0 for n in header.shape):
            raise Damaged("it is not an array of numbers")
        if member.tell() + header.bytes != info.file_size:
            raise Damaged(f"{info.file_size} bytes cannot be {header.dtype} of {header.shape}")
        if header.stored and info.compress_size != info.file_size:
            raise Damaged("its size is not the declared one")
        return header


def _exactly(member: IO[bytes], count: int, *, last: bool = False) -> bytes:
    """Read a number of bytes; at the end of the entry, its checksum is compared."""
    data = member.read(count)
    if len(data) < count or (last and member.read(1)):
        raise Damaged("its size is not the declared one")
    return data


def _of(name: str, error: BaseException) -> Damaged:
    return Damaged(f"array {name!r:.60}: {error}")
