"""Proves that turns of a loop may be on streams of their own, each with memory of its own.

In: a `Ring`, both regions, and the serial program. Out: pairs of operations that may run in the wrong order, and what
else speaks against it in words. Apart from the rest of the proof, which sees all turns on the same streams, with the
same memory. That holds for those turns that are, since they are turns of the loop without the others in between. What
is left to show is that turns on other streams need no order, and that memory holds in each what it did:

1. *Which memory is which*: each access of a paired operation to memory of a turn's own is one of the serial program's
   through the same parameter; no other access of the loop is to that memory.
2. *Order*: behind each turn nothing is known of the stay so far (`HappensBefore`, `apart`). What two turns both touch,
   one of them writing, memory of a turn's own aside, must be in order all the same; and what the host had waited for
   must be complete where it looks. Where turns of one number are in order (`lanes`), this is asked of all that is done
   in the loop around them, and of turns of different numbers.
3. *Values*: memory that a turn takes, each turn of the serial program allocated, with the same size. A buffer in two
   places begins as two copies. In each turn that begins, some operations write the same bytes of it each time, whatever
   memory holds: they are told the same, and what their kernels do depends on nothing else. Behind all of these stands
   whatever reads the buffer, and what writes it otherwise, and that only where a copy or memset has written all first.
   So the place of the last turn holds what the serial program's buffer does. The first turn that has another value of
   what ``kesco_turn`` is given stays there, and so do all behind it.
4. All work of the loop is given the same as in the serial program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from kesco.ir import program as ir
from kesco.ir.access import Access, AccessMode, Buffer, BufferKind, argument_of, context_of, through_parameter
from kesco.ir.failures import runs_at_exit
from kesco.ir.flow import Mark, Region, Role, Site, SiteKind
from kesco.ir.kernels import writes_no_more
from kesco.ir.transfers import COPIES, FILLS
from kesco.ir.turns import TURNED
from kesco.source import Span
from kesco.verify.conflicts import bits, hazards
from kesco.verify.earlier import those_before
from kesco.verify.happens_before import HappensBefore
from kesco.verify.match import Matching, is_work, loops, plain_label
from kesco.verify.rings import FILLED, Ring, leaves_turn, lent_in, on_each_way
from kesco.verify.sources import word_of
from kesco.verify.values import issued_in
from kesco.verify.verdict import Rule, Unordered

_Node = ir.Launch | ir.Call | None
_Touch = tuple[int, Access, _Node]  # the number of its statement, what it touches, and by what
_Awaited = tuple[Mapping[int, int], Mapping[int, int], Collection[int]]
_FORBIDDEN = (Role.JOIN, Role.EXIT, Role.LEGACY, Role.CAPTURE, Role.REPLAY, Role.STREAM_SYNC, Role.EVENT_SYNC)


def as_waits(serial: Region, concurrent: Region, rings: Sequence[Ring]) -> Region:
    """The serial region in which the host just waits where memory of a turn's own is freed."""
    ends: set[int] = set()
    for ring in rings:
        names = {b.name for s in concurrent.sites for b in _own_buffers(s, ring.taken)}
        inside = _inside(serial, _counterpart(serial, concurrent, ring.key))
        ends |= {
            s.number for s in inside if s.kind is SiteKind.FREE and s.accesses and s.accesses[0].buffer.name in names
        }

    def waits(site: Site) -> Site:
        if site.number not in ends:
            return site
        return replace(site, role=Role.DEVICE_SYNC, kind=SiteKind.SYNC, label="cudaDeviceSynchronize", accesses=())

    return replace(serial, sites=tuple(map(waits, serial.sites))) if ends else serial


