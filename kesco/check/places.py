"""Stacks of return addresses → lines of the user's program.

In: programs and libraries with their line tables, and a record. Out: for each stack the places in the user's own files,
innermost first. Frames in CUDA's headers, clang's and the system's are left out, since a person looks for the call in
their code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from kesco.source import Span
from kesco.toolchain import hostcxx, line_table
from kesco.toolchain.model import Toolchain
from kesco.verify.trace import Module

_NAME = re.compile(
    r"(?:Malloc|Alloc|HostRegister|KESCO_ALLOCATED)\w*\s*(?:<[^<>]*>\s*)?\(\s*(?:\([^()]*\)\s*)?&?\s*([A-Za-z_][\w.\[\]>-]*)"
)


class _Stacks(Protocol):
    """What is needed of a record."""

    @property
    def stacks(self) -> Mapping[int, tuple[int, ...]]: ...
    @property
    def modules(self) -> Sequence[Module]: ...


class Tables:
    """The line tables of programs and libraries, each read once."""

    def __init__(self, folders: Callable[[str], Sequence[str]] = lambda _: ()) -> None:
        """`folders` says of a file in which folders its sources may have been compiled, beside the current one."""
        self.here = str(Path.cwd())
        self._folders = folders
        self._read: dict[str, line_table.LineTable] = {}

    def of(self, path: str) -> line_table.LineTable:
        """The table of a file; empty where it cannot be read."""
        if path not in self._read:
            try:
                self._read[path] = line_table.read(Path(path), "")
            except (OSError, ValueError):
                self._read[path] = line_table.LineTable([])
        return self._read[path]

    def found(self, path: str, file: str) -> str:
        """Where a file is that the table of a program or library names."""
        folders = (self.here, *self._folders(path))
        tried = [os.path.normpath(os.path.join(folder, file)) for folder in folders]  # noqa: PTH118
        return next((one for one in tried if os.path.exists(one)), tried[0])  # noqa: PTH110


class Places:
    """Where things happened, by the numbers of their stacks."""

    def __init__(self, system: tuple[str, ...], tables: Tables | None = None) -> None:
        self._system, self._tables = system, tables or Tables()
        self._here = self._tables.here
        self._trace: _Stacks | None = None
        self._spans: dict[int, tuple[Span, ...]] = {}
        self._lines: dict[str, list[bytes]] = {}

    @classmethod
    def of(cls, toolchain: Toolchain, tables: Tables | None = None) -> Places:
        """Places outside of the toolchain's own headers."""
        folders = (hostcxx.OWN_HEADERS, toolchain.cuda_path, toolchain.resource_dir, *toolchain.cuda_include)
        return cls(("/usr/include/", "/usr/lib/", *(f"{os.path.realpath(one)}/" for one in folders)), tables)

    def load(self, trace: _Stacks) -> None:
        """The record whose stacks will be asked for."""
        self._trace = trace

    def stack(self, number: int) -> tuple[Span, ...]:
        """The places of a stack, innermost first; empty where none is in the user's files."""
        if number not in self._spans:
            addresses = self._trace.stacks.get(number, ()) if self._trace else ()
            found = [self._at(address - 1) for address in addresses]
            self._spans[number] = tuple(
                Span(self._short(file), 0, 0, line, max(1, column))
                for file, line, column in filter(None, found)
                if line and not os.path.realpath(file).startswith(self._system)
            )
        return self._spans[number]

    def _at(self, address: int) -> tuple[str, int, int] | None:
        for module in reversed(self._trace.modules if self._trace else ()):
            if module.low <= address < module.high:
                place = self._tables.of(module.path).at(address - module.bias)
                return place and (self._tables.found(module.path, place.file), place.line, place.column)
        return None

    def of_stack(self, number: int) -> Span | None:
        """The innermost place of a stack."""
        return next(iter(self.stack(number)), None)

    def name(self, number: int) -> str:
        """What the program calls the memory it allocates there, as far as the line says so."""
        span = self.of_stack(number)
        if span is None:
            return ""
        if span.path not in self._lines:
            try:
                self._lines[span.path] = Path(span.path).read_bytes().splitlines()
            except OSError:
                self._lines[span.path] = []
        lines = self._lines[span.path]
        text = lines[span.line - 1].decode("utf-8", "replace") if span.line <= len(lines) else ""
        match = _NAME.search(text[span.column - 1 :]) if span.column > 1 else None
        several = _NAME.findall(text)  # where there is no column, only one that stands alone is known to be meant
        return match[1] if match else several[0] if len(several) == 1 else ""

    def _short(self, file: str) -> str:
        relative = os.path.relpath(file, self._here)
        return file if relative.startswith("..") else relative
