"""What a user is told about a compilation that went well: what was left serial and why, and what cost concurrency.

In: the program and the results of its functions. Out: diagnostics. The pipeline says what is done, this says what of it
matters to the author.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.ir.access import AccessMode, BufferKind
from kesco.ir.flow import Region, Role
from kesco.ir.program import Program
from kesco.source import Span

_UNKNOWN_HELP = (
    "allocate what it uses in this file, mark pointers __restrict__, or state what an unseen kernel does with "
    "'#pragma kesco kernel(name) reads(...) writes(...)'"
)
_WORK = (Role.MOVABLE, Role.LEGACY)


class Result(Protocol):
    """What is asked of a function's result."""

    @property
    def region(self) -> Region:
        """The function."""

    @property
    def left_because(self) -> str:
        """Why it was left serial, or an empty text."""

    @property
    def rewritten(self) -> bool:
        """Whether its text was changed."""


def _top(program: Program) -> Span:
    return Span(program.path, 0, 1, 1, 1)


def diagnose(program: Program, functions: Sequence[Result]) -> tuple[Diagnostic, ...]:
    """What a user should know: what was left serial and why, and where something unknown cost concurrency."""
    if not program.launches and not any(s.role in _WORK for f in functions for s in f.region.sites):
        return (
            Diagnostic("K201", Severity.REMARK, "no kernel is launched in this file: copied unchanged", _top(program)),
        )
    found: list[Diagnostic] = []
    for result in functions:
        found += _about(result)
    found += _pragmas_unused(program)
    if not found and not any(f.rewritten for f in functions):
        found.append(
            Diagnostic("K204", Severity.REMARK, "no function has two operations that could overlap", _top(program))
        )
    return tuple(dict.fromkeys(found))


def _about(result: Result) -> list[Diagnostic]:
    """The diagnostics of one function."""
    found: list[Diagnostic] = []
    region = result.region
    moved = sum(s.role is Role.MOVABLE for s in region.sites)
    if result.left_because and (moved > 1 or region.serial_because):
        code = "K202" if result.left_because == region.serial_because else "K204"
        message = f"'{region.function}' stays serial: {result.left_because}"
        found.append(Diagnostic(code, Severity.REMARK, message, region.span))
    if region.serial_because:
        return found
    told: set[int] = set()
    for site in region.sites:
        if site.operation in told:
            continue
        told.add(site.operation)
        if site.role is Role.LEGACY and site.note and site.kind.value == "kernel":
            message = f"'{site.label}' stays on the default stream: {site.note}"
            found.append(Diagnostic("K205", Severity.WARNING, message, site.span))
        unknown = [a for a in site.accesses if a.buffer.kind is BufferKind.UNKNOWN]
        if site.role is Role.MOVABLE and unknown and moved > 1:
            verb = "writes" if any(AccessMode.WRITE & a.mode for a in unknown) else "reads"
            message = f"'{site.label}' {verb} memory that is not known, so it is ordered against everything"
            notes = tuple(Note(a.why) for a in unknown[:2])
            found.append(Diagnostic("K203", Severity.WARNING, message, site.span, notes, _UNKNOWN_HELP))
    return found


def _pragmas_unused(program: Program) -> list[Diagnostic]:
    """Pragmas that name a kernel which is not launched here, most likely misspelt."""
    from kesco.ir.tree import Launch, walk

    launched = {n.kernel.name for f in program.functions for n in walk(f.body) if isinstance(n, Launch)}
    return [
        Diagnostic("K207", Severity.WARNING, f"no kernel '{s.kernel}' is launched in this file", s.span)
        for s in program.stated
        if s.kernel not in launched
    ]
