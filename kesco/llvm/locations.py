"""Debug locations: a number that an instruction carries → file, line and column.

In: the metadata of a module, as text. Out: `Place`s. clang gives code from a macro's body the place of the expansion,
and an argument of the macro its own; so two launches in one macro have one place, and their order tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_FIELD = re.compile(r'(\w+): (?:!(\d+)|(\d+)|"((?:[^"\\]|\\.)*)")')
_ESCAPE = re.compile(r"\\([0-9A-F]{2})")


@dataclass(frozen=True, slots=True)
class Place:
    """Where code stands; `inlined_at` is the place that it was inlined into, if it was."""

    file: str
    line: int
    column: int
    inlined_at: Place | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Locations:
    """Answers for one module; `nodes` are the texts of its numbered metadata."""

    def __init__(self, nodes: Mapping[int, str]) -> None:
        self._nodes = nodes
        self._places: dict[int, Place | None] = {}
        self._files: dict[int, str] = {}

    def place(self, number: int) -> Place | None:
        """The place that a ``!dbg`` names; None where there is none, or where nobody wrote a line (0)."""
        if number not in self._places:
            self._places[number] = self._read(number)
        return self._places[number]

    def _read(self, number: int) -> Place | None:
        text = self._nodes.get(number, "")
        fields = _fields(text)
        if "DILocation(" in text and "scope" in fields:
            around = self.place(int(fields["inlinedAt"])) if "inlinedAt" in fields else None
            line = int(fields.get("line", 0))
            return Place(self._file(int(fields["scope"])), line, int(fields.get("column", 0)), around) if line else None
        if "DISubprogram(" in text and "file" in fields:
            return Place(self._file(number), int(fields.get("line", 0)), 0)
        return None

    def _file(self, scope: int) -> str:
        if scope not in self._files:
            fields = _fields(self._nodes.get(scope, ""))
            self._files[scope] = ""  # should a scope be inside itself
            if "filename" in fields:
                name, folder = fields["filename"], fields.get("directory", "")
                self._files[scope] = name if name.startswith("/") or not folder else f"{folder}/{name}"
            elif "file" in fields or "scope" in fields:
                self._files[scope] = self._file(int(fields.get("file") or fields["scope"]))
        return self._files[scope]


def _fields(text: str) -> dict[str, str]:
    return {
        name: node or number or _ESCAPE.sub(lambda m: chr(int(m[1], 16)), words)
        for name, node, number, words in _FIELD.findall(text)
    }
