"""What the statements of a loop's turns do to each other: ``turn_facts(program, ir_text, turns)``.

In: a program, the IR of its host side, and loops of whose turns something might be kept for the next one
(`kesco.ir.deferred`). Out: `TurnFacts` for each, in the same order. A module of its own because it is asked twice: of a
program, and of what was written of it, by the proof.

1. The host is followed (`analysis.host`), with each variable in memory. An instruction belongs to the statement at
whose place it stands, or to those of the calls that led there (`places`). Two statements *meet* if they touch the same
memory, and one writes it. 2. They meet, too, if both call what has a state that is not known, such as output, or one of
them throws or ends the process (`seeing`). 3. What a kernel may reach, what is kept must not touch if the statement
calls CUDA. 4. Where what is kept calls CUDA, it waits for the device: what passes it must not, nor touch what the
device may be at then, nor say anything. 5. A variable of the turn (`naming`), or one that the turn changes and the kept
part does not, is *held*: then in the kept part its name means a copy. That is so only for variables whose address
nobody keeps.

Where a call of CUDA fails, and the process ends by that, what the turn before has kept is not done.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kesco.analysis.deferring.naming import Named
from kesco.analysis.deferring.places import CLOSE, TAIL, Places
from kesco.analysis.deferring.seeing import Facts, Seen
from kesco.analysis.host import everywhere
from kesco.analysis.host.engine import Engine
from kesco.analysis.host.models import Models
from kesco.analysis.host.orders import Orders, Part
from kesco.analysis.host.record import refused_by
from kesco.analysis.host.values import Object
from kesco.analysis.host_regions.texts import Texts
from kesco.ir import program as ir
from kesco.ir.deferred import AROUND, Turn, TurnFacts
from kesco.llvm.canonical import canonical
from kesco.llvm.module import Module

_OWN_MEMORY = ("_Znwm", "_Znam", "_ZdlPv", "_ZdaPv")
_HIDDEN = re.compile(
    r"fe(?:setround|holdexcept|setenv|updateenv|testexcept|clearexcept|raiseexcept)$|signgam$|llvm\.x86\.sse\.\w*mxcsr"
    r"|llvm\.(?:[gs]et|reset)\.(?:rounding|fpenv|fpmode)|cu(?:da)?(?:LaunchHostFunc|StreamAddCallback|GraphAddHostNode)"
)
"""What changes what other code does, and is no memory; and what runs code of the host's beside it."""


def turn_facts(
    program: ir.Program, ir_text: str, turns: Sequence[Turn], *, prints: bool = False
) -> tuple[TurnFacts, ...]:
    """What was found of each loop; `prints`: a kernel does. `InputError` (K110) if LLVM cannot read the IR."""
    module = Module(canonical(ir_text, "host"))
    texts = Texts(program, module)
    engine = Engine(module, Models())
    engine.weak = program.weak
    places = Places(texts, turns, engine.graph)
    engine.orders = Orders(places.parts_at)
    timed, catches, shares, says = map(program.has, (ir.TIMES, ir.CATCH, ir.SHARED, ir.SAYS))
    names = set(module.names())
    seen = Seen(engine, places, Facts(timed, prints, catches, shares, says or "__errno_location" in names))
    engine.watcher, engine.orders.stored = seen, seen.stored
    refused = ""
    if any(map(module.has_body, _OWN_MEMORY)) or any(map(_HIDDEN.match, (*names, *module.variables()))):
        refused = "the program has a heap of its own, sets how numbers are rounded, or lets streams run its code"
    refused = refused or refused_by(lambda: everywhere(engine))
    if refused:
        return tuple(TurnFacts(why=refused) for _ in turns)
    found = [_Loop(seen, turns, n, Named.of(program, turn)) for n, turn in enumerate(turns)]
    return tuple(one.facts(found) for one in found)


