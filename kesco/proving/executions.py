"""What a program does as it runs, proven: a pair that somebody wrote by hand, or one program by itself.

In: `Session`s. Out: a `FunctionVerdict` of ``main``, or a `Found`, in which diagnostics say what is a race and what is
not known. Apart from the proof of kesco's own outputs, which compares texts function by function and is stronger there.

1. The host's IR of each program is executed abstractly (`analysis.host_order`). 2. `verify.executions` judges. 3. A
comment ``// kesco: ordered(why)`` on the line of either step, or on the one before, takes a finding away.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.errors import InputError, VerificationError
from kesco.nesting import deep
from kesco.options import Options
from kesco.session import Session, host_ir_of, read
from kesco.source import Span

if TYPE_CHECKING:  # what is not needed to start the compilers is imported while they run
    from kesco.ir.execution import Execution, Step
    from kesco.ir.touched import Asked
    from kesco.verify.executions.agreement import Agreement, Reversed
    from kesco.verify.executions.alone import Finding

_SAID = re.compile(r"//\s*kesco:\s*ordered\(\s*\S[^)]*\)")
_STEP = "order the two, or say why they are with '// kesco: ordered(why)'"


@dataclass(frozen=True, slots=True)
class Found:
    """What one program was found to do: `ordered` has numbers of pairs by what orders them."""

    diagnostics: tuple[Diagnostic, ...]
    races: int
    unknown: int
    silenced: int
    work: int
    ordered: dict[str, int] = field(default_factory=dict)

    @property
    def pairs(self) -> int:
        """All pairs that conflict and are ordered."""
        return sum(self.ordered.values())


def verify_alone(path: str, options: Options) -> Found:
    """Judge one program by the order in which it issues; raises `VerificationError` where it cannot be followed."""
    return deep(path, lambda: _alone(path, options))


def _alone(path: str, options: Options) -> Found:
    from kesco.verify.executions.alone import judged

    session = Session(path, options)
    execution, asked = _executed(session)
    if execution.refused:
        what = f"the program cannot be followed: {execution.refused}"
        raise VerificationError(Diagnostic("K403", Severity.ERROR, what, Span(path, 0, 1, 1, 1), help=_CHECK))
    if not any(step.is_work for step in execution.steps):
        what = f"{path} launches nothing that 'main' comes to"
        raise InputError(Diagnostic("K403", Severity.ERROR, what, Span(path, 0, 1, 1, 1)))
    alone, _, _ = judged(execution, asked)
    findings = _once(alone.findings)
    said = _silenced(path)
    told = [one for one in findings if not said.intersection(_lines(one, path))]
    races = sum(not one.doubt for one in told)
    diagnostics = tuple(_diagnostic(one) for one in told)
    quiet = len(findings) - len(told)
    return Found(diagnostics, races, len(told) - races, quiet, alone.work, dict(alone.ordered))


_CHECK = "'kesco check' runs the program, and follows whatever happens in that run"


@dataclass(frozen=True, slots=True)
class Executed:
    """What a pair does: the pairs that conflict, what speaks against it, and why either cannot be followed.

    `other`: for certain they do not do the same, whatever the order.
    """

    pairs: int = 0
    problems: tuple[Diagnostic, ...] = ()
    refused: str = ""
    other: bool = False


def executed_pair(before: Session, after: Session) -> Executed:
    """Compare what the programs of a pair do."""
    from kesco.verify.executions.agreement import agreement

    (serial, one), (concurrent, two) = _executed(before), _executed(after)
    if serial.refused or concurrent.refused or not any(step.is_work for step in serial.steps):
        which = f"{before.path}: {serial.refused}" if serial.refused else f"{after.path}: {concurrent.refused}"
        return Executed(refused=which)
    found = agreement(serial, concurrent, (one, two))
    other = bool(found.unpaired) and not found.work and not found.lost
    return Executed(found.pairs, tuple(_against(found, after.path)), other=other)


def _executed(session: Session) -> tuple[Execution, Asked]:
    """What a program does, and what tells which bytes its launches touch."""
    from kesco.analysis.device_steering import kernel_steering
    from kesco.analysis.device_touches import KernelTouches
    from kesco.analysis.host.leading import MANAGED
    from kesco.analysis.host_order import execution_of

    deciding: dict[str, frozenset[int] | None] = {}
    for text in session.device_code:
        for name, steering in kernel_steering(text).items():
            which = {one.argument for each in steering.values() for one in each}
            deciding[name] = frozenset(which) if steering and name not in deciding else None
    from kesco.emit.batches import without_additions

    ir_text = host_ir_of(session.toolchain, session.path, session.options, without_additions(session.text))
    execution = execution_of(session.path, ir_text, session.effects, deciding, session.program.weak)
    if session.program.has("managed"):
        execution = replace(execution, refused=MANAGED)
    return execution, KernelTouches(session.device_code)


# ---- words


def _once(findings: tuple[Finding, ...]) -> list[Finding]:
    """One finding for two places, the surest: the first trip of a loop and the others are one text."""
    found: dict[tuple[object, ...], Finding] = {}
    for one in findings:
        key = (one.first.name, one.first.span, one.second.name, one.second.span, one.conflict.buffer.name)
        if key not in found or (found[key].doubt and not one.doubt):
            found[key] = one
    return list(found.values())


def _silenced(path: str) -> set[int]:
    lines = read(path).decode("utf-8", "replace").splitlines()
    said = {number for number, line in enumerate(lines, 1) if _SAID.search(line)}
    alone = {number for number in said if lines[number - 1].lstrip().startswith("//")}
    return said | {number + 1 for number in alone}


def _lines(one: Finding, path: str) -> set[int]:
    return {step.span.line for step in (one.first, one.second) if step.span.path == path}


def _diagnostic(one: Finding) -> Diagnostic:
    what = _words(one)
    if not one.doubt:
        return Diagnostic("K404", Severity.ERROR, f"{what}: nothing orders them", one.second.span, _notes(one),
                          one.advice)  # fmt: skip
    text = f"{what}, as far as is known: {one.doubt}"
    return Diagnostic("K405", Severity.WARNING, text, one.second.span, _notes(one), f"{one.advice}; {_STEP}")


def _words(one: Finding) -> str:
    kinds = ", ".join(one.conflict.kinds)
    second = "the host" if _is_host(one.second) else f"'{one.second.name}'"
    return f"{second} may begin before '{one.first.name}' is done ({kinds} on '{one.conflict.buffer.name}')"


def _is_host(step: Step) -> bool:
    from kesco.ir.execution import StepKind

    return step.kind is StepKind.HOST


def _notes(one: Finding) -> tuple[Note, ...]:
    return (Note(f"this must come first: '{one.first.name}'{_on(one.first)}", one.first.span),
            Note(f"this must come second: '{one.second.name}'{_on(one.second)}", one.second.span))  # fmt: skip


def _on(step: Step) -> str:
    if _is_host(step):
        return ""
    names = [one.name for one in step.streams] or ["a stream that is not known"]
    return f" on {' or '.join(names)}"


def _against(found: Agreement, path: str) -> list[Diagnostic]:
    told = [Diagnostic("K402", Severity.ERROR, f"main: {what}", step.span) for what, step in found.unpaired]
    for one in _once(found.unordered):
        told.append(Diagnostic("K401", Severity.ERROR, _words(one), one.second.span, _notes(one), one.advice))
    seen: set[tuple[Span, Span]] = set()
    for each in found.reversed:
        if (each.first.span, each.second.span) not in seen:
            seen.add((each.first.span, each.second.span))
            told.append(_turned(each))
    return told


def _turned(each: Reversed) -> Diagnostic:
    what = (
        f"'{each.second.name}' may be issued before '{each.first.name}', unlike in the serial program (on "
        f"'{each.buffer}')"
    )
    advice = "issue conflicting operations in the order of the serial program"
    return Diagnostic("K401", Severity.ERROR, what, each.second.span,
                      (Note("this must come first", each.first.span),), advice)  # fmt: skip
