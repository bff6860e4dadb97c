"""Schedules and plans → the edited text of the file.

In: the program and, for each function that is rewritten, its region, schedule and plan. Out: the new text. This is the
only stage that writes CUDA.

1. Number the events of the whole file. 2. For each movable operation: state its stream, wait before, record behind.
3. Join before whatever may look at the default stream. 4. Fetch the streams before the first statement that needs them.
5. Put the prologue before the first function that uses it. What would need an insertion where none is possible makes
the function serial, with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from kesco.emit.comments import wait_reason, who_waits
from kesco.emit.edits import Edit, newline_of
from kesco.emit.fences import fence_lines, fetched_again
from kesco.emit.following import follow, given_stream, stated, wait_behind
from kesco.emit.handles import add_handles
from kesco.emit.holds import add_holds
from kesco.emit.iterations import Trip, condition_text, number_text, only_in, truth_text
from kesco.emit.joins import add_joins
from kesco.emit.leaving import off_line, usual_exits, watch_line
from kesco.emit.moves import renamed
from kesco.emit.names import changed, free_name, macros
from kesco.emit.needs import closed_main, main_edit, needed_parts, streams_of
from kesco.emit.paces import pace_edits, paces_of
from kesco.emit.places import (
    CannotInsert,
    Rewrite,
    around,
    as_operation,
    at_entry,
    fetch,
    fetch_place,
    filled,
    line_end,
    lines_before,
    marks_of,
    prologue_place,
    streams_call,
    taken_out,
    tried,
)  # fmt: skip
from kesco.emit.prefetches import written
from kesco.emit.prologue import EMPTY, OUR_NAMES, prologue
from kesco.emit.ranges import asked, count_edits
from kesco.emit.replays import loop_head, wrapped
from kesco.emit.rings import add_ends, begun, turn_edits
from kesco.emit.scratch import scratch_edits, scratch_in
from kesco.emit.zeroes import memset, waits
from kesco.ir import program as ir
from kesco.ir.flow import Held, Region, Role, Site, SiteKind
from kesco.ir.transfers import FETCH, FETCHED, OWN, SEND, SENT
from kesco.source import Span

_SENT = f"{SENT}();  // kesco: until the host's memory that is copied to the device has been read"


def all_edits(program: ir.Program, rewrites: Iterable[Rewrite], following: Collection[Region] = ()) -> list[Edit]:
    """The edits that make the concurrent program, in which functions are `following` their callers' streams.

    Raises `CannotInsert` for a function that cannot be edited.
    """
    chosen = tuple(rewrites)
    if not chosen:
        return []
    events = stretches = replays = marks = paces = 0
    edits, name = list[Edit](), free_name(program)
    for rewrite in chosen:
        writer = _Writer(program, rewrite, events, name, stretches, paces, replays, marks)
        edits += writer.edits()
        paces += len(writer.paces)
        events += writer.events
        stretches += len(writer.stretches)
        replays += len(rewrite.plan.replays)
        marks += len(marks_of(rewrite))
    parts, newline = needed_parts(program, chosen, following, stretches, replays, paces), newline_of(program.text)
    text = prologue(streams_of(chosen), events, parts, macros(program)).replace("\n", newline)
    main = closed_main(program, chosen)
    edits += (edit for region in following for edit in follow(program, region))
    edits += (*scratch_edits(scratch_in(chosen)), *(main_edit(program, one) for one in main))
    places = {*(one.span for one in main), *(one.span for one in following)}
    tops = [function.top for r in chosen for function in (r.function, *r.members)]
    tops += [f.top for f in program.functions if f.here and f.span in places]
    place = prologue_place(program.text, min(tops))
    before = "" if place == 0 or program.text[place - 1 : place] == b"\n" else newline
    edits.append(Edit(place, place, before + text + newline, -9))
    return edits


def check(program: ir.Program, rewrite: Rewrite) -> str:
    """Why the function cannot be edited as planned, or an empty text."""
    writer = _Writer(program, rewrite, 0, free_name(program))
    try:
        writer.edits()
    except CannotInsert as reason:
        return str(reason)
    macro = changed((EMPTY, *writer.inserted), macros(program))
    if macro:
        return f"the macro '{macro}' has a name that the inserted lines need"
    if taken := OUR_NAMES.search(program.text):
        return f"the file has a name of its own that kesco inserts: {taken[0].decode()}"
    headers = program.header_names
    other = next((name for name in headers if OUR_NAMES.fullmatch(name.encode())), "")
    return f"a header has a name of its own that kesco inserts: {other}" if other else ""


class _Writer:
    """Collects the edits of one function."""

    def __init__(
        self, program: ir.Program, rewrite: Rewrite, first_event: int, name: str, first_stretch: int = 0, pace: int = 0,
        first_replay: int = 0, first_mark: int = 0,
    ) -> None:  # fmt: skip
        self.rewrite, self.name = rewrite, name
        self.program = replace(program, operations=filled(program, rewrite, *map(as_operation, rewrite.prefetches)))
        self.region, self.plan = rewrite.region, rewrite.plan
        self.streams = rewrite.schedule.as_dict()
        by_operation: dict[int, list[Site]] = {}
        for site in self.region.sites:
            if site.number in self.streams:
                by_operation.setdefault(site.operation, []).append(site)
        self.by_operation = by_operation
        self.waiting: dict[int, list[str]] = {}
        for wait in self.plan.waits:
            self.waiting.setdefault(wait.source, []).append(self.region.sites[wait.target].label)
        stay = (s for s in self.region.sites if s.role is Role.DEVICE_SYNC and s.number not in self.plan.needless)
        self.awaited = {(s.operation, s.iterations) for s in stay}
        recorded = (s.number for sites in by_operation.values() for s in sites if s.number in {*self.plan.events})
        self.event_of = {site: event for event, site in enumerate(recorded, first_event)}
        self.events = len(self.event_of)
        self.stretches: dict[int, int] = {}  # operation, or -1 for the entry → number in the file
        self.paces: tuple[Span, ...] = ()
        self.first_stretch, self.first_mark, self.pace = first_stretch, first_mark, pace
        self.replays = tuple(enumerate(self.plan.replays, first_replay))
        self.heads: dict[int, list[str]] = {}  # replay → lines before it
        self.inserted: list[str] = []  # all new text, without the user's own
        self.before: dict[int, list[str]] = {}  # operation → lines
        self.after: dict[int, list[str]] = {}
        self.at_end, self.fetched_then = list[str](), list[str]()

    def edits(self) -> list[Edit]:
        """All edits of the function."""
        self._fences()
        self._waits()
        self._records()
        lines = (self.before, self.after)
        add_holds(lines, self.rewrite, self.by_operation, self.name, self.first_mark, self._stream_text)
        add_handles(lines, self.program, self.region, self.streams, lambda n: self._stream_text(self.by_operation[n]))
        self.at_end += add_joins(self.before, self.program, self.rewrite, self.name)
        self._stretches()
        self.paces = paces_of(self.program, self.rewrite, self._needed())
        self._usual_exits()
        result = written(
            self.program,
            self.rewrite.prefetches,
            self.name,
            lambda operation: self._stream_text(self.by_operation[operation]),
            self.before,
            self.after,
        )
        for operation, sites in self.by_operation.items():
            if not sites[0].added:
                result += self._stream_edits(self.program.operations[operation], sites)
        lines_of = (line for each in (self.before, self.after) for lines in each.values() for line in lines)
        lanes = add_ends(self.before, self.rewrite.turns, self.name)
        counted = asked(self.program, self._functions(), [*(e.text for e in result), *lines_of, *lanes])
        result += count_edits(self.program, counted, self.before, begun(self.rewrite.turns))
        by_statement: dict[tuple[int, int], list[int]] = {}
        for operation in sorted(self.before.keys() | self.after.keys()):
            one = self.program.operations[operation]
            if one.statement is None:
                raise CannotInsert(f"line {one.span.line}: {one.stuck or 'no statement stands around it'}")
            by_statement.setdefault((one.statement.start, one.statement.end), []).append(operation)
        for place, operations in by_statement.items():
            self._share(operations)
            before = [line for o in operations for line in self.before.get(o, ())]
            after = [line for o in operations for line in self.after.get(o, ())]
            result += around(self.program, place, operations[0], before, after)
        result += renamed(self.program, self.region)
        result += turn_edits(self.program, self.rewrite.turns, self.name)
        result += pace_edits(self.program, self.paces, self.region.span, self.name, self.pace)
        if self.rewrite.zeroes is not None:
            result += waits(self.program, self.rewrite.zeroes.behind)
        if (sends := self.rewrite.sends) is not None:
            result += [lines_before(self.program.text, at, [_SENT]) for at in sends.before]
            result += [lines_before(self.program.text, at, [_SENT], inside=True) for at in sends.ends]
        gone = dict.fromkeys(self.region.sites[number].operation for number in self.plan.needless)
        result += [taken_out(self.program, one) for one in gone if one not in self.by_operation]
        if self.at_end:
            brace = self.rewrite.function.span.end - 1
            if self.program.text[brace : brace + 1] != b"}":
                raise CannotInsert(f"line {self.region.span.line}: its closing brace is not written as such")
            result.append(lines_before(self.program.text, brace, self.at_end, inside=True))
        for function in self._functions():
            operations = self._needed_in(function)
            if operations or not self.rewrite.members:
                part = replace(self.rewrite, function=function)
                pace = self.pace if self.region.span in self.paces else None
                more = [*([watch_line(self.name)] if self.rewrite.watched else []), *self.fetched_then]
                result += fetch(self.program, part, self.name, operations, self.stretches.get(-1), pace, more)
        if self.region.guards:
            result.append(at_entry(self.program, self.rewrite, self.name))
        for number, replay in self.replays:
            self.heads.setdefault(number, []).extend(loop_head(self.program.text, replay, number, self.name))
        copied = {one.macro.end for one in self.program.operations if one.macro is not None}  # the user's own, again
        self.inserted = [e.text for e in result if e.start not in copied]
        self.inserted += (line for lines in self.heads.values() for line in lines)
        if (fetches := self.rewrite.fetches) is not None:  # in the program's own words but for the name
            self.inserted.append(f"{FETCHED}();")
            line = f"{fetches.wait}  // kesco: until what is copied to the host's memory is there"
            result += [lines_before(self.program.text, at, [line]) for at in fetches.before]
            result += [lines_before(self.program.text, at, [line], inside=True) for at in fetches.ends]
        return wrapped(self.program, result, self.replays, self.heads)

    def _functions(self) -> tuple[ir.Function, ...]:
        return (self.rewrite.function, *self.rewrite.members)

    def _share(self, operations: list[int]) -> None:
        """Operations of one statement share what stands around it, which must be right for each."""
        every, first = self.program.operations, self.program.operations[operations[0]]
        line, moved = first.span.line, [o for o in operations if o in self.by_operation]
        if len(moved) > 1:
            raise CannotInsert(f"line {line}: two operations share one statement")
        calls = [every[o].span for o in operations if o not in moved and self.before.get(o)]
        beside = [every[o].span for o in self.by_operation if every[o].statement == first.statement]
        if calls and (moved or any(c.start < b.start or b.end < c.end for c in calls for b in beside)):
            raise CannotInsert(f"line {line}: a call in the same statement needs its own place")

    # ---- text ---------------------------------------------------------------------------------------------------

    def _stream_text(self, sites: list[Site]) -> str:
        index = number_text({s.iterations: self.streams[s.number] for s in sites})
        return f"{self.name}->stream[{index}]"

    def _stream_edits(self, operation: ir.Operation, sites: list[Site]) -> list[Edit]:
        if operation.zeroing is not None:
            return [memset(self.program, operation, self._stream_text(sites))]
        if sites[0].kind is SiteKind.LIBRARY:
            return []  # its handle has the stream
        if sites[0].kind is SiteKind.CALL:
            if line := wait_behind(truth_text({s.iterations: self._is_waited_for(s) for s in sites})):
                self.after.setdefault(operation.number, []).insert(0, line)
            return given_stream(self.program, operation, self._stream_text(sites), later=sites[0].later)
        if operation.stream_text is None:
            raise CannotInsert(f"line {operation.span.line}: {operation.stuck or 'its stream cannot be stated'}")
        text, name = self._stream_text(sites), ""
        waits = truth_text({s.iterations: self._is_waited_for(s) for s in sites})
        text += "" if waits == "false" else f", {waits}"
        if operation.rename is not None and sites[0].held is not None:
            sends = self.rewrite.sends
            sent = sends is not None and operation.number in sends.operations
            own = OWN[operation.rename[1].removesuffix("Async")]
            name = FETCH if sites[0].held is Held.LATER else SEND if sent else own
        return stated(self.program, operation, text, name)

    def _is_waited_for(self, site: Site) -> bool:
        """Whether the host also waits for the device where it waits for a copy."""
        return (site.held is not None or site.holds) and (site.operation, site.iterations) in self.awaited

    def _waits(self) -> None:
        """One line for all waits of an operation for another, where one condition and one number fit them."""
        groups: dict[tuple[int, int, int], dict[Trip, tuple[int, str]]] = {}
        for wait in self.plan.waits:
            source, target = self.region.sites[wait.source], self.region.sites[wait.target]
            entry = (self.event_of[wait.source], wait_reason(self.region, wait))
            rank = 0  # of several executions of one operation that this one waits for
            while target.iterations in groups.get((target.operation, source.operation, rank), ()):
                rank += 1
            groups.setdefault((target.operation, source.operation, rank), {})[target.iterations] = entry
        for (operation, _, _), trips in groups.items():
            stream = self._stream_text(self.by_operation[operation])
            lines = self.before.setdefault(operation, [])
            numbers = {trip: event for trip, (event, _) in trips.items()}
            text, condition = number_text(numbers), ""
            if len(trips) < len(self.by_operation[operation]) or "?" in text:
                some = self._for_some(operation, numbers)
                if some is None:
                    for trip, (event, reason) in trips.items():
                        lines.append(f"if ({condition_text(trip)}) " + self._wait_line(stream, str(event), reason))
                    continue
                condition, text = f"if ({some[0]}) ", some[1]
            more = " and so on" if len({reason for _, reason in trips.values()}) > 1 else ""
            lines.append(condition + self._wait_line(stream, text, next(iter(trips.values()))[1] + more))

    def _for_some(self, operation: int, events: dict[Trip, int]) -> tuple[str, str] | None:
        """One condition and one expression for the events of some iterations, if both are short."""
        among = [s.iterations for s in self.by_operation[operation]]
        if not all(among):
            return None
        condition, text = only_in(events, among), number_text(events)
        return (condition, text) if condition and "?" not in text else None

    def _wait_line(self, stream: str, event: str, reason: str) -> str:
        return f"cudaStreamWaitEvent({stream}, {self.name}->done[{event}], 0);  // kesco: {reason}"

    def _records(self) -> None:
        for operation, sites in self.by_operation.items():
            events = {s.iterations: self.event_of[s.number] for s in sites if s.number in self.event_of}
            if not events:
                continue
            stream = self._stream_text(sites)
            waiting = {s.iterations: self.waiting.get(s.number, []) for s in sites}
            who = who_waits({label for labels in waiting.values() for label in labels})
            lines = self.after.setdefault(operation, [])
            text = number_text(events)
            if len(events) == len(sites) and "?" not in text:
                lines.append(f"cudaEventRecord({self.name}->done[{text}], {stream});  // kesco: {who}")
                continue
            some = self._for_some(operation, events)
            each = [(condition_text(t), str(e), who_waits(waiting[t])) for t, e in events.items()]
            for condition, event, who_here in [(*some, who)] if some is not None else each:
                guard = f"if ({condition}) " if condition else ""
                lines.append(f"{guard}cudaEventRecord({self.name}->done[{event}], {stream});  // kesco: {who_here}")

    def _fences(self) -> None:
        starts = {o: p.statement.start for o in self.by_operation if (p := self.program.operations[o]).statement}
        first = min(starts.values(), default=-1)
        sites, fences = self.region.sites, {*self.plan.fences}
        begins = () if self.region.guards else self.plan.stretches
        fetched = fetch_place(self.program, self.rewrite, self._needed()) if begins or fences else -1
        others = {n for n in begins if n and self._may_begin(sites[n].operation, fetched)}
        again = fetched_again(self.program, self.region, others)
        if again and fetched < 0:
            fetched = fetch_place(self.program, self.rewrite, self._needed())
        line = fence_lines(self.name, streams_call(self.region, self.name))
        for site in (sites[number] for number in sorted({*again, *fences})):
            if site.number == 0:
                self.fetched_then += line[1:]
                continue
            fresh = site.number not in again or starts.get(site.operation) == first == fetched
            within = next((n for n, replay in self.replays if site.number in replay.sites), None)
            lines = self.before.setdefault(site.operation, []) if within is None else self.heads.setdefault(within, [])
            lines += [x for x in line[fresh : None if site.number in fences else 1] if x not in lines]

    def _usual_exits(self) -> None:
        """Where a macro may leave early, the other exits say that they are none of these."""
        if not self.rewrite.watched:
            return
        fetched = fetch_place(self.program, self.rewrite, self._needed())
        if (within := tried(self.program, self.rewrite, fetched)) and not isinstance(within.body[-1], ir.Leave):
            if within.end < 0:
                raise CannotInsert(f"line {within.span.line}: nothing can be put where this block ends")
            self.before.setdefault(within.end, []).append(off_line(self.name))
        for site in usual_exits(self.program, self.rewrite, fetched):
            at_end = site.label.partition("#")[0] == "end"
            lines = self.at_end if at_end else self.before.setdefault(site.operation, [])
            if off_line(self.name) not in lines:
                lines.append(off_line(self.name))

    def _needed(self) -> tuple[int, ...]:
        """The operations before which the streams must have been fetched."""
        return (*self.by_operation, *self.before)

    def _needed_in(self, function: ir.Function) -> list[int]:
        """Those of one function; where only its end needs them, the calls of functions that are a part of it."""
        all_of_them = self.program.operations
        inside = [o for o in self._needed() if function.span.start <= all_of_them[o].span.start < function.span.end]
        if not inside and self.at_end and function is self.rewrite.function:
            calls = (s.operation for s in self.region.sites if s.role is Role.HOST and s.operation >= 0)
            inside = [o for o in calls if function.span.start <= all_of_them[o].span.start < function.span.end]
        return inside

    def _stretches(self) -> None:
        """Where a stretch of work begins and no line can be put, none begins."""
        if not self.plan.stretches:
            return
        fetched = fetch_place(self.program, self.rewrite, self._needed())
        for number in self.plan.stretches:
            operation = self.region.sites[number].operation if number else -1
            if number and not self._may_begin(operation, fetched):
                continue
            self.stretches[operation] = self.first_stretch + len(self.stretches)
        if len(self.stretches) == 1 and -1 in self.stretches:
            self.stretches.clear()
        for number in self.plan.pauses if self.stretches else ():
            operation = self.region.sites[number].operation
            if self._may_begin(operation, fetched):
                line = f"{self.name} = kesco_stretch({self.name}, -1);  // kesco: what follows need not be timed"
                self.after.setdefault(operation, []).append(line)
        way = "on one stream, or as a graph," if self.plan.replays else "on one stream"
        for operation, begins in self.stretches.items():
            if operation >= 0:
                line = f"{self.name} = kesco_stretch({self.name}, {begins});  // kesco: {way} while that is faster"
                self.after.setdefault(operation, []).append(line)

    def _may_begin(self, operation: int, fetched: int) -> bool:
        """Whether a line that begins a stretch can be put behind an operation; an exception's way has none."""
        if operation < 0:
            return False
        one = self.program.operations[operation]
        place = one.statement
        if place is None or place.start < fetched or one.within or one.stuck or operation in self.stretches:
            return False
        text = self.program.text
        rest = text[place.end : line_end(text, place.end)]
        return text[place.start : place.start + 6] != b"return" and not rest.rstrip().endswith(b"\\")
