"""The text of one program inside a namespace of its own: ``wrapped(unit)`` → text, its macros, its system headers.

In: a program as libclang reads it. Out: its text with its own headers put in where they were entered, and with what the
host thread of a task needs. It is apart from `units` because it only edits text.

1. ``main`` returns 0 at its end, as it does outside of namespaces, too. 2. Every ``#include`` of a header of the
program is its text, once where ``#pragma once`` says so; every other one goes, and its header comes before all
programs. ``#line`` keeps the places, also those that the program prints. 3. Launches are given the task's stream.

What it refuses to do: look into macros, or decide which text is compiled; an include that was not entered just goes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kesco.diagnostics import Diagnostic, Severity
from kesco.emit.prologue import END, MARK
from kesco.errors import InputError
from kesco.frontend.standard import is_standard_path
from kesco.merging.units import Unit
from kesco.source import Span

NO_MAIN = "K124"
LOOKS = "K125"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<(?P<angle>[^>\n]+)>|"(?P<quote>[^"\n]+)"|(?P<other>[^\n]*)).*$')
_MACRO = re.compile(r"^[ \t]*#[ \t]*(?:define|undef)[ \t]+(\w+)", re.MULTILINE)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b[^\n]*$", re.MULTILINE)
_SKIPPED = re.compile(
    r'//(?:\\\n|[^\n])*|/\*.*?\*/|R"(?P<tag>[^()\\\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|'
    r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'|<<<|>>>|[(){}\[\],]",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Wrapped:
    """The text that goes into the namespace, the macros it defines or undefines, the headers that go before."""

    text: str
    macros: tuple[str, ...]
    headers: tuple[str, ...]


def wrapped(unit: Unit) -> Wrapped:
    """The program's text for a namespace; raises `InputError` (K124, K125)."""
    if unit.main is None:
        what = f"{unit.path} itself defines no 'main'"
        raise InputError(Diagnostic(NO_MAIN, Severity.ERROR, what, help="name the file of the program that has it"))
    text = unit.text[: unit.main] + b"return {};" + unit.text[unit.main :]
    expansion = _Expansion(unit)
    expanded = expansion.of(unit.path, text.decode("utf-8", "surrogateescape"))
    _looked_at(unit, expansion.defined_before)
    return Wrapped(launches(expanded), tuple(expansion.macros), tuple(expansion.headers))


class _Expansion:
    """Step 2 for one program."""

    def __init__(self, unit: Unit) -> None:
        self.entered = {(one.source, one.line): one.file for one in unit.inclusions}
        self.headers: dict[str, None] = {}
        self.macros: dict[str, None] = {}
        self.defined_before: dict[tuple[str, int], tuple[str, ...]] = {}

    def of(self, path: str, text: str) -> str:
        lines = [f'#line 1 "{_quoted(path)}"']
        own = False  # in what kesco itself has put in, whose headers look at nothing of the program's
        for number, line in enumerate(_ONCE.sub("", text).split("\n"), 1):
            found = _INCLUDE.match(line)
            own = (own or MARK in line) and END not in line
            if found is None:
                self.macros |= dict.fromkeys(_MACRO.findall(line))
                lines.append(line)
                continue
            file = self.entered.get((path, number))
            if file is not None and not is_standard_path(file):
                inside = Path(file).read_text("utf-8", "surrogateescape")
                lines += [self.of(file, inside), f'#line {number + 1} "{_quoted(path)}"']
                continue
            if found["angle"]:
                self.headers[found["angle"]] = None
                self.defined_before[path, number] = () if own else tuple(self.macros)
            lines.append("")
        return "\n".join(lines)


def _quoted(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"')


def _looked_at(unit: Unit, defined_before: dict[tuple[str, int], tuple[str, ...]]) -> None:
    """Refuse macros that a header of the system looks at: it is now included before they are defined."""
    for one in unit.brought:
        names = defined_before.get((one.source, one.line), ())
        if not names:
            continue
        pattern = re.compile(rb"\b(?:" + b"|".join(name.encode() for name in names) + rb")\b")
        try:
            found = pattern.search(Path(one.file).read_bytes())
        except OSError:
            continue
        if found:
            span = Span(one.source, 0, 0, one.line, 1)
            what = f"'{found[0].decode()}' is defined or undefined before this header, which may look at it"
            help_ = "give the macro with --flags, or include the header first"
            raise InputError(Diagnostic(LOOKS, Severity.ERROR, what, span, help=help_))


# ---- launches ------------------------------------------------------------------------------------------------------


def launches(text: str) -> str:
    """The text with the task's stream in every launch: ``<<<g, b, s, kesco_on(t)>>>``."""
    edits: list[tuple[int, int, str]] = []
    commas: list[int] = []
    open_at, depth = -1, 0
    for match in _SKIPPED.finditer(text):
        token = match[0]
        if token == "<<<":
            open_at, depth, commas = match.end(), 0, []
        elif open_at >= 0 and token in "([{":
            depth += 1
        elif open_at >= 0 and token in ")]}":
            depth -= 1
        elif open_at >= 0 and token == "," and depth == 0:
            commas.append(match.start())
        elif open_at >= 0 and token == ">>>":
            edits += _given(commas, match.start())
            open_at = -1
    for start, end, new in reversed(edits):
        text = text[:start] + new + text[end:]
    return text


def _given(commas: Sequence[int], end: int) -> list[tuple[int, int, str]]:
    if len(commas) == 1:
        return [(end, end, ", 0, kesco_on()")]
    if len(commas) == 2:
        return [(end, end, ", kesco_on()")]
    if len(commas) != 3:
        return []  # a macro hides them: the check of the merged text finds that
    return [(commas[2] + 1, commas[2] + 1, " kesco_on("), (end, end, ")")]
