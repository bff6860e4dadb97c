"""How containers grow in loops, learned by looking at what one trip does: ``for (…) v.push_back(p);``.

In: the states at the beginning and at the end of a trip. Out: which sizes grow by the same amount in each trip, for
the next walk of the program. Apart from `turns`, which finds the variables that count by their one assignment: who
changes a size is a call, perhaps in a function that is called.

1. A size that a trip has changed by a constant is taken to grow so in each trip, and the program is walked again.
2. Each trip of that walk must change it so; where one does not, it is never taken to be one that grows again.
3. The head of the loop changes none: it calls nothing but what asks for sizes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from kesco.analysis.memory import SIZE, Path, Place, Store, Value
from kesco.ir import program as ir
from kesco.ir.poly import Symbol, Turn, constant, of

_ASKS = ("std::vector::size", "std::vector::empty")
_MOST = 1 << 60
_Key = tuple[int, str, Path]


@dataclass(slots=True)
class Learned:
    """What one walk of a program finds out for the next.

    `filing`: calls that allocate for a variable what an array holds later. `growing`: by how much sizes grow in a trip,
    by loop, object and path; 0 where they do not. `shares`: the device may use memory of the host's while that goes on.
    """

    filing: set[int] = field(default_factory=set)
    growing: dict[_Key, int] = field(default_factory=dict)
    shares: bool = False

    def copy(self) -> Learned:
        """What is known so far."""
        return Learned(set(self.filing), dict(self.growing), self.shares)

    def counters(
        self, loop: ir.Loop, name: str, around: tuple[str, ...], store: Store
    ) -> Iterator[tuple[Place, Value]]:
        """The sizes that count the trips of a loop of this number, which marks call by this name."""
        for one, entries in store.objects.items():
            for path in entries:
                by = self.growing.get((loop.number, one.key, path), 0) if path and path[-1] == SIZE else 0
                if by:
                    place = Place(one, path)
                    start = store.read(place).integer
                    low = 0 if start is None else max(0, start.bounds()[0])
                    turn = Turn(name, constant(by), around)
                    yield place, Value(formula=of(Symbol(f"{one.key}{path}@{name}", low, _MOST, turn=turn)))

    def look(self, loop: ir.Loop, before: Store, after: Store, counted: Collection[Place]) -> None:
        """Compare the sizes before and after a trip, in which these were taken to grow."""
        seen = {Place(one, path) for one, entries in after.objects.items() for path in entries if SIZE in path[-1:]}
        for place in seen | {one for one in counted if SIZE in one.path[-1:]}:
            key = (loop.number, place.object.key, place.path)
            then, now = before.read(place).integer, after.read(place).integer
            grown = None if then is None or now is None else (now - then).constant
            if place in counted and grown != self.growing[key]:
                self.growing[key] = 0
            elif grown is not None and grown > 0 and _is_calm(loop):
                self.growing.setdefault(key, grown)


def _is_calm(loop: ir.Loop) -> bool:
    """Whether the head of a loop changes no container."""
    heads = [one for one in (loop.condition, loop.step) if one is not None]
    nodes = [n for one in heads for n in ir.walk(one)]
    calls = [n for n in nodes if isinstance(n, ir.Call)]
    return all(n.standard and n.name in _ASKS for n in calls) and not any(isinstance(n, ir.Unknown) for n in nodes)