class Beside:
    """The proof of one ring."""

    def __init__(
        self, ring: Ring, serial: Region, concurrent: Region, matching: Matching, awaited: _Awaited, before: ir.Program
    ) -> None:
        self.ring, self.serial, self.concurrent, self.matching = ring, serial, concurrent, matching
        self.before, self._awaited = before, awaited
        theirs = loops(serial, concurrent, matching)
        self.loop = theirs.get(ring.key, "")
        self.lanes = tuple((theirs.get(key, ""), counter) for key, counter in ring.lanes)
        self.sites = _inside(concurrent, ring.key)
        turns = [one.number for key, _ in ring.lanes for one in _inside(concurrent, key)]
        plain = (s for s in concurrent.sites if s.mark is None and s.number not in turns)
        self.between = [s for s in plain if ring.is_around(s.span)]
        self.same: dict[str, str] = {}  # memory of a turn's own → what it is in the serial program
        self.wrong: list[str] = list(ring.problems)
        self._find_memory()

    def problems(self) -> Iterator[str]:
        """What speaks against it, in words."""
        where = f"the loop in line {self.ring.loop.span.line}"
        if not self.loop:
            yield f"{where} is not one of the serial program, turn by turn"
            return
        for site in self.sites:
            forbidden = site.role in _FORBIDDEN and not self._ends(site)
            if forbidden or site.foreign or (is_work(site) and site.stream is None):
                yield f"'{site.label}' ({site.span}) is in a loop whose turns overlap"
            if any(a.buffer.kind in (BufferKind.UNKNOWN, BufferKind.ORDER) for a in site.accesses):
                yield f"'{site.label}' ({site.span}) may touch any memory, in a loop whose turns overlap"
        for site in self.between:
            vague = any(a.buffer.kind in (BufferKind.UNKNOWN, BufferKind.ORDER) for a in site.accesses)
            of_host = site.role is Role.HOST and not (site.foreign or vague)
            if not of_host and not self._ends(site):
                yield f"'{site.label}' ({site.span}) stands between turns that overlap"
        if self.ring.places and _ends_in(self.before, self.loop) and runs_at_exit(self.before):
            yield f"{where} may end the process, and code that runs then may look at buffers in two places"
        yield from (f"{where}: {one}" for one in (*self.wrong, *self._values(), *self._sizes(), *self._given()))

    def _ends(self, site: Site) -> bool:
        """Whether the function is left there, or its turns end since it will be."""
        ends = site.role is Role.DEVICE_SYNC and plain_label(site) == TURNED
        return self.ring.left > 0 and (site.role is Role.EXIT or ends)

    # ---- which memory is which --------------------------------------------------------------------------------------

    def _find_memory(self) -> None:
        calls = {**self.ring.places, **self.ring.taken}
        for site in self.sites:
            other = self._serial_site(site)
            mine = [a for a in site.accesses if any(a.buffer == b for b in _own_buffers(site, calls))]
            for access in mine:
                alike = [a for a in other.accesses if _way(a) == _way(access)] if other else []
                here = [a for a in site.accesses if _way(a) == _way(access)]
                known = self.same.setdefault(access.buffer.key, alike[0].buffer.key) if len(alike) == 1 else ""
                if len(here) != 1 or len(alike) != 1 or known != alike[0].buffer.key:
                    self.wrong.append(f"'{access.buffer.name}' of a turn is not known to be one buffer")
        taken = set(self.same.values())
        if len(taken) != len(self.same):
            self.wrong.append("two of the turn's own buffers are one")
        for site in self.sites:
            other = self._serial_site(site)
            ours = sorted(self.same[a.buffer.key] for a in site.accesses if a.buffer.key in self.same)
            theirs = sorted(a.buffer.key for a in other.accesses if a.buffer.key in taken) if other else []
            if ours != theirs:
                self.wrong.append(f"'{site.label}' does not use the memory of its turn")
            if len(site.accesses) != (len(other.accesses) if other else 0):  # the first place is the buffer itself
                self.wrong.append(f"'{site.label}' may use a buffer that is in two places")

    def _serial_site(self, site: Site) -> Site | None:
        number = self.matching.to_serial[site.number]
        return self.serial.sites[number] if number >= 0 else None

    # ---- order ------------------------------------------------------------------------------------------------------

    def unordered(self) -> Iterator[Unordered]:
        """The pairs of two turns that may run in the wrong order."""
        apart = [key for key, _ in self.ring.lanes] or [self.ring.key]
        facts = HappensBefore(self.concurrent, *self._awaited, loop=self.ring.key, apart=apart).run()
        sites = self.concurrent.sites
        serial = [self._serial_site(s) for s in sites]
        theirs = {*self.same.values()}  # a buffer of the one program may have the name of another one's in the other
        both = (
            [self._rest(s.accesses if s else (), theirs) for s in serial],
            [self._rest(s.own, self.same) for s in sites],
        )
        across = [
            a | b
            for a, b in zip(
                those_before(sites, both[0], self.loop, self.lanes),
                those_before(sites, both[1], self.ring.key, self.ring.lanes),
                strict=True,
            )
        ]
        work = sum(1 << s.number for s in sites if is_work(s))
        for site in (s for s in (*self.sites, *self.between) if s.number in facts):
            other = serial[site.number]
            rule, bad = Rule.CONFLICT, facts[site.number].far & across[site.number]
            if not is_work(site):
                looks = site.looks or (other is not None and other.looks)
                rule, bad = Rule.HOST, facts[site.number].late & (work if looks else across[site.number])
            for first in bits(bad):
                buffer, kinds = hazards(both[1][first], both[1][site.number])
                yield Unordered(sites[first], site, buffer, kinds, (first, site.number), rule)

    def _rest(self, accesses: tuple[Access, ...], mine: Collection[str]) -> tuple[Access, ...]:
        return tuple(a for a in accesses if a.buffer.key not in mine)

    # ---- values -----------------------------------------------------------------------------------------------------

    def _sizes(self) -> Iterator[str]:
        """What a turn takes is what the serial program allocates in it."""
        found = _loop(self.before, self.loop)
        made = (
            {n.operation: n for n in ir.walk(found) if isinstance(n, ir.Call) and n.name == "cudaMalloc"}
            if found
            else {}
        )
        for operation, call in self.ring.taken.items():
            keys = {o for key, o in self.same.items() if _operation_of(key) == operation}
            theirs = [made.get(_operation_of(key)) for key in keys]
            if len(theirs) != 1 or theirs[0] is None:
                yield "what a turn takes is not allocated in it by the serial program"
            elif issued_in(theirs[0].arguments[1]) != issued_in(call.arguments[3]):
                yield "what a turn takes may have another size than in the serial program"

    def _given(self) -> Iterator[str]:
        found = _loop(self.before, self.loop)
        if found is None or issued_in(found) != issued_in(self.ring.loop):
            yield "its work is not given the same as in the serial program"

    def _values(self) -> Iterator[str]:
        kept = {key for key in self.same if _operation_of(key) in self.ring.places}
        for operation, variable in self.ring.places.items():
            if operation not in {_operation_of(key) for key in kept}:
                yield f"'{variable.name}' of a turn is used by nothing"
        nodes = {n.operation: n for n in ir.walk(self.ring.loop) if isinstance(n, (ir.Launch, ir.Call))}
        fixed = _Fixed(self.ring)
        for key in sorted(kept):
            always: list[_Touch] = []
            rest: list[_Touch] = []
            for site in self.sites:
                accesses = [a for a in site.accesses if a.buffer.key == key]
                node = nodes.get(site.operation)
                for access in accesses:
                    at = self._statement(node)
                    sure = all(a.mode is AccessMode.WRITE for a in accesses) and not site.iterations
                    sure = sure and node is not None and self._is_same(node, access, fixed)
                    sure = sure and at >= 0 and on_each_way(self.ring.statements[at], node)
                    (always if sure else rest).append((at, access, node))
            name = next(a.buffer.name for s in self.sites for a in s.accesses if a.buffer.key == key)
            last = max((at for at, _, _ in always), default=-1)
            if last < 0 or any(map(leaves_turn, self.ring.statements[self.ring.begins : last + 1])):
                yield f"it is not known that the same of '{name}' is written in each turn"
            elif not all(one[0] > last and self._is_within(one, always) for one in rest):
                yield f"'{name}' may be used before what the turn writes first"

    def _statement(self, node: ir.Launch | ir.Call | None) -> int:
        found = (n for n, s in enumerate(self.ring.statements) if any(one is node for one in ir.walk(s)))
        return next(found, -1)

    def _is_within(self, touch: _Touch, always: list[_Touch]) -> bool:
        """Whether what is only read, or written within what was written first: by a copy or memset, or the same."""
        _, access, node = touch
        if AccessMode.WRITE not in access.mode:
            return True
        length = self._length(access.buffer)
        wholes = (a.bytes for _, a, _ in always if not a.why.startswith("parameter") and a.bytes is not None)
        return any(
            one == access.bytes or (one.low.bounds() == (0, 0) and length is not None and one.high == length)
            for one in wholes
        ) or any(self._is_no_more((one, by), (access, node)) for _, one, by in always)

    def _is_no_more(self, first: tuple[Access, _Node], other: tuple[Access, _Node]) -> bool:
        """Whether a launch writes nothing but what another one of the same turn has."""
        given = []
        for access, node in (first, other):
            if not isinstance(node, ir.Launch):
                return False
            numbers = [n for n in range(len(node.arguments)) if access.why == through_parameter(n)]
            given += [(node, n) for n in numbers]
        return len(given) == 2 and writes_no_more(self.serial.kernels.writes, given[0], given[1], self._kept)

    def _kept(self, one: ir.Expr) -> str:
        """A variable that nothing changes from where a turn begins on."""
        if not isinstance(one, ir.Name) or one.variable.type.volatile:
            return ""
        if one.variable.key in {place.key for place in self.ring.places.values()}:
            return one.variable.key  # it is set where the turn begins, and goes to work alone
        inside = [n for s in self.ring.statements[self.ring.begins :] for n in ir.walk(s)]
        changed = {key for n in inside if isinstance(n, ir.Assign) for key in ir.names(n.target)}
        changed.update(lent_in(self.ring.function.body, FILLS))
        own = one.variable.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER)
        return one.variable.key if own and one.variable.key not in changed else ""

    def _length(self, buffer: Buffer) -> object:
        key = self.same[buffer.key]
        return next((a.buffer.length for s in self.serial.sites for a in s.accesses if a.buffer.key == key), None)

    def _is_same(self, node: ir.Launch | ir.Call, access: Access, fixed: _Fixed) -> bool:
        """Whether an operation writes the same bytes through an argument in turns that are alike."""
        if isinstance(node, ir.Call) and word_of(node) not in COPIES and word_of(node) not in FILLED:
            told = self.ring.within.deciding(node, argument_of(access.why), self.serial.kernels.steering)
            return told is not None and all(map(fixed.expression, told))
        if isinstance(node, ir.Call):
            deciding_call = node.arguments[0:3:2]
            return len(deciding_call) == 2 and all(map(fixed.expression, deciding_call))
        index = next((n for n in range(len(node.arguments)) if access.why == through_parameter(n)), -1)
        deciding = {index}
        for kernel in node.kernel.candidates:
            known = self.serial.kernels.steering.get(kernel, {}).get(index)
            if known is None:
                return False
            deciding |= known
        if not all(0 <= n < len(node.arguments) and node.arguments[n] != ir.DEFAULT for n in deciding):
            return False  # a default argument may be another one each time
        given = [node.arguments[n] for n in deciding]
        pointers = sum(any(_is_pointer(n) for n in ir.walk(one)) for one in given)
        return (
            bool(node.kernel.candidates)
            and pointers == 1
            and all(map(fixed.expression, (*given, *node.configuration[:3])))
        )


