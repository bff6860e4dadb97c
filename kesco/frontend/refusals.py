"""What a user is told where clang cannot read a file: ``told(errors, text)``.

In: clang's errors, in order, and the file's text. Out: those that say something of their own, with what to do where
that is known. A module of its own because clang goes on behind an error, and one cause may give it a hundred more.

1. Where headers are missing only they are named: what they declare is missing, too. 2. A message that comes again is
told once, with the number of its further places. 3. What nvcc takes and clang does not, and what toolkits no longer
have, is said to be that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from clang import cindex

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.source import Span

_MISSING = "file not found"
_OLD_TOOLKIT = "toolkits of today no longer have it: name one of the program's age with --cuda-path"
_HELP = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"'omp\.h' file not found", "kesco leaves files with OpenMP as they are: move the launches to one without it"),
        (r"file not found", "give its folder with -I after '--'"),
        (r"no template named 'texture'|undeclared identifier '(?:cuda[A-Z]|tex[123]D)\w*'", _OLD_TOOLKIT),
        (r"no member named '\w+' in 'cuda(?:DeviceProp|PointerAttributes)'", _OLD_TOOLKIT),
        (r"requires relocatable device code", "give -rdc=true after '--', as the program's build does"),
        (
            r"initialization is not supported for __shared__",
            "nvcc takes such an object and clang does not: use a plain array, or leave this file to nvcc",
        ),
    )
)
_APART = re.compile(rb"<<\s+<|<\s+<<")


def said(one: cindex.Diagnostic) -> Diagnostic:
    """What clang says, as a diagnostic."""
    notes = tuple(Note(note.spelling, _span_of(note)) for note in one.children)
    return Diagnostic("K100", Severity.ERROR, one.spelling, _span_of(one), notes)


def _span_of(one: cindex.Diagnostic) -> Span | None:
    where = one.location
    if where.file is None:
        return None
    return Span(where.file.name, where.offset, where.offset + 1, where.line, where.column)


def told(errors: Sequence[Diagnostic], text: bytes) -> tuple[Diagnostic, ...]:
    """The errors that are worth reading; at least one where there is any."""
    missing = [one for one in errors if _MISSING in one.message]
    found: dict[str, list[Diagnostic]] = {}
    for one in missing or errors:
        found.setdefault(one.message, []).append(one)
    result = [_once(same, text) for same in found.values()]
    if missing and len(errors) > len(missing):
        rest = Note(f"{len(errors) - len(missing)} further errors are not shown: they may come from that")
        result[-1] = replace(result[-1], notes=(*result[-1].notes, rest))
    return tuple(result)


def _once(same: Sequence[Diagnostic], text: bytes) -> Diagnostic:
    first, *others = same
    notes = first.notes
    if others:
        notes = (*notes, Note(f"and in {len(others)} further place{'s' * (len(others) > 1)}", others[0].span))
    return replace(first, notes=notes, help=first.help or _help(first, text))


def _help(error: Diagnostic, text: bytes) -> str:
    lines = text.splitlines()
    line = lines[error.span.line - 1] if error.span is not None and 0 < error.span.line <= len(lines) else b""
    if error.message == "expected expression" and _APART.search(line):
        return "nvcc takes '<< <' and clang does not: write <<< without a blank"
    return next((text for pattern, text in _HELP if pattern.search(error.message)), "")
