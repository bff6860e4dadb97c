"""The compiler, from a file to proven text; it reads as the design's flow.

In: a path and options. Out: a `Compilation`. Nothing is written here and nothing is printed. An observer is told each
value's name as it comes to be: for timing, ``--dump`` and tests.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.errors import InputError, UsageError, VerificationError
from kesco.ir.compilation import Compilation as Compilation
from kesco.ir.compilation import FunctionResult as FunctionResult
from kesco.options import Options
from kesco.planning import plan, rewrite
from kesco.source import Span

if TYPE_CHECKING:  # what is not needed to start the compilers is imported while they run
    from kesco.ir.effects import KernelEffects
    from kesco.ir.flow import Region
    from kesco.ir.program import Program
    from kesco.toolchain.model import Toolchain

_STAGES = (
    *("frontend.parse", "analysis.resolve", "transfers", "dataflow", "synchronize", "emit.render", "verify.order"),
    "remarks",
)
Observer = Callable[[str, object], None]
_Result = TypeVar("_Result")
_STACK, _FRAMES = 1 << 29, 120_000  # what the deepest program that the front-end takes needs, and some more


def _silent(name: str, value: object) -> None:
    """The observer that looks at nothing."""


class Session:
    """One file opened for analysis: its parsed host side and the effects of its kernels."""

    def __init__(self, path: str, options: Options, observe: Observer = _silent) -> None:
        """Parse both sides of the file; raises `InputError` or `ToolchainError`."""
        self.path, self.options, self.observe = path, options, observe
        self.text = read(path)
        self.toolchain = _discover(options)
        observe("toolchain", self.toolchain)
        with ThreadPoolExecutor(2) as pool:
            device = pool.submit(_device_ir, self.toolchain, path, options)
            from kesco.emit.places import has_removable
            from kesco.emit.prologue import to_parse
            from kesco.frontend.clang import SourceFile, load
            from kesco.toolchain.compile import host_arguments

            self.looks = has_removable(self.text)
            load(str(self.toolchain.libclang))
            self.arguments = host_arguments(self.toolchain, options.flags)
            host = pool.submit(SourceFile, path, to_parse(self.text), self.arguments)
            from kesco.analysis.effects import kernel_effects  # the rest is imported while both compilers run

            for stage in _STAGES:
                importlib.import_module(f"kesco.{stage}")
            self.file = host.result()
            from kesco.frontend.parse import parse

            self.program: Program = parse(self.file, self.arguments)
            observe("program", self.program)
            texts = device.result()
        found: dict[str, KernelEffects] = {}
        for one in (effect for text in texts for effect in kernel_effects(text)):
            found[one.name] = found[one.name] | one if one.name in found else one
        self.effects: Mapping[str, KernelEffects] = found
        observe("effects", self.effects)
        self.again = self.program  # what `regions_of` read last

    def regions(self) -> tuple[Region, ...]:
        """The regions of the serial program."""
        from kesco.analysis.resolve import resolve

        return resolve(self.program, self.effects, looks=self.looks)

    def regions_of(self, text: bytes) -> tuple[Region, ...]:
        """The regions of another text for the same file, streams and events included."""
        from kesco.analysis.resolve import resolve
        from kesco.emit.prologue import stand_in
        from kesco.frontend.parse import parse

        self.file.reparse(stand_in(text))
        self.again = parse(self.file, self.arguments, self.program)
        return resolve(self.again, self.effects, streams=True, looks=self.looks)


def _deep(path: str, work: Callable[[], _Result]) -> _Result:
    """Do the work where deeply nested programs fit; raises `InputError` for one that is nested deeper than that."""
    results: list[_Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    stack, frames = threading.stack_size(_STACK), sys.getrecursionlimit()
    sys.setrecursionlimit(max(frames, _FRAMES))
    try:
        worker = threading.Thread(target=run, daemon=True)
        try:
            worker.start()
        except RuntimeError:  # not that much memory is to be had: the usual stack must do
            sys.setrecursionlimit(frames)
            run()
        else:
            threading.stack_size(stack)
            worker.join()
    finally:
        threading.stack_size(stack)
        sys.setrecursionlimit(frames)
    if errors and isinstance(errors[0], RecursionError):
        what, where = "an expression or statement is nested too deeply", Span(path, 0, 1, 1, 1)
        split = "split the file's longest expression or chain of 'else if'; nothing was written"
        raise InputError(Diagnostic("K106", Severity.ERROR, what, where, help=split)) from None
    if errors:
        raise errors[0]
    return results[0]


def compile_file(path: str, options: Options, observe: Observer = _silent) -> Compilation:
    """Compile one file; raises `KescoError` where there is nothing to emit."""
    return _deep(path, lambda: _compile_file(path, options, observe))


def _compile_file(path: str, options: Options, observe: Observer) -> Compilation:
    from kesco.emit.prologue import MARK

    source = read(path)
    if MARK.encode() in source:
        done = Diagnostic("K206", Severity.REMARK, f"{path} is already kesco's output: left as it is")
        return Compilation(path, source, source, (), (done,))
    session = Session(path, options, observe)
    regions = session.regions()
    observe("regions", regions)
    functions = tuple(plan(session.program, region, options) for region in regions)
    observe("functions", functions)
    text = _emit(session.program, functions)
    observe("text", text)
    verify(session, functions, text)
    from kesco.remarks import diagnose

    return Compilation(path, source, text, functions, diagnose(session.program, functions))


def _emit(program: Program, functions: tuple[FunctionResult, ...]) -> bytes:
    from kesco.emit.render import emit

    return emit(program, [rewrite(program, f) for f in functions if f.rewritten])


def verify(session: Session, functions: tuple[FunctionResult, ...], text: bytes) -> None:
    """Read the output again and prove it; raises `VerificationError` naming every pair that is not ordered."""
    if text == session.text:
        return
    from kesco.verify.order import explain, verify_region

    problems: list[Diagnostic] = []
    _check_prologue(session.path, text)
    try:
        regions = session.regions_of(text)
    except InputError as error:
        raise VerificationError(
            Diagnostic("K402", Severity.ERROR, "the output does not compile", Span(session.path, 0, 1, 1, 1),
                       tuple(Note(d.message, d.span) for d in error.diagnostics))
        ) from None  # fmt: skip
    problems += _replayed(session.again, regions, text)
    read_again = {(r.function, n): r for n, r in _numbered(regions)}
    for number, result in _numbered_results(functions):
        if not result.rewritten:
            continue
        concurrent = read_again.get((result.region.function, number))
        if concurrent is None or concurrent.serial_because:
            why = concurrent.serial_because if concurrent else "it is not there"
            problems.append(_unproven(result.region, f"the function cannot be read again: {why}"))
            continue
        verdict = verify_region(result.serial, concurrent)
        problems += [explain(u, concurrent) for u in verdict.unordered]
        problems += [_unproven(result.region, one) for one in verdict.unmatched]
        if not set(result.region.guards) <= set(concurrent.guards) | _guarded(text, concurrent):
            problems.append(_unproven(result.region, "the run-time check of its pointers is missing"))
    if problems:
        raise VerificationError(*problems)


def _replayed(program: Program, regions: tuple[Region, ...], text: bytes) -> list[Diagnostic]:
    """What speaks against the graphs of a text."""
    from kesco.emit.prologue import replays_in
    from kesco.verify.replays import replay_problems

    found = replay_problems(program, regions, replays_in(text))
    return [Diagnostic("K402", Severity.ERROR, what, span) for span, what in found]


def _unproven(region: Region, what: str) -> Diagnostic:
    return Diagnostic("K402", Severity.ERROR, f"{region.function}: {what}", region.span)


def _guarded(text: bytes, region: Region) -> set[str]:
    """The expressions that the function's text compares at run time, as they are at its entry."""
    body = text[region.span.start : region.span.end].decode("utf-8", "replace")
    _, found, rest = body.partition("_at_entry[] = {")
    return {a.strip().removeprefix("(const void*)") for a in rest.partition("};")[0].split(",")} if found else set()


