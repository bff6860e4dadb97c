"""The compiler, from a file to proven text; it reads as the design's flow.

In: a path and options. Out: a `Compilation`. Nothing is written here and nothing is printed. An observer is told each
value's name as it comes to be: for timing, ``--dump`` and tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError, VerificationError
from kesco.ir.compilation import Compilation as Compilation
from kesco.ir.compilation import FunctionResult as FunctionResult
from kesco.nesting import deep
from kesco.options import Options
from kesco.ordering import Ordered, ordered
from kesco.planning import following, plan_all, prefetchable, rewrite
from kesco.proving import numbered, numbered_results, verify
from kesco.session import Observer, Session, read, silent
from kesco.source import Span

if TYPE_CHECKING:  # what is not needed to start the compilers is imported while they run
    from kesco.ir.batches import Batch
    from kesco.ir.costs import Costs
    from kesco.ir.deferred import Deferred
    from kesco.ir.flow import Region
    from kesco.ir.lifetimes import Moved
    from kesco.ir.program import Program
    from kesco.ir.timeline import Timeline
    from kesco.model.forecast import Prices

    _Planned = tuple[Program, tuple[FunctionResult, ...], Callable[[Diagnostic], Diagnostic]]

_Places = frozenset[tuple[str, Span]]
ESTIMATED = "weights from the device code: nothing was measured"


def compile_file(path: str, options: Options, observe: Observer = silent) -> Compilation:
    """Compile one file; raises `KescoError` where there is nothing to emit."""
    return deep(path, lambda: _compile_file(path, options, observe))


def _compile_file(path: str, options: Options, observe: Observer) -> Compilation:
    apart: _Places = frozenset()
    left: _Places = frozenset()
    only_text, heads = False, True
    while True:
        try:
            return _compiled(path, options, observe, apart, left, only_text=only_text, heads=heads)
        except VerificationError as error:
            observe("unproven", error)
            if heads and error.heads:  # what is behind the condition of a branch may be missing on its way out
                heads = False
                continue
            if only_text and left.issuperset(error.functions):
                raise
            if only_text:
                left = left.union(error.functions)
                continue
            # What the IR says of some functions, or of turns: the text alone says less. First of these functions only.
            only_text = apart.issuperset(error.functions)
            options = replace(options, turns=not only_text)
            apart = apart.union(error.functions or [("", Span(path, 0, 1, 1, 1))])


def _compiled(
    path: str, options: Options, observe: Observer, apart: _Places, left: _Places, *, only_text: bool, heads: bool
) -> Compilation:
    from kesco.emit import batches, deferred, hooks
    from kesco.emit.prologue import MARK

    source = read(path)
    if any(mark.encode() in source for mark in (MARK, hooks.MARK, batches.MARK, deferred.MARK)):
        done = Diagnostic("K206", Severity.REMARK, f"{path} is already kesco's output: left as it is")
        return Compilation(path, source, source, (), (done,))
    profile = _profile(options)
    session = Session(path, options, observe, heads=heads)
    session.apart, session.left = apart, left
    session.only_text = session.only_text or only_text
    session.rolling = session.rolling and not only_text
    regions = session.regions()
    observe("regions", regions)
    prices, said = _prices(session, profile, regions)
    regions, (program, functions, back) = _turning(session, regions, options, prices)
    same = program is session.program
    weights = cache(lambda: prices or _estimated(session, regions))
    better, refused = ordered(session, regions, options, prices, functions, weights) if same else (None, ())
    try:
        text, kept = _proven(session, *((program, functions) if better is None else (better.program, better.functions)))
    except VerificationError:
        if better is None:
            raise
        refused += tuple(one.serial for one in better.functions if one.reordered)
        better = None  # the proof does not follow the other order
        text, kept = _proven(session, program, functions)
    if better is not None:
        program, functions, back = better.program, better.functions, better.back
    from kesco import tasks
    from kesco.emit.edits import kept_through
    from kesco.remarks import diagnose
    from kesco.remarks.managed import said_of_managed
    from kesco.remarks.order import said_of_order, said_of_plainer, said_of_refused

    found = (*said, *tasks.diagnose(session.program), *map(back, diagnose(program, functions)))
    found += (*said_of_order(session.path, session.text, functions), *said_of_refused(refused), *said_of_plainer(apart))
    found += said_of_managed(prefetchable(session.program, regions, options, prices))
    shown = _timelines(session, weights(), regions, functions, better) if same and options.page else ()
    kept = (kept if better is None else kept_through(better.kept, kept)) if same else ()
    if options.fikit:
        text, kept, without = _hooked(session, text, kept, better)
        found = (*found, *without)
        observe("text", text)
        verify(session, functions, text)
    text, kept, loops = _batched(session, text, kept)
    text, kept, later, others = _deferring(session, text, kept)
    seen = functions if better is None else better.seen()
    if later or others:
        from kesco.remarks.order import said_of_deferred, with_deferred

        found, seen = with_deferred(found, seen, later, others)
        found += said_of_deferred(session.path, session.text, later)
    result = Compilation(path, source, text, seen, found, kept, shown, batches=loops, deferred=later)
    return result if session.text == source else _in_files(session, result)


def _proven(
    session: Session, program: Program, functions: tuple[FunctionResult, ...]
) -> tuple[bytes, tuple[tuple[int, int, int], ...]]:
    """The text for these plans, proven, and which stretches of the program's are kept in it."""
    session.observe("functions", functions)
    text, kept = _emit(program, functions)
    session.observe("text", text)
    verify(session, functions, text)
    return text, kept