class _Fixed:
    """Whether an expression has one value in turns that are alike, where a pointer of the turn's own counts as one."""

    def __init__(self, ring: Ring) -> None:
        inside = list(ir.walk(ring.loop))
        targets = (n.target for n in inside if isinstance(n, ir.Assign))
        assigned = {key for one in targets for key in ir.named_in(one)}
        assigned.update(lent_in(ring.function.body))
        declared = {n.variable.key for n in inside if isinstance(n, ir.Declare)}
        self._changing = (assigned | declared) - ring.alike
        self._calm, self._within, self._loop = ring.calm, ring.within, ring.loop
        self._begins: dict[str, ir.Expr] = {}
        for at, one in enumerate(ring.statements):
            if isinstance(one, ir.Declare) and one.initial is not None and one.variable.key not in assigned:
                names = {n.variable.key for n in ir.walk(one.initial) if isinstance(n, ir.Name)}
                if at >= ring.begins or names.isdisjoint(assigned):  # what it was made of may be another value by then
                    self._begins[one.variable.key] = one.initial

    def expression(self, one: ir.Expr | ir.Stmt) -> bool:
        variable = ir.named(one) if isinstance(one, (ir.Name, ir.Select)) else None
        if variable is not None:
            if variable.constant is not None or _is_pointer(one):
                return True
            whole = variable.type.shape is ir.Shape.INTEGER or variable.type.spelling.removeprefix("const ") == "dim3"
            own = self._calm or variable.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER)
            own = own and not variable.type.volatile
            own = own and not (variable.key == f"this->{variable.name}" and self._within.is_lent(variable.name))
            begins = self._begins.get(variable.key)
            same = variable.key not in self._changing or (begins is not None and self.expression(begins))
            return whole and own and same
        if self._calm and self._within.stays(self._loop, one):
            return True
        if not self._within.is_reckoned(one) and one != ir.DEFAULT:
            return False
        return all(map(self.expression, ir.children(one)))


