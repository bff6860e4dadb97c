"""The proof of a text, and of a pair of files: `verify/` asked about every function.

In: a `Session` and what was made of it, or two paths. Out: nothing, or a `FunctionVerdict` for each function; what is
not proven is an error. It is apart from the pipeline, which it ends, because `kesco verify` has nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.errors import InputError, VerificationError
from kesco.ir.compilation import FunctionResult
from kesco.nesting import deep
from kesco.options import Options
from kesco.session import Observer, Session, silent
from kesco.source import Span

if TYPE_CHECKING:  # what is not needed to start the compilers is imported while they run
    from kesco.ir.batches import Tells
    from kesco.ir.flow import Region, Site
    from kesco.ir.program import Program

_PROLOGUE = b"struct KescoStreams"
_SEEN = "the host may touch in '{}' what the device still does"
_UNGUARDED = "the run-time check of its pointers is missing"


def verify(session: Session, functions: tuple[FunctionResult, ...], text: bytes) -> None:
    """Read the output again and prove it; raises `VerificationError` naming every pair that is not ordered."""
    from kesco.ir.program import HEADS

    if text == session.text:
        return
    problems: list[Diagnostic] = []
    heads = session.program.has(HEADS)
    _check_prologue(session.path, text)
    try:
        regions = session.regions_of(text)
    except InputError as error:
        raise VerificationError(
            Diagnostic("K402", Severity.ERROR, "the output does not compile", Span(session.path, 0, 1, 1, 1),
                       tuple(Note(d.message, d.span) for d in error.diagnostics)), heads=heads
        ) from None  # fmt: skip
    problems += _replayed(session.again, regions, text)
    results = numbered_results(session.program, functions)
    problems += _not_followed([(number, one.serial) for number, one in results], regions)
    read_again = {(r.function, n): r for n, r in numbered(regions)}
    general, where = len(problems), dict[tuple[str, Span], None]()
    for number, result in results:
        found = _of_result(session, number, result, read_again)
        problems += found
        where |= dict.fromkeys(((result.serial.function, result.serial.span), *result.region.members) if found else ())
    if problems:
        raise VerificationError(*problems, functions=() if general else tuple(where), heads=heads)


def _of_result(
    session: Session, number: int, result: FunctionResult, read_again: Mapping[tuple[str, int], Region]
) -> Sequence[Diagnostic]:
    """What is not proven of one function of an output."""
    from kesco.verify.order import same_members

    concurrent = read_again.get((result.region.function, number))
    if not result.rewritten and not result.follows:
        given = concurrent is not None and any(_is_given_stream(s) for s in concurrent.sites)
        return [_unproven(result.region, "a call in it is given a stream")] if given else []
    if result.region.members and concurrent is not None:
        concurrent = same_members(result.region, concurrent.linked)
    same = result.follows and concurrent is not None and concurrent.serial_because == result.serial.serial_because
    if concurrent is None or (concurrent.serial_because and not same):
        why = concurrent.serial_because if concurrent else "it is not there"
        return [_unproven(result.region, f"the function cannot be read again: {why}")]
    return _judged(result.serial, concurrent, (session.program, session.again), result.region.guards).problems


@dataclass(frozen=True, slots=True)
class FunctionVerdict:
    """What the proof of one function of a pair of files found; `unchanged`: why it cannot be followed, nor need be."""

    function: str
    pairs: int
    problems: tuple[Diagnostic, ...]
    unchanged: str = ""


def verify_files(
    serial: str, concurrent: str, options: Options, observe: Observer = silent
) -> tuple[FunctionVerdict, ...]:
    """Prove a pair of programs, function by function; raises `InputError` when there is nothing to compare."""
    return deep(serial, lambda: _verify_files(serial, concurrent, options, observe))


def _verify_files(serial: str, concurrent: str, options: Options, observe: Observer) -> tuple[FunctionVerdict, ...]:
    before = Session(serial, options, observe)
    after = Session(concurrent, options, observe)
    try:
        if late := after.late_problems(after.text):
            return (FunctionVerdict("", 0, tuple(_late(late))),)
        if kept := after.deferred_problems(after.text):
            wrong = (Diagnostic("K402", Severity.ERROR, what, span) for span, what in kept)
            return (FunctionVerdict("", 0, tuple(wrong)),)
        for rolling in (True, False):  # somebody may tell trips apart by streams whose trips do the same
            before.rolling, after.rolling = before.rolling and rolling, after.rolling and rolling
            verdicts = _of_texts(before, after)
            if not any(one.problems for one in verdicts):
                return verdicts if _PROLOGUE in after.text else _with_numbers(before, after, verdicts)
    except InputError as error:
        verdicts = (FunctionVerdict("", 0, error.diagnostics),)
        if _PROLOGUE in after.text or not any(one.effects for one in (before, after)):
            raise
    return verdicts if _PROLOGUE in after.text else _by_execution(before, after, verdicts)


def _with_numbers(
    before: Session, after: Session, verdicts: tuple[FunctionVerdict, ...]
) -> tuple[FunctionVerdict, ...]:
    """What the proof of texts has found, unless operations of a pair that somebody wrote are given other numbers."""
    from kesco.proving.executions import executed_pair

    found = executed_pair(before, after)
    return (FunctionVerdict("main", found.pairs, found.problems),) if found.other else verdicts


def _by_execution(
    before: Session, after: Session, verdicts: tuple[FunctionVerdict, ...]
) -> tuple[FunctionVerdict, ...]:
    """What the proof of a pair that somebody wrote finds; where neither can be followed, one thing that texts show."""
    from kesco.proving.executions import executed_pair

    found = executed_pair(before, after)
    paired = all(one.code == "K401" for verdict in verdicts for one in verdict.problems)
    if not found.refused and not (found.problems and paired):
        return (FunctionVerdict("main", found.pairs, found.problems),)
    if paired:
        return verdicts
    told = next(one for verdict in verdicts for one in verdict.problems if one.code != "K401")
    note = Note(f"what the programs do as they run cannot be compared, either: {found.refused}")
    return (FunctionVerdict("", 0, (replace(told, notes=(*told.notes, note)),)),)


def _of_texts(before: Session, after: Session) -> tuple[FunctionVerdict, ...]:
    from kesco.ir.turns import counterparts, turning
    from kesco.verify.order import same_members

    serial = before.path
    _check_prologue(after.path, after.text)
    before.strays = before.zeroings() > after.zeroings()  # some may have become memsets
    before.looks = before.looks or after.looks or before.strays
    after.looks, after.strays = before.looks, before.strays
    before.turning = counterparts(turning(after.program), after.program, before.program)
    ours = before.regions()
    by_ir = {(r.function, n) for at, (n, r) in enumerate(numbered(ours)) if at in before.by_ir}
    again = after.of_streams(())
    if _PROLOGUE in after.text:  # it was proven with what the serial program's IR says of work left running
        known = {(r.function, n): before.open[at] for at, (n, r) in enumerate(numbered(ours)) if at in before.open}
        opened = {at: known.get((r.function, n)) for at, (n, r) in enumerate(numbered(again))}
        after.open = {at: one for at, one in opened.items() if one is not None}
        again = after.of_streams(())
    if by_ir:
        again = after.of_streams([at for at, (n, r) in enumerate(numbered(again)) if (r.function, n) in by_ir])
    theirs = {(r.function, n): r for n, r in numbered(again)}
    wrong = (*_replayed(after.program, again, after.text), *_not_followed(numbered(ours), again))
    verdicts = [FunctionVerdict("", 0, wrong)] if wrong else []
    found = {(region.function, region.span): _compared(region, theirs.get((region.function, number)), before, after)
             for number, region in numbered(ours)}  # fmt: skip
    for number, region in numbered(ours):  # those without a join between them are proven as one
        other = theirs.get((region.function, number))
        whole = same_members(region.linked, other.linked) if region.linked is not None and other is not None else None
        if region.linked is None or whole is None:
            continue
        parts = [(region.function, region.span), *region.linked.members]
        if any(one is not None and one.problems for one in map(found.get, parts)):
            found |= dict.fromkeys(parts)
            found[parts[0]] = _judged(region.linked, whole, (before.program, after.program))
    verdicts += filter(None, found.values())
    if not verdicts:
        raise InputError(
            Diagnostic("K403", Severity.ERROR, f"{serial} launches nothing, so there is nothing to prove",
                       Span(serial, 0, 1, 1, 1), help="name the serial program first, the concurrent one second")
        )  # fmt: skip
    return tuple(verdicts)


def _compared(region: Region, other: Region | None, before: Session, after: Session) -> FunctionVerdict | None:
    """What the proof of one function finds, if it gives the device work; what stays as it was needs none."""
    from kesco.ir.flow import Role

    own = other is not None and (other.serial_because and not region.serial_because)
    given = own or (other is not None and any(_is_given_stream(s) for s in other.sites))
    if not given and not any(s.role in (Role.MOVABLE, Role.LEGACY) for s in region.sites):
        return None
    what = f"{after.path} has no function '{region.function}'"
    if other is not None:
        why = region.serial_because or other.serial_because
        if not why:
            moves = region.calling is not None and any(_is_given_stream(s) for s in other.sites)
            serial = region.calling if moves and region.calling is not None else region
            return _judged(serial, other, (before.program, after.program))
        texts = [t[r.span.start : r.span.end] for t, r in ((before.text, region), (after.text, other))]
        if texts[0] == texts[1]:
            return FunctionVerdict(region.function, 0, (), why)
        what = f"'{region.function}' cannot be followed: {why}"
    return FunctionVerdict(region.function, 0, (Diagnostic("K403", Severity.ERROR, what, region.span),))


def _not_followed(serial: Sequence[tuple[int, Region]], concurrent: tuple[Region, ...]) -> list[Diagnostic]:
    """The calls that are given a stream, of functions which must not follow one as the serial program shows."""
    reasons = {(region.function, number): region.not_followed for number, region in serial}
    numbers = {region.span: number for number, region in numbered(concurrent)}
    return [
        Diagnostic("K402", Severity.ERROR, f"'{name}' is given a stream, but {why}", s.span)
        for s in (s for region in concurrent for s in region.sites if _is_given_stream(s))
        for name, span in s.calls
        if (why := reasons.get((name, numbers.get(span, -1)), "it is not known"))
    ]


def _is_given_stream(site: Site) -> bool:
    """Whether a site is a call that runs on a stream."""
    from kesco.ir.flow import Role, SiteKind

    return site.kind is SiteKind.CALL and site.role is Role.MOVABLE


def _judged(
    serial: Region, other: Region, programs: tuple[Program, Program], guards: tuple[str, ...] = ()
) -> FunctionVerdict:
    """The proof of one function; `guards` are further pointers that were taken to be distinct."""
    from kesco.ir.flow import sees_itself
    from kesco.verify.called import with_later
    from kesco.verify.guards import guarded
    from kesco.verify.order import verify_region
    from kesco.verify.rings import rings_of
    from kesco.verify.values import value_problems
    from kesco.verify.verdict import explain

    other = with_later(programs[1], other)
    rings = tuple(
        one for f in programs[1].functions if f.here and f.span == other.span for one in rings_of(programs[1], f)
    )
    verdict = verify_region(serial, other, rings, programs[0])
    problems = [explain(u, other) for u in verdict.unordered]
    problems += [_unproven(serial, one) for one in (*verdict.unmatched, *value_problems(serial, other, *programs))]
    problems += [_unproven(serial, _SEEN.format(s.label)) for s in other.sites if s.later and sees_itself(s)]
    on_streams = any(s.stream is not None for s in other.sites)
    if on_streams and not {*serial.guards, *guards, *other.guards} <= guarded(programs[1].text, other):
        problems.append(_unproven(serial, _UNGUARDED))
    return FunctionVerdict(serial.function, verdict.pairs, tuple(problems))


def _replayed(program: Program, regions: tuple[Region, ...], text: bytes) -> list[Diagnostic]:
    """What speaks against the graphs of a text, and against what it copies in the background."""
    from kesco.emit.prologue import is_ours, replays_in
    from kesco.verify.destinations import destination_problems
    from kesco.verify.devices import device_problems
    from kesco.verify.pins import pin_problems
    from kesco.verify.replays import replay_problems
    from kesco.verify.rings import stray_calls
    from kesco.verify.scratch import scratch_problems
    from kesco.verify.sources import source_problems
    from kesco.verify.taken import taken_problems

    found = (
        *replay_problems(program, regions, replays_in(text)),
        *source_problems(program),
        *destination_problems(program),
        *pin_problems(program),
        *taken_problems(program),
        *device_problems(program, regions),
        *stray_calls(program),
        *scratch_problems(program, regions),
        *((f.span, f"'{f.name}' has a name of kesco's own") for f in program.functions if is_ours(f.name)),
    )
    return [Diagnostic("K402", Severity.ERROR, what, span) for span, what in found]


def _late(problems: Sequence[Tells]) -> list[Diagnostic]:
    """What speaks against the batches of a text, as diagnostics."""
    return [Diagnostic("K402", Severity.ERROR, one.what, one.span) for one in problems]


def _unproven(region: Region, what: str) -> Diagnostic:
    return Diagnostic("K402", Severity.ERROR, f"{region.function}: {what}", region.span)


def _check_prologue(path: str, text: bytes) -> None:
    """The names that the proof relies on must mean what the template says: the prologue is compared as text."""
    from kesco.emit.prologue import is_genuine

    if not is_genuine(text):
        where = Span(path, 0, 1, 1, 1)
        raise VerificationError(Diagnostic("K402", Severity.ERROR, "the prologue is not the one kesco writes", where))


def numbered(regions: tuple[Region, ...]) -> list[tuple[int, Region]]:
    """Regions with a number that tells functions of one name apart."""
    seen: dict[str, int] = {}
    result = []
    for region in regions:
        seen[region.function] = seen.get(region.function, -1) + 1
        result.append((seen[region.function], region))
    return result


def numbered_results(program: Program, functions: tuple[FunctionResult, ...]) -> list[tuple[int, FunctionResult]]:
    """The same for results, some of which stand for several functions."""
    seen: dict[str, int] = {}
    numbers = {}
    for one in (f for f in program.functions if f.here):
        numbers[one.name, one.span] = seen[one.name] = seen.get(one.name, -1) + 1
    return [(numbers[f.serial.function, f.serial.span], f) for f in functions]