def _batched(
    session: Session, text: bytes, before: tuple[tuple[int, int, int], ...]
) -> tuple[bytes, tuple[tuple[int, int, int], ...], tuple[Batch, ...]]:
    """A proven text with launches of loops given to the device many at a time, proven, what it keeps, and the loops."""
    from kesco.batching import batches
    from kesco.emit.batches import batched, same_text
    from kesco.emit.edits import OverlapError, apply, kept, kept_through
    from kesco.emit.places import CannotInsert

    options = session.options
    if options.launches == "keep" or session.plain_only or options.memory == "reuse" or options.fikit:
        return text, before, ()
    program = session.again if text != session.text else session.program
    left: frozenset[Span] = frozenset()  # loops in which something that is not written could tell
    while (found := batches(program, left)).loops:
        try:
            edits = batched(program, found)
            more = apply(text, edits)
            problems = session.late_problems(more)
        except (CannotInsert, OverlapError, InputError) as error:
            session.observe("unbatched", error)
            break
        if not problems and same_text(more, text):
            session.observe("batches", found)
            return more, kept_through(before, kept(text, edits)), found.loops
        session.observe("unbatched", problems)
        told = frozenset(found.loops[n].whole for one in problems for n in one.guards)
        if not told:
            break
        left |= told
    return text, before, ()


def _deferring(
    session: Session, text: bytes, before: tuple[tuple[int, int, int], ...]
) -> tuple[bytes, tuple[tuple[int, int, int], ...], tuple[Deferred, ...], tuple[tuple[str, Span], ...]]:
    """A proven text in which the host uses results later, proven, what it keeps, the loops, and why not others."""
    from kesco.deferring import deferred, in_the_way, turns_of
    from kesco.emit.deferred import deferring, same_text
    from kesco.emit.edits import OverlapError, apply, kept, kept_through
    from kesco.emit.issue import places_before
    from kesco.emit.places import CannotInsert

    options = session.options
    if options.syncs == "keep" or session.plain_only or options.memory == "reuse" or options.fikit:
        return text, before, (), ()
    if not turns_of(session.program):
        return text, before, (), ()
    program = session.read_again(text) if text != session.text else session.program
    if not (turns := turns_of(program)):
        return text, before, (), ()
    back = places_before(session.path, session.text, before if text != session.text else ((0, len(text), 0),))
    others: tuple[tuple[str, Span], ...] = ()
    try:
        facts = session.facts_of(program, text, turns)
        pairs = tuple(zip(turns, facts, strict=True))
        session.observe("turns", pairs)
        found = deferred(pairs)
        done = {one.turn.whole for one in found}
        left = [pair for pair in pairs if pair[0].whole not in done and not pair[0].early]
        others = tuple((why, back(place)) for why, place in starmap(in_the_way, left))
        if not found:
            return text, before, (), others
        edits = deferring(program, found)
        more = apply(text, edits)
        problems = session.deferred_problems(more)
    except (CannotInsert, OverlapError, InputError) as error:
        session.observe("undeferred", error)
        return text, before, (), others
    if problems or not same_text(more, text):
        session.observe("undeferred", problems)
        return text, before, (), others
    session.observe("deferred", found)
    return more, kept_through(before, kept(text, edits)), tuple(one.placed(back) for one in found), others


