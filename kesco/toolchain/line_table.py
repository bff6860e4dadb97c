"""Which line of the source an address of a program belongs to, read from the program's own file.

In: a program that was linked with DWARF 4 line tables (``-gdwarf-4 -gline-tables-only``). Out: a `LineTable`, which
answers file, line and column for an address as the linker numbered it (what the running program saw, less its load
base). No tool of another package is needed for it, and a table of a hundred thousand rows takes a fraction of a second.

It reads 64-bit little-endian ELF and version 4 of the line table, which is what kesco itself asks clang for; parts of
the program in another form have no lines.
"""

from __future__ import annotations

import bisect
import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _SET_COLUMN, _CONST_ADD_PC, _FIXED_ADVANCE = 1, 2, 3, 4, 5, 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2


class Place(NamedTuple):
    """A line of a source file, with the column where the table has one."""

    file: str
    line: int
    column: int


class LineTable:
    """Addresses and their places."""

    def __init__(self, rows: list[tuple[int, Place | None]]) -> None:
        rows.sort(key=lambda row: row[0])
        self._addresses = [address for address, _ in rows]
        self._places = [place for _, place in rows]

    def at(self, address: int) -> Place | None:
        """The place of an address; None where the table has none."""
        index = bisect.bisect_right(self._addresses, address) - 1
        return self._places[index] if index >= 0 else None


def read(program: Path, folder: str = "") -> LineTable:
    """The line table of a program; `folder` is where the compiler ran. Empty where there is none that can be read."""
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        section = _section(data, b".debug_line")
    return LineTable(list(_rows(section, folder)) if section else [])


def _section(data: mmap.mmap, wanted: bytes) -> bytes:
    if data[:6] != b"\x7fELF\x02\x01":
        return b""
    offset = struct.unpack_from("<Q", data, 40)[0]
    size, count, names = struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQ", data, offset + i * size) for i in range(count)]
    text = headers[names][4]
    for name, _, _, _, start, length in headers:
        if data[text + name : data.find(b"\0", text + name)] == wanted:
            return data[start : start + length]
    return b""


def _rows(data: bytes, folder: str) -> Iterator[tuple[int, Place | None]]:
    position = 0
    while position + 4 <= len(data):
        length, version = struct.unpack_from("<IH", data, position)
        if length >= 0xFFFFFFF0:
            return
        end = position + 4 + length
        if version == 4:
            yield from _unit(data, position + 6, end, folder)
        position = end


class _Reader:
    """A cursor over the bytes of one unit."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data, self.position = data, position

    def byte(self) -> int:
        self.position += 1
        return self.data[self.position - 1]

    def number(self) -> int:
        """An unsigned LEB128."""
        result = shift = 0
        while True:
            one = self.byte()
            result |= (one & 127) << shift
            shift += 7
            if one < 128:
                return result

    def signed(self) -> int:
        """A signed LEB128."""
        start = self.position
        value = self.number()
        bits = 7 * (self.position - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def text(self) -> str:
        end = self.data.index(b"\0", self.position)
        found = self.data[self.position : end].decode("utf-8", "replace")
        self.position = end + 1
        return found


def _files(reader: _Reader, folder: str) -> list[str]:
    folders = [folder]
    while one := reader.text():
        folders.append(os.path.join(folder, one))  # noqa: PTH118 (a plain joining of text, thousands of times)
    files = [""]
    while name := reader.text():
        index = reader.number()
        reader.number(), reader.number()
        files.append(os.path.normpath(os.path.join(folders[index], name)))  # noqa: PTH118
    return files


def _unit(data: bytes, position: int, end: int, folder: str) -> Iterator[tuple[int, Place | None]]:
    header = struct.unpack_from("<I", data, position)[0]
    reader = _Reader(data, position + 4)
    program = reader.position + header
    smallest, _, _ = reader.byte(), reader.byte(), reader.byte()
    base = struct.unpack("b", bytes([reader.byte()]))[0]
    span, first = reader.byte(), reader.byte()
    operands = [0] + [reader.byte() for _ in range(first - 1)]
    files = _files(reader, folder)
    reader.position = program
    while reader.position < end:
        address, file, line, column = 0, 1, 1, 0
        while reader.position < end:
            code = reader.byte()
            if code >= first:
                address += (code - first) // span * smallest
                line += base + (code - first) % span
                yield address, Place(files[file], line, column)
            elif code == 0:
                size = reader.number()
                after = reader.position + size
                what = reader.byte()
                if what == _SET_ADDRESS:
                    address = int.from_bytes(data[reader.position : reader.position + size - 1], "little")
                reader.position = after
                if what == _END_SEQUENCE:
                    yield address, None
                    break
            elif code == _COPY:
                yield address, Place(files[file], line, column)
            elif code == _ADVANCE_PC:
                address += reader.number() * smallest
            elif code == _ADVANCE_LINE:
                line += reader.signed()
            elif code == _SET_FILE:
                file = reader.number()
            elif code == _SET_COLUMN:
                column = reader.number()
            elif code == _CONST_ADD_PC:
                address += (255 - first) // span * smallest
            elif code == _FIXED_ADVANCE:
                address += struct.unpack_from("<H", data, reader.position)[0]
                reader.position += 2
            else:
                for _ in range(operands[code]):
                    reader.number()
