"""Which copies to the device are read in the background, and where the host waits until they are: ``sends(…)``.

In: a function, its copies to the device that are on streams, and those to the host, which wait by themselves. Out: the
`Sends`. A stage of its own, behind the plan: streams and events are the same either way, since such a copy is an
operation of its stream like any other; only the host goes on earlier.

1. A walk through the statements keeps the copies that may still be read. 2. A statement that may write or free their
memory (not `harmless`) gets a wait before it, where a line can be put: in a block of the text. So does the end of a
block with objects that go there, and that of the function. 3. Where no line can be put, the copies that are still being
read there are none of these. 4. Nor are those behind which nothing is launched before the wait.

What it refuses to do: tell one source from another. The host waits for all.
"""

from __future__ import annotations

from collections.abc import Collection

from kesco.ir import program as ir
from kesco.ir.transfers import Sends
from kesco.transfers.harmless import Harmless

Pending = frozenset[int]
_NOTHING: Pending = frozenset()


def sends(
    program: ir.Program,
    functions: Collection[ir.Function],
    copies: Collection[int],
    waits: Collection[int],
    later: Collection[int] = (),
    stops: Collection[int] = (),
    launching: Collection[int] = (),
) -> Sends | None:
    """What is read in the background, if anything; `copies` are operations to the device, `waits` those to the host.

    `later` are copies to the host that nobody waits for there; at the places `stops` the host waits for them, and then
    for these, too. `launching` are calls that give the device work.
    """
    harmless = Harmless(program, frozenset((*waits, *later)))
    operations: set[int] = set()
    before: set[int] = set()
    ends: set[int] = set()
    if b"thread_local" in program.text:  # such objects go before anything can wait where the process ends
        return None
    for function in functions:
        nodes = list(ir.walk(function.body))
        inside = {n.operation for n in nodes if isinstance(n, ir.Call)}
        chosen = inside.intersection(copies)
        if any(isinstance(n, ir.Obstacle) for n in nodes):
            continue
        while chosen:
            walk = Walk(program, chosen, harmless, frozenset(waits), frozenset(stops), launching)
            walk.function(function)
            keep = (chosen & walk.useful) - walk.dropped
            if keep == chosen:
                operations |= chosen
                before |= walk.before
                ends |= walk.ends
                break
            chosen = keep
    return Sends(frozenset(operations), frozenset(before), frozenset(ends)) if operations else None