def _in_files(session: Session, done: Compilation) -> Compilation:
    """What was done with a text in which there are headers, in files of their own, and with places in the user's."""
    from kesco.emit.edits import kept_through
    from kesco.ir.pieces import is_whole, parted, pieces, placed

    files = pieces(session.path, session.text)
    text, kept, copies = parted(session.text, done.text, session.options.headers)
    if not is_whole(done.text, text, copies):
        what = "the copies of headers are not what was proven"
        raise VerificationError(Diagnostic("K402", Severity.ERROR, what, Span(session.path, 0, 1, 1, 1)))

    def of_file(number: int, mine: tuple[tuple[int, int, int], ...]) -> tuple[tuple[int, int, int], ...]:
        return kept_through(kept_through(files.kept(number), done.kept), mine)

    headers = tuple(replace(one, kept=of_file(one.number, one.kept), before=files.file(one.number)) for one in copies)
    functions, found, shown = placed((done.functions, done.diagnostics, done.timelines), files.own)
    return replace(
        done,
        text=text,
        functions=functions,
        diagnostics=found,
        kept=of_file(-1, kept),
        timelines=shown,
        headers=headers,
    )


def _hooked(
    session: Session, text: bytes, before: tuple[tuple[int, int, int], ...], better: Ordered | None
) -> tuple[bytes, tuple[tuple[int, int, int], ...], tuple[Diagnostic, ...]]:
    """A proven text with hooks around its launches, what it keeps, and which launches have none (K218)."""
    from kesco.emit.edits import apply, kept, kept_through
    from kesco.emit.hooks import hooks

    read_as = session.again if text != session.text else session.program
    edits, without = hooks(read_as, text, *((session.program,) if better is None else (better.program, better.before)))
    said = tuple(
        Diagnostic("K218", Severity.REMARK, f"this launch has no hook: {why}", place) for place, why in without
    )
    return apply(text, edits), kept_through(before, kept(text, edits)), said


def _profile(options: Options) -> Costs | None:
    """The profile that is asked for; raises `UsageError` for one that cannot be read, before the compilers run."""
    if options.profile is None:
        return None
    from kesco.ir import kfikit, kprof

    path = Path(options.profile)
    return kfikit.read(path).costs if path.suffix == ".kfikit" else kprof.read(path)


def _prices(
    session: Session, profile: Costs | None, regions: tuple[Region, ...]
) -> tuple[Prices | None, tuple[Diagnostic, ...]]:
    """What operations cost, where somebody asks for it, and what is wrong with the profile."""
    if profile is None and session.options.strategy != "critical_path":
        return None, ()
    if profile is None:
        return _estimated(session, regions), ()
    from kesco import pricing

    fits = pricing.is_of(session.program, profile) or not profile.origin.sources  # a .kfikit is of no one text
    from kesco.calling import priced

    prices = priced(pricing.measured(session.program, profile), regions)
    return prices, () if fits else (pricing.stale(session.program),)


def _timelines(
    session: Session,
    known: Prices,
    regions: tuple[Region, ...],
    functions: tuple[FunctionResult, ...],
    better: Ordered | None,
) -> tuple[tuple[Timeline, ...], ...]:
    """Each function's runs in the model, serial and as it was rewritten."""
    from kesco.model.timeline import timeline

    profile = session.options.profile
    origin = f"the model of a GPU, with the times of {Path(profile).name}" if profile is not None else ESTIMATED

    def said(one: Timeline) -> Timeline:
        return replace(one, origin=origin, exact=profile is not None)

    found: list[tuple[Timeline, ...]] = []
    for one in functions:
        own = known if better is None else better.priced(known)
        runs = [timeline("serial", one.region, known) if better is None else timeline("serial", one.serial, known)]
        if one.rewritten:
            runs.append(timeline("concurrent", one.region, own, one.schedule, one.plan))
        found.append(tuple(map(said, runs)))
    return tuple(found)


