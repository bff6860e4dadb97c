"""Diagnostics as values; `render` gives them clang's look, `to_json` a machine's.

A diagnostic has a permanent code (documented in docs/diagnostics.md), a severity, a place where there is one, a
message in plain words, notes that point at other places, and a help line that says what the user can do. Numbers that
the message rounds may be in its data, which only the JSON form shows.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kesco.source import Span


class Severity(enum.Enum):
    """Clang's words for how bad it is."""

    ERROR = "error"
    WARNING = "warning"
    REMARK = "remark"


@dataclass(frozen=True, slots=True)
class Note:
    """A further place or fact that belongs to a diagnostic."""

    message: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing to tell the user."""

    code: str
    severity: Severity
    message: str
    span: Span | None = None
    notes: tuple[Note, ...] = ()
    help: str = ""
    data: Mapping[str, object] | None = field(default=None, hash=False)

    def to_json(self) -> dict[str, object]:
        """The diagnostic as plain data for ``--diagnostics json``."""
        return {
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            **_place(self.span),
            "notes": [{"message": n.message, **_place(n.span)} for n in self.notes],
            "help": self.help,
            **({} if self.data is None else {"data": dict(self.data)}),
        }


def _place(span: Span | None) -> dict[str, object]:
    return {} if span is None else {"file": span.path, "line": span.line, "column": span.column}


_LONGEST = 240  # columns of a source line that are shown
PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"} | {0x7F: 0x2421}
"""Control characters to pictures of them, for `str.translate`: a source must not steer a terminal."""


def render(diagnostic: Diagnostic, line_of: Callable[[Span], str | None] = lambda span: None) -> str:
    """The diagnostic as clang would print it; `line_of` returns the source line of a place, or None."""
    where = f"{diagnostic.span}: " if diagnostic.span else "kesco: "
    lines = [f"{where}{diagnostic.severity.value}[{diagnostic.code}]: {diagnostic.message}"]
    lines += _caret(diagnostic.span, line_of)
    for note in diagnostic.notes:
        lines.append(f"{note.span}: note: {note.message}" if note.span else f"  note: {note.message}")
        lines += _caret(note.span, line_of)
    if diagnostic.help:
        lines.append(f"  help: {diagnostic.help}")
    return "\n".join(lines)


def _caret(span: Span | None, line_of: Callable[[Span], str | None]) -> list[str]:
    text = line_of(span) if span else None
    if span is None or text is None:
        return []
    begin = max(0, span.column - 1)
    if len(text) > _LONGEST:  # a line that nobody wrote: as much as a terminal takes, around the place
        first = max(0, begin - _LONGEST // 2)
        text, begin = text[first : first + _LONGEST], begin - first
    text = text.translate(PICTURES)
    lead = "".join("\t" if c == "\t" else " " for c in text[:begin])
    width = max(1, min(span.end - span.start, len(text) - len(lead)))
    return [f" {span.line:4d} | {text}", f"      | {lead}^{'~' * (width - 1)}"]