def _is_pointer(node: ir.Expr | ir.Stmt) -> bool:
    return isinstance(node, ir.Name) and node.variable.type.shape is ir.Shape.POINTER


def _way(access: Access) -> tuple[str, AccessMode, str]:
    """Through what an access goes, in which call of its function: these are met in the same order in both programs."""
    return access.why, access.mode, context_of(access.buffer)


def _own_buffers(site: Site, calls: Mapping[int, object]) -> list[Buffer]:
    return [a.buffer for a in site.accesses if _operation_of(a.buffer.key) in calls]


def _operation_of(key: str) -> int:
    """The call that allocates a buffer; negative for other memory."""
    kind, _, rest = key.partition(":")
    number = rest.partition(":")[0]
    return int(number) if kind == "alloc" and number.isdigit() else -1


def _counterpart(serial: Region, concurrent: Region, key: str) -> str:
    both = dict(zip(concurrent.loops, serial.loops, strict=False)) if len(serial.loops) == len(concurrent.loops) else {}
    return both.get(key, "")


def _span(region: Region, key: str) -> Span | None:
    return next((s.span for s in region.sites if s.mark is Mark.ENTERS and s.loop == key), None)


def _inside(region: Region, key: str) -> list[Site]:
    """The sites in a loop, without its marks."""
    span = _span(region, key)
    sites = (s for s in region.sites if s.mark is None)
    return [] if span is None else [s for s in sites if span.start <= s.span.start < span.end]


def _loop(program: ir.Program, key: str) -> ir.Loop | None:
    nodes = (n for f in program.functions if f.here for n in ir.walk(f.body) if isinstance(n, ir.Loop))
    return next((n for n in nodes if str(n.number) == key), None)


def _ends_in(program: ir.Program, key: str) -> bool:
    """Whether a loop, or a function of the file that it calls, may call ``exit``."""
    functions = {f.key: f for f in program.functions}
    work: list[ir.Stmt | None] = [_loop(program, key)]
    seen: set[str] = set()
    for body in work:
        for call in (n for n in ir.walk(body) if isinstance(n, ir.Call)) if body is not None else ():
            if word_of(call) in ("exit", "quick_exit"):
                return True
            if call.key in functions and call.key not in seen:
                seen.add(call.key)
                work.append(functions[call.key].body)
    return False