def _estimated(session: Session, regions: tuple[Region, ...]) -> Prices:
    """Weights from the device code, where nothing was measured."""
    from kesco import pricing
    from kesco.analysis.device_work import device_work
    from kesco.calling import priced

    work: dict[str, int] = {}
    for text in session.device_code:
        work |= device_work(text)
    sizes = {s.operation: s.bytes for r in regions for s in r.sites if s.bytes is not None}
    return priced(pricing.of_copies(pricing.estimated(session.program, work), sizes), regions)


def _turning(
    session: Session, regions: tuple[Region, ...], options: Options, prices: Prices | None
) -> tuple[tuple[Region, ...], _Planned]:
    """The regions and the results of all functions.

    A loop whose trips are known is unrolled to see what they have in common. Where that leads to no streams it is
    followed as a loop, if then its turns run beside each other.
    """
    from kesco.in_turns import may_turn, turning

    done, by_ir, opened = _planned(session, regions, options, prices), session.by_ir, session.open
    loops = may_turn(done[1], options)
    while loops:
        session.turning = loops
        again = session.regions()
        other = _planned(session, again, options, prices)
        loops = turning(session.program, other[1]) & loops
        if loops == session.turning and sum(f.rewritten for f in other[1]) >= sum(f.rewritten for f in done[1]):
            session.observe("regions", again)
            return again, other
        loops = loops if loops < session.turning else frozenset()
    session.turning, session.by_ir, session.open = frozenset(), by_ir, opened
    return regions, done


def _planned(session: Session, regions: tuple[Region, ...], options: Options, prices: Prices | None) -> _Planned:
    """The results of all functions, the program whose text they are to be written in, and the way back from it.

    With ``--memory reuse`` that text is the user's own with allocations late and frees early, for which there are no
    prices: a profile knows the places of the user's text.
    """
    from kesco.emit.moves import moved_text
    from kesco.lifetimes import all_planned, movable
    from kesco.remarks.memory import idle

    late = options.memory == "reuse" and options.emit == "streams" and not session.program.tasks
    moves = movable(session.program, regions) if late else ()
    while moves:
        text, back = moved_text(session.text, moves)
        again = session.regions_of(text, streams=False)
        program = session.again
        functions = plan_all(program, all_planned(again, regions, moves), options)
        serial = {(r.function, n): r for n, r in numbered(regions)}
        results: list[FunctionResult] = []
        kept: list[Moved] = []
        for number, one in numbered_results(program, functions):
            before = serial.get((one.region.function, number))
            linked = before is not None and one.region.members
            before = before.linked if before is not None and linked else before
            inside = {span for _, span in before.members} | {before.span} if before is not None else set()
            mine = tuple(m for m in moves if m.function in inside)
            asked = bool(mine) and one.rewritten and not options.force
            spare = idle(mine, one.region, one.schedule, one.plan) if asked else frozenset()
            kept += [m for m in mine if m.pointer not in spare] if one.rewritten else []
            results.append(replace(one, moved=mine if one.rewritten else (), before=before))
        if len(kept) == len(moves):
            return program, tuple(results), back
        moves = tuple(kept)  # where a function stays serial, its memory does, too; and what nobody uses again
    return session.program, plan_all(session.program, regions, options, prices), lambda one: one


def _emit(program: Program, functions: tuple[FunctionResult, ...]) -> tuple[bytes, tuple[tuple[int, int, int], ...]]:
    """The text, and which stretches of the file are kept in it."""
    from kesco.emit.edits import apply, kept
    from kesco.emit.render import all_edits

    edits = all_edits(program, [rewrite(program, f) for f in functions if f.rewritten], following(functions))
    return apply(program.text, edits), kept(program.text, edits)