class Walk:
    """One walk through a function, with all of `chosen` in the background until what is not harmless, or `waits`."""

    def __init__(
        self,
        program: ir.Program,
        chosen: Collection[int],
        harmless: Harmless,
        waits: frozenset[int] = frozenset(),
        stops: frozenset[int] = frozenset(),
        launching: Collection[int] = (),
    ) -> None:
        self.text, self.chosen, self.waits, self.stops = program.text, frozenset(chosen), waits, stops
        self.harmless, self.launching = harmless, frozenset(launching)
        self.useful: set[int] = set()
        self.dropped: set[int] = set()
        self.before: set[int] = set()
        self.ends: set[int] = set()

    def function(self, function: ir.Function) -> None:
        """Walk a function; at its end nothing is being read."""
        pending = self._block(function.body, _NOTHING)
        if pending:
            self._end(function.span.end - 1, pending)

    def _block(self, block: ir.Stmt, pending: Pending) -> Pending:
        """The body of a function, a branch or a loop; a single statement has no place for a line."""
        if not isinstance(block, ir.Block):
            return self._statement(block, pending, room=False)
        start, end = block.span.start, block.span.end
        room = self.text[start : start + 1] == b"{" and self.text[end - 1 : end] == b"}"
        for one in block.body:
            pending = self._statement(one, pending, room=room)
        if end - 1 in self.stops:
            pending = _NOTHING
        if pending and not block.declares and not all(self.harmless.fits(kind) for kind in _declared(block)):
            self._end(end - 1 if room else -1, pending)
            return _NOTHING
        return pending

    def _statement(self, one: ir.Stmt, pending: Pending, *, room: bool) -> Pending:
        if one.span.start in self.stops:
            pending = _NOTHING
        if self.harmless.statement(one):
            return self._through(one, pending)
        if pending and room:
            self.before.add(one.span.start)
        elif pending:
            self.dropped |= pending
        if isinstance(one, ir.Block) and not one.declares:
            return self._block(one, _NOTHING)
        if isinstance(one, ir.If):
            first = self._header((*one.before, one.condition))
            arms = [arm for arm in (one.then, one.other) if arm is not None and not self.harmless.ending(arm)]
            return self._leave_header(one.before, first.union(*(self._block(arm, first) for arm in arms)))
        if isinstance(one, ir.Loop):
            return self._loop(one)
        self.dropped |= self._copies(one)
        return _NOTHING

    def _loop(self, loop: ir.Loop) -> Pending:
        """A loop in which something is not harmless."""
        header = [e for e in (loop.condition, loop.step) if e is not None]
        first = self._header((*loop.before, *header))
        quiet = all(map(self.harmless.expression, header))
        after = self._block(loop.body, first)
        if after and not quiet:
            body = loop.body
            real = isinstance(body, ir.Block) and self.text[body.span.end - 1 : body.span.end] == b"}"
            self._end(body.span.end - 1 if real else -1, after)
            after = _NOTHING
        if not after <= first:
            after |= self._block(loop.body, first | after)
        return self._leave_header(loop.before, first | after)

    def _leave_header(self, declared: Collection[ir.Stmt], pending: Pending) -> Pending:
        """Behind a statement that declares variables in its header: there is no place before their end."""
        kinds = [n.variable.type for one in declared for n in ir.walk(one) if isinstance(n, ir.Declare)]
        if all(map(self.harmless.fits, kinds)):
            return pending
        self.dropped |= pending
        return _NOTHING

    def _header(self, parts: Collection[ir.Stmt | ir.Expr]) -> Pending:
        """Copies in a condition and the like: they may be in the background only if all in it is harmless."""
        copies = frozenset(n for part in parts for n in self._copies(part))
        quiet = all(
            self.harmless.statement(p) if isinstance(p, ir.Stmt) else self.harmless.expression(p) for p in parts
        )
        if not quiet:
            self.dropped |= copies
        return copies if quiet else _NOTHING

    def _through(self, one: ir.Stmt, pending: Pending) -> Pending:
        """Behind a harmless statement; a copy to the host in a branch or a loop may not be reached."""
        if isinstance(one, ir.Block):
            for inner in one.body:
                pending = self._through(inner, pending)
            return pending
        nodes = list(ir.walk(one))
        straight = isinstance(one, (ir.Evaluate, ir.Declare)) and not any(isinstance(n, ir.Branch) for n in nodes)
        called = {n.operation for n in nodes if isinstance(n, ir.Call)}
        if straight and called & self.waits:
            pending = _NOTHING
        pending |= self.chosen & called
        if any(isinstance(n, ir.Launch) for n in nodes) or called & self.launching:
            self.useful |= pending
        return pending

    def _copies(self, one: ir.Stmt | ir.Expr) -> Pending:
        return self.chosen.intersection(n.operation for n in ir.walk(one) if isinstance(n, ir.Call))

    def _end(self, brace: int, pending: Pending) -> None:
        """A wait at the end of a block, if there is a brace to put it before."""
        if brace >= 0 and self.text[brace : brace + 1] == b"}":
            self.ends.add(brace)
        else:
            self.dropped |= pending


def _declared(block: ir.Block) -> list[ir.Type]:
    """The types of what a block declares."""
    found = []
    for one in block.body:
        if isinstance(one, ir.Declare):
            found.append(one.variable.type)
        elif isinstance(one, ir.Block) and one.declares:
            found += _declared(one)
    return found