def _check_prologue(path: str, text: bytes) -> None:
    """The names that the proof relies on must mean what the template says: the prologue is compared as text."""
    from kesco.emit.prologue import is_genuine

    if not is_genuine(text):
        where = Span(path, 0, 1, 1, 1)
        raise VerificationError(Diagnostic("K402", Severity.ERROR, "the prologue is not the one kesco writes", where))


@dataclass(frozen=True, slots=True)
class FunctionVerdict:
    """What the proof of one function of a pair of files found."""

    function: str
    pairs: int
    problems: tuple[Diagnostic, ...]


def verify_files(
    serial: str, concurrent: str, options: Options, observe: Observer = _silent
) -> tuple[FunctionVerdict, ...]:
    """Prove any pair of programs, function by function; raises `InputError` when there is nothing to compare."""
    return _deep(serial, lambda: _verify_files(serial, concurrent, options, observe))


def _verify_files(serial: str, concurrent: str, options: Options, observe: Observer) -> tuple[FunctionVerdict, ...]:
    from kesco.analysis.resolve import resolve
    from kesco.ir.flow import Role
    from kesco.verify.order import explain, verify_region

    before = Session(serial, options, observe)
    after = Session(concurrent, options, observe)
    _check_prologue(concurrent, after.text)
    again = resolve(after.program, after.effects, streams=True, looks=before.looks)
    theirs = {(r.function, n): r for n, r in _numbered(again)}
    wrong = tuple(_replayed(after.program, again, after.text))
    verdicts = [FunctionVerdict("", 0, wrong)] if wrong else []
    for number, region in _numbered(before.regions()):
        if not any(s.role in (Role.MOVABLE, Role.LEGACY) for s in region.sites):
            continue
        other = theirs.get((region.function, number))
        if other is None:
            missing = Diagnostic(
                "K403", Severity.ERROR, f"{concurrent} has no function '{region.function}'", region.span
            )
            verdicts.append(FunctionVerdict(region.function, 0, (missing,)))
            continue
        if region.serial_because or other.serial_because:
            why = region.serial_because or other.serial_because
            vague = Diagnostic("K403", Severity.ERROR, f"'{region.function}' cannot be followed: {why}", region.span)
            verdicts.append(FunctionVerdict(region.function, 0, (vague,)))
            continue
        verdict = verify_region(region, other)
        problems = [explain(u, other) for u in verdict.unordered]
        problems += [_unproven(region, one) for one in verdict.unmatched]
        verdicts.append(FunctionVerdict(region.function, verdict.pairs, tuple(problems)))
    if not verdicts:
        raise InputError(
            Diagnostic("K403", Severity.ERROR, f"{serial} launches nothing, so there is nothing to prove",
                       Span(serial, 0, 1, 1, 1), help="name the serial program first, the concurrent one second")
        )  # fmt: skip
    return tuple(verdicts)


