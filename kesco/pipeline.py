"""The compiler, from a file to proven text; it reads as the design's flow.

In: a path and options. Out: a `Compilation`. Nothing is written here and nothing is printed. An observer is told each
value's name as it comes to be: for timing, ``--dump`` and tests.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.errors import InputError, UsageError, VerificationError
from kesco.ir.compilation import Compilation as Compilation
from kesco.ir.compilation import FunctionResult as FunctionResult
from kesco.ir.transfers import COPY
from kesco.nesting import deep
from kesco.options import Options
from kesco.planning import plan_all, rewrite
from kesco.source import Span

if TYPE_CHECKING:  # what is not needed to start the compilers is imported while they run
    from kesco.ir.costs import Costs
    from kesco.ir.effects import KernelEffects
    from kesco.ir.flow import Region
    from kesco.ir.lifetimes import Moved
    from kesco.ir.program import Program
    from kesco.model.forecast import Prices
    from kesco.toolchain.model import Toolchain

_STAGES = (
    *("frontend.parse", "analysis.resolve", "transfers", "dataflow", "synchronize", "emit.render", "verify.order"),
    "remarks",
)
Observer = Callable[[str, object], None]


def _silent(name: str, value: object) -> None:
    """The observer that looks at nothing."""


class Session:
    """One file opened for analysis: its parsed host side and the effects of its kernels."""

    def __init__(self, path: str, options: Options, observe: Observer = _silent) -> None:
        """Parse both sides of the file; raises `InputError` or `ToolchainError`."""
        self.path, self.options, self.observe = path, options, observe
        self.text = read(path)
        self.wraps = any("-fwrapv" in flag or "-fno-strict-overflow" in flag for flag in options.flags)
        self.toolchain = _discover(options)
        observe("toolchain", self.toolchain)
        with ThreadPoolExecutor(2) as pool:
            device = pool.submit(_device_ir, self.toolchain, path, options)
            from kesco.emit.places import has_removable
            from kesco.emit.prologue import to_parse
            from kesco.frontend.clang import SourceFile, load
            from kesco.toolchain.compile import host_arguments

            self.looks = has_removable(self.text) or options.copies == "move" or COPY.encode() in self.text
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
            observe("includes", self.file.included())
            texts = device.result()
        found: dict[str, KernelEffects] = {}
        for one in (effect for text in texts for effect in kernel_effects(text)):
            found[one.name] = found[one.name] | one if one.name in found else one
        self.effects: Mapping[str, KernelEffects] = found
        self.device_code = texts
        observe("effects", self.effects)
        self.again = self.program  # what `regions_of` read last

    def regions(self) -> tuple[Region, ...]:
        """The regions of the serial program."""
        from kesco.analysis.resolve import resolve

        return resolve(self.program, self.effects, looks=self.looks, wraps=self.wraps)

    def regions_of(self, text: bytes, *, streams: bool = True) -> tuple[Region, ...]:
        """The regions of another text for the same file, with streams and events included."""
        from kesco.analysis.resolve import resolve
        from kesco.emit.prologue import stand_in
        from kesco.frontend.parse import parse

        self.file.reparse(stand_in(text))
        self.again = parse(self.file, self.arguments, self.program)
        return resolve(self.again, self.effects, streams=streams, looks=self.looks, wraps=self.wraps)


def compile_file(path: str, options: Options, observe: Observer = _silent) -> Compilation:
    """Compile one file; raises `KescoError` where there is nothing to emit."""
    return deep(path, lambda: _compile_file(path, options, observe))


def _compile_file(path: str, options: Options, observe: Observer) -> Compilation:
    from kesco.emit.prologue import MARK

    source = read(path)
    if MARK.encode() in source:
        done = Diagnostic("K206", Severity.REMARK, f"{path} is already kesco's output: left as it is")
        return Compilation(path, source, source, (), (done,))
    profile = _profile(options)
    session = Session(path, options, observe)
    regions = session.regions()
    observe("regions", regions)
    prices, said = _prices(session, profile, regions)
    program, functions, back = _planned(session, regions, options, prices)
    observe("functions", functions)
    text, kept = _emit(program, functions)
    observe("text", text)
    verify(session, functions, text)
    from kesco import tasks
    from kesco.remarks import diagnose

    found = (*said, *tasks.diagnose(session.program), *map(back, diagnose(program, functions)))
    return Compilation(path, source, text, functions, found, kept if program is session.program else ())


def _profile(options: Options) -> Costs | None:
    """The profile that is asked for; raises `UsageError` for one that cannot be read, before the compilers run."""
    if options.profile is None:
        return None
    from kesco.ir.kprof import read as read_profile

    return read_profile(Path(options.profile))


def _prices(
    session: Session, profile: Costs | None, regions: tuple[Region, ...]
) -> tuple[Prices | None, tuple[Diagnostic, ...]]:
    """What operations cost, where somebody asks for it, and what is wrong with the profile."""
    if profile is None and session.options.strategy != "critical_path":
        return None, ()
    from kesco import pricing
    from kesco.analysis.device_work import device_work

    if profile is not None:
        exact = pricing.is_of(session.program, profile)
        return pricing.measured(session.program, profile), () if exact else (pricing.stale(session.program),)
    work: dict[str, int] = {}
    for text in session.device_code:
        work |= device_work(text)
    sizes = {s.operation: s.bytes for r in regions for s in r.sites if s.bytes is not None}
    return pricing.of_copies(pricing.estimated(session.program, work), sizes), ()


def _planned(
    session: Session, regions: tuple[Region, ...], options: Options, prices: Prices | None
) -> tuple[Program, tuple[FunctionResult, ...], Callable[[Diagnostic], Diagnostic]]:
    """The results of all functions, the program whose text they are to be written in, and the way back from it.

    With ``--memory reuse`` that text is the user's own with allocations late and frees early, for which there are no
    prices: a profile knows the places of the user's text.
    """
    from kesco.emit.moves import moved_text
    from kesco.lifetimes import all_planned, movable

    late = options.memory == "reuse" and options.emit == "streams" and not session.program.tasks
    moves = movable(session.program, regions) if late else ()
    while moves:
        text, back = moved_text(session.text, moves)
        again = session.regions_of(text, streams=False)
        program = session.again
        functions = plan_all(program, all_planned(again, regions, moves), options)
        serial = {(r.function, n): r for n, r in _numbered(regions)}
        results: list[FunctionResult] = []
        kept: list[Moved] = []
        for number, one in _numbered_results(program, functions):
            before = serial.get((one.region.function, number))
            linked = before is not None and one.region.members
            before = before.linked if before is not None and linked else before
            inside = {span for _, span in before.members} | {before.span} if before is not None else set()
            mine = tuple(m for m in moves if m.function in inside)
            kept += mine if one.rewritten else ()
            results.append(replace(one, moved=mine if one.rewritten else (), before=before))
        if len(kept) == len(moves):
            return program, tuple(results), back
        moves = tuple(kept)  # where a function stays serial, its memory does, too
    return session.program, plan_all(session.program, regions, options, prices), lambda one: one


def _emit(program: Program, functions: tuple[FunctionResult, ...]) -> tuple[bytes, tuple[tuple[int, int, int], ...]]:
    """The text, and which stretches of the file are kept in it."""
    from kesco.emit.edits import apply, kept
    from kesco.emit.render import all_edits

    edits = all_edits(program, [rewrite(program, f) for f in functions if f.rewritten])
    return apply(program.text, edits), kept(program.text, edits)


def verify(session: Session, functions: tuple[FunctionResult, ...], text: bytes) -> None:
    """Read the output again and prove it; raises `VerificationError` naming every pair that is not ordered."""
    if text == session.text:
        return
    from kesco.verify.order import explain, same_members, verify_region

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
    for number, result in _numbered_results(session.program, functions):
        if not result.rewritten:
            continue
        concurrent = read_again.get((result.region.function, number))
        if result.region.members and concurrent is not None:
            concurrent = same_members(result.region, concurrent.linked)
        if concurrent is None or concurrent.serial_because:
            why = concurrent.serial_because if concurrent else "it is not there"
            problems.append(_unproven(result.region, f"the function cannot be read again: {why}"))
            continue
        verdict = verify_region(result.serial, concurrent)
        problems += [explain(u, concurrent) for u in verdict.unordered]
        problems += [_unproven(result.region, one) for one in verdict.unmatched]
        if not {*result.region.guards, *concurrent.guards} <= _guarded(text, concurrent):
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
    given, _, rest = rest.partition("};")
    if not found or "_streams_if_distinct(" not in rest:
        return set()
    return {a.strip().removeprefix("(const void*)") for a in given.split(",")}


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
    return deep(serial, lambda: _verify_files(serial, concurrent, options, observe))


def _verify_files(serial: str, concurrent: str, options: Options, observe: Observer) -> tuple[FunctionVerdict, ...]:
    from kesco.analysis.resolve import resolve
    from kesco.verify.order import same_members

    before = Session(serial, options, observe)
    after = Session(concurrent, options, observe)
    _check_prologue(concurrent, after.text)
    before.looks |= after.looks
    again = resolve(after.program, after.effects, streams=True, looks=before.looks, wraps=after.wraps)
    theirs = {(r.function, n): r for n, r in _numbered(again)}
    wrong = tuple(_replayed(after.program, again, after.text))
    verdicts = [FunctionVerdict("", 0, wrong)] if wrong else []
    ours = before.regions()
    found = {(region.function, region.span): _compared(region, theirs.get((region.function, number)), concurrent)
             for number, region in _numbered(ours)}  # fmt: skip
    for number, region in _numbered(ours):  # those without a join between them are proven as one
        other = theirs.get((region.function, number))
        whole = same_members(region.linked, other.linked) if region.linked is not None and other is not None else None
        if region.linked is None or whole is None:
            continue
        parts = [(region.function, region.span), *region.linked.members]
        if any(one is not None and one.problems for one in map(found.get, parts)):
            found |= dict.fromkeys(parts)
            found[parts[0]] = _judged(region.linked, whole)
    verdicts += filter(None, found.values())
    if not verdicts:
        raise InputError(
            Diagnostic("K403", Severity.ERROR, f"{serial} launches nothing, so there is nothing to prove",
                       Span(serial, 0, 1, 1, 1), help="name the serial program first, the concurrent one second")
        )  # fmt: skip
    return tuple(verdicts)


def _compared(region: Region, other: Region | None, path: str) -> FunctionVerdict | None:
    """What the proof of one function finds, if it gives the device work."""
    from kesco.ir.flow import Role

    if not any(s.role in (Role.MOVABLE, Role.LEGACY) for s in region.sites):
        return None
    if other is None:
        missing = f"{path} has no function '{region.function}'"
        return FunctionVerdict(region.function, 0, (Diagnostic("K403", Severity.ERROR, missing, region.span),))
    if region.serial_because or other.serial_because:
        why = f"'{region.function}' cannot be followed: {region.serial_because or other.serial_because}"
        return FunctionVerdict(region.function, 0, (Diagnostic("K403", Severity.ERROR, why, region.span),))
    return _judged(region, other)


def _judged(region: Region, other: Region) -> FunctionVerdict:
    from kesco.verify.order import explain, verify_region

    verdict = verify_region(region, other)
    problems = [explain(u, other) for u in verdict.unordered]
    problems += [_unproven(region, one) for one in verdict.unmatched]
    return FunctionVerdict(region.function, verdict.pairs, tuple(problems))


def _numbered(regions: tuple[Region, ...]) -> list[tuple[int, Region]]:
    """Regions with a number that tells functions of one name apart."""
    seen: dict[str, int] = {}
    result = []
    for region in regions:
        seen[region.function] = seen.get(region.function, -1) + 1
        result.append((seen[region.function], region))
    return result


def _numbered_results(program: Program, functions: tuple[FunctionResult, ...]) -> list[tuple[int, FunctionResult]]:
    """The same for results, some of which stand for several functions."""
    seen: dict[str, int] = {}
    numbers = {}
    for one in (f for f in program.functions if f.here):
        numbers[one.name, one.span] = seen[one.name] = seen.get(one.name, -1) + 1
    return [(numbers[f.serial.function, f.serial.span], f) for f in functions]


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
