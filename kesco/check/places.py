"""Stacks of return addresses → lines of the user's program.

In: the program with its line table, and a trace. Out: for each stack the places in the user's own files, innermost
first. Frames in CUDA's headers, clang's and the system's are left out, since a person looks for the call in their code.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from kesco.source import Span
from kesco.toolchain import line_table
from kesco.toolchain.model import Toolchain
from kesco.verify.trace import Trace

_NAME = re.compile(
    r"(?:Malloc|Alloc|HostRegister)\w*\s*(?:<[^<>]*>\s*)?\(\s*(?:\([^()]*\)\s*)?&?\s*([A-Za-z_][\w.\[\]>-]*)"
)


class Places:
    """Where things happened, by the numbers of their stacks."""

    def __init__(self, table: line_table.LineTable, system: tuple[str, ...], here: str) -> None:
        self._table, self._system, self._here = table, system, here
        self._trace: Trace | None = None
        self._spans: dict[int, tuple[Span, ...]] = {}
        self._lines: dict[str, list[bytes]] = {}

    @classmethod
    def of(cls, program: Path, toolchain: Toolchain) -> Places:
        """The places of a program, which was compiled in the current folder."""
        here = str(Path.cwd())
        folders = (toolchain.cuda_path, toolchain.resource_dir, *toolchain.cuda_include)
        system = ("/usr/include/", "/usr/lib/", *(f"{os.path.realpath(folder)}/" for folder in folders))
        return cls(line_table.read(program, here), system, here)

    def load(self, trace: Trace) -> None:
        """The trace whose stacks will be asked for."""
        self._trace = trace

    def stack(self, number: int) -> tuple[Span, ...]:
        """The places of a stack, innermost first; empty where none is in the user's files."""
        if number not in self._spans:
            trace = self._trace
            addresses = trace.stacks.get(number, ()) if trace else ()
            found = [self._table.at(address - trace.base - 1) for address in addresses] if trace else []
            self._spans[number] = tuple(
                Span(self._short(one.file), 0, 0, one.line, max(1, one.column))
                for one in found
                if one is not None and one.line and not os.path.realpath(one.file).startswith(self._system)
            )
        return self._spans[number]

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
        match = _NAME.search(text[span.column - 1 :]) or _NAME.search(text)
        return match[1] if match else ""

    def _short(self, file: str) -> str:
        relative = os.path.relpath(file, self._here)
        return file if relative.startswith("..") else relative