def _numbered(regions: tuple[Region, ...]) -> list[tuple[int, Region]]:
    """Regions with a number that tells functions of one name apart."""
    seen: dict[str, int] = {}
    result = []
    for region in regions:
        seen[region.function] = seen.get(region.function, -1) + 1
        result.append((seen[region.function], region))
    return result


def _numbered_results(functions: tuple[FunctionResult, ...]) -> list[tuple[int, FunctionResult]]:
    numbers = _numbered(tuple(f.region for f in functions))
    return [(n, f) for (n, _), f in zip(numbers, functions, strict=True)]


def _discover(options: Options) -> Toolchain:
    from kesco.toolchain.discover import discover

    return discover(
        clang=options.clang,
        cuda_path=options.cuda_path,
        arch=options.arch,
        libclang=options.libclang,
        environ=os.environ,
    )


def _device_ir(toolchain: Toolchain, path: str, options: Options) -> list[str]:
    """The device IR for each architecture the user compiles for: a kernel does what it does for any of them."""
    from kesco.toolchain.compile import architectures, device_ir

    return [device_ir(toolchain, path, options.flags, arch=a) for a in architectures(toolchain, options.flags)]


def read(path: str) -> bytes:
    """The bytes of a source file; raises `InputError` when it cannot be read."""
    try:
        return Path(path).read_bytes()
    except IsADirectoryError:
        raise UsageError(Diagnostic("K102", Severity.ERROR, f"{path} is a directory", help="name a .cu file")) from None
    except OSError as error:
        raise InputError(
            Diagnostic(
                "K102",
                Severity.ERROR,
                f"cannot read {path}: {error.strerror}",
                help="check the path and its permissions",
            )
        ) from None