@dataclass(frozen=True, slots=True)
class _Loop:
    """One loop, of which something might be kept."""

    seen: Seen
    turns: Sequence[Turn]
    number: int
    named: Named

    @property
    def turn(self) -> Turn:
        return self.turns[self.number]

    @property
    def kept(self) -> Part:
        return Part(self.number, self.turn.kept)

    @property
    def others(self) -> list[Part]:
        """All parts but the one that is kept."""
        return [Part(self.number, at) for at in range(CLOSE, self.turn.kept)]

    def facts(self, loops: Sequence[_Loop]) -> TurnFacts:
        """What is found of it; `loops` are all, with what else is kept of the same turns."""
        if why := self._why():
            return TurnFacts(why=why)
        seen, kept, held, orders = self.seen, self.kept, self._held(), self.seen.engine.orders
        if lost := [one for one in self.named.turn if one not in held]:
            return TurnFacts(why=f"'{self.named.variables[lost[0]].name}' is gone when the next turn has launched")
        own = self._objects(held)
        apart = {TAIL: own - orders.written_in((kept,)), CLOSE: own | self._inner()}
        meets = {
            part.argument
            for part in self.others
            if orders.touched(part, kept, apart.get(part.argument, own))
            or (part in seen.speaks and kept in seen.speaks)
            or part in seen.leaves_it
            or (part in seen.calls_cuda and (kept in seen.shares or kept in seen.calls_cuda))
            or (kept in seen.calls_cuda and seen.may_be_late(part))
        } | self.named.returned
        flies = kept in seen.calls_cuda and not own.isdisjoint(seen.flying)
        if flies or not orders.known_in(kept).isdisjoint(self._ending() - own) or self._disturbs(loops, own):
            meets.add(AROUND)
        meets = {max(one, AROUND) for one in meets}
        return TurnFacts(
            frozenset(meets),
            frozenset(part.argument for part in self.others if part in seen.works and part.argument >= 0),
            frozenset(part.argument for part in self.others if part in seen.waits and part.argument >= 0),
            tuple(held.values()),
        )

    def _why(self) -> str:
        """Why nothing can be kept, whatever the statements do to each other."""
        seen, kept = self.seen, self.kept
        if self.named.why or self.number in seen.places.why:
            return self.named.why or seen.places.why[self.number]
        if kept not in seen.places.covered:
            return "no code is made of what uses the results"
        if seen.clocks & {kept, *self.others}:
            return "a clock is read in the loop"
        return "what uses the results throws, or ends the process" if kept in seen.leaves_it else ""

    def _held(self) -> dict[str, str]:
        """What is written for each variable that is held, by its key."""
        orders, found = self.seen.engine.orders, dict[str, str]()
        inner = self._called(self.seen.places.variables[self.number].inner)
        for key, one in sorted(self.named.variables.items(), key=lambda pair: pair[1].span.start):
            mine = self._of(one)
            if not mine or not all(self.seen.is_alone(each, inner) for each in mine):
                continue
            if key in self.named.moved:
                found[key] = f"{one.name} = std::move({one.name})"
            elif key in self.named.copied:
                changes = orders.written_in(self.others) & mine and not orders.written_in((self.kept,)) & mine
                if key in self.named.turn or changes:
                    found[key] = self.named.copied[key]
        return found

    def _of(self, one: ir.Variable) -> set[Object]:
        """The objects that a variable is."""
        return self._called({self.seen.places.variables[self.number].known.get(one.span.start, "")})

    def _called(self, names: Iterable[str]) -> set[Object]:
        """The variables of these names in the IR."""
        function = self.seen.places.functions.get(self.number, "")
        return {each for name in names for each in self.seen.variables.get((function, name), ())}

    def _inner(self) -> set[Object]:
        """The variables of the kept part, and what is made in it that nobody else knows of."""
        found = self._called(self.seen.places.variables[self.number].inner) | self.seen.made[self.kept]
        while more := {one for one in found if one.kind == "heap" and not self.seen.is_alone(one, found)}:
            found -= more
        return found

    def _objects(self, held: dict[str, str]) -> frozenset[Object]:
        """The objects of what is held, and the memory of vectors among it that nobody else knows of."""
        inner = self._called(self.seen.places.variables[self.number].inner)
        found = {each for key in held for each in self._of(self.named.variables[key])}
        made = {
            each
            for key, at in self.named.moved.items()
            for each in self.seen.made[Part(self.number, at)]
            if key in held and self.seen.is_alone(each, inner | self._of(self.named.variables[key]))
        }
        return frozenset(found | made)

    def _ending(self) -> set[Object]:
        """The objects that are gone behind a turn, or behind the loop, and are not the kept part's."""
        one = self.seen.places.variables[self.number]
        return self._called(one.ending - one.inner)

    def _disturbs(self, loops: Sequence[_Loop], own: frozenset[Object]) -> bool:
        """Whether it touches what another part of the turn, kept by itself, holds as it is ahead of this, or moves."""
        turn, orders = self.turn, self.seen.engine.orders
        for other in loops:
            same = other.turn.whole == turn.whole and other.turn.kept == turn.last and other.turn.last == turn.beyond
            if turn.beyond <= turn.last or not same:
                continue
            held = other._held()
            taken = other._objects({key: text for key, text in held.items() if key in other.named.moved})
            moved = self._objects({key: text for key, text in self._held().items() if key in self.named.moved})
            if orders.written_in((self.kept,)) & other._objects(held) or orders.known_in(self.kept) & taken:
                return True
            if orders.known_in(other.kept) & moved:
                return True
        return False
