"""Whether parts of an expression meet that compilers evaluate in different orders: `Orders`.

In: which parts control is in, and what the host reads, writes and gives the device there, as the interpreter comes to
it. Out: the expressions in which two parts met. Apart from the walk as most files have no such expression.

1. A *part* is an argument or an operand, of an expression whose order C++ leaves open. Control is in it by the place of
the instruction in the text, or of one of the calls that led there. 2. Two parts meet where one may change what the
other reads or changes. 3. They do not where nothing but numbers that are not known is put in place of numbers, and what
is read is one: in either order it is. They do not, either, where both call the same and nothing else, for a number that
is not known. 4. That is so only where neither gives the device work: then any memory of both counts, and so does the
host that looks at what the device reaches, or at how far it is. What a function does that is called there is done when
it comes back, or the call is moved, which only one that is alone in its statement is. 5. Where parts that give the
device no work meet in some objects, these can be made *loose*: whoever comes to them in that expression is told
nothing of what they hold, then and from then on. That is so in either order, and then nothing has met.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kesco.analysis.host.contents import Contents, may_overlap
from kesco.analysis.host.values import DISTANCE, STATUS_ATOM, Atom, Object, Offset, Unknown, Value, pointer, scalar
from kesco.analysis.host.world import may_be_same
from kesco.llvm.values import Instruction

if TYPE_CHECKING:
    from kesco.analysis.host.frames import Frame
    from kesco.analysis.host.memory import State

Site: TypeAlias = tuple[str, str, int, int]
_CAME_IN = ("entry", "outside", "global")  # of which two may be one where a path begins with what came in


class Part(NamedTuple):
    """An argument of an expression: numbers of both."""

    expression: int
    argument: int


class _Access(NamedTuple):
    """`vague`: nothing but a number that is not known was put in place of a number, or such a one was read.

    `known`: somebody outside may know the object, and where it is not known which one it is, it is one of those.
    `lost`: it is not known what it holds.
    """

    object: Object | None
    offset: Offset
    size: int
    writes: bool
    vague: bool
    known: bool
    lost: bool


@dataclass(slots=True)
class Orders:
    """Told by the interpreter; `parts_at` says which parts an instruction belongs to by its place, if any has some."""

    parts_at: Callable[[Instruction], frozenset[Part]] | None = None
    around: frozenset[Part] = frozenset()  # what the calls that led here belong to
    drawn: Mapping[Part, object] = field(default_factory=dict)  # what parts call that do no more, and tell of no number
    loose: Mapping[int, Collection[Site]] = field(default_factory=dict)  # by expression
    stored: Callable[[Frame | None, Object | None, Value], None] | None = None  # who asks what is put where
    _accesses: dict[Part, set[_Access]] = field(default_factory=dict)
    _works: set[Part] = field(default_factory=set)  # they give the device work
    _looks: set[Part] = field(default_factory=set)  # the host may see there how far that is
    _lost: set[int] = field(default_factory=set)  # expressions of which not all was followed
    _stopped: set[int] = field(default_factory=set)  # those that a call leaves which always throws
    _known: dict[int, frozenset[Part]] = field(default_factory=dict)  # by instruction

    def at(self, instruction: Instruction | None) -> frozenset[Part]:
        """The parts that an instruction is in by its own place."""
        if self.parts_at is None or instruction is None:
            return frozenset()
        if id(instruction) not in self._known:
            self._known[id(instruction)] = self.parts_at(instruction)
        return self._known[id(instruction)]

    def of(self, frame: Frame | None) -> frozenset[Part]:
        """The parts that control is in."""
        return self.around | self.at(frame.at) if frame is not None else self.around

    def access(
        self,
        frame: Frame | None,
        state: State,
        at: Object | None,
        where: tuple[Offset, int],
        value: Value,
        *,
        writes: bool,
    ) -> None:
        """The host reads this value there, or writes it; None: in any memory that has escaped."""
        if writes and self.stored is not None:
            self.stored(frame, at, value)
        parts = self.of(frame) if self.parts_at is not None else ()
        if not parts:
            return
        if writes:  # what is read is known by now: its reader has asked before
            self.loosen(frame, state, at)
        plain = list(map(_is_plain, scalar(value)))
        vague = all(plain) if writes else any(plain)
        if vague and writes:
            vague = at is not None and _is_of_numbers(state.look(at), *where)
        lost = at is None or state.look(at).volatile
        one = _Access(at, *where, writes, vague, at is None or at in state.escaped, lost)
        for part in parts:
            self._accesses.setdefault(part, set()).add(one)

    def loosen(self, frame: Frame | None, state: State, at: Object | None) -> None:
        """Somebody comes to an object: what a loose one holds is not known any more."""
        if not self.loose or at is None or state.look(at).volatile:
            return
        if any(site_of(at) in self.loose.get(part.expression, ()) for part in self.of(frame)):
            state.show(pointer(at))
            state.change(at).volatile = True

    def works(self, parts: Iterable[Part]) -> None:
        """The device is given work that may stay pending, or waited for."""
        self._works.update(parts)

    def looks(self, frame: Frame | None) -> None:
        """The host looks at the device, or at memory that the device reaches."""
        self._looks |= self.of(frame)

    def lose(self) -> None:
        """What is done where control is has been followed before, as a part of something else."""
        self._lost |= {part.expression for part in self.around}

    def stops(self, instruction: Instruction) -> None:
        """A call always throws: what else belongs to the expression is not come to, and may be elsewhere."""
        self._stopped |= {part.expression for part in self.at(instruction)}

    def touched(self, part: Part, other: Part, own: Collection[Object] = ()) -> bool:
        """Whether parts touch the same memory, and one writes it, or not all that is done in them was followed.

        Of objects in `own` each has one by itself.
        """
        if part.expression in self._lost or other.expression in self._lost:
            return True
        return any(
            _may_touch(a, b) if a.writes else _may_touch(b, a)
            for a in self._accesses.get(part, ())
            for b in self._accesses.get(other, ())
            if (a.writes or b.writes) and a.object not in own
        )

    def known_in(self, part: Part) -> set[Object]:
        """The objects that a part touches, as far as it is known which."""
        return {one.object for one in self._accesses.get(part, ()) if one.object is not None}

    def written_in(self, parts: Iterable[Part]) -> set[Object]:
        """The objects that parts write, as far as it is known which."""
        every = (one for part in parts for one in self._accesses.get(part, ()))
        return {one.object for one in every if one.writes and one.object is not None}

    def met(self) -> Collection[int]:
        """The expressions in which parts met."""
        return self._lost | self._stopped | {one.expression for one, _, _ in self._meetings()}

    def meeting(self) -> dict[int, set[Site]] | None:
        """By expression where the objects are from in which parts met; None where that is not all that they met in."""
        found: dict[int, set[Site]] = {}
        for one, other, where in self._meetings():
            if where is None or one in self._works or other in self._works:
                return None
            found.setdefault(one.expression, set()).update(map(site_of, where))
        return None if self._lost or self._stopped else found

    def _meetings(self) -> Iterator[tuple[Part, Part, set[Object] | None]]:
        """The parts that met, and in which objects; None where the device is in it."""
        every = {*self._accesses, *self._works, *self._looks}
        for one, other in permutations(every, 2):
            if one.expression == other.expression:
                works = one in self._works or other in self._works
                same = self.drawn.get(one)
                if not works and same is not None and same == self.drawn.get(other):
                    continue
                if one in self._works and (other in self._works or other in self._looks):
                    yield one, other, None
                    continue
                pairs = [
                    (a, b)
                    for a in self._accesses.get(one, ())
                    if a.writes
                    for b in self._accesses.get(other, ())
                    if _may_touch(a, b) and (works or not ((a.vague and b.vague) or (a.lost and b.lost)))
                ]
                if pairs:
                    yield one, other, {x.object for pair in pairs for x in pair if x.object is not None}


def site_of(one: Object) -> Site:
    """Where an object is made: the same whenever paths are walked."""
    return one.kind, one.name, one.place, one.context


def _is_plain(atom: Atom) -> bool:
    """Whether that is a number that is not known, and cannot lead to what is."""
    return type(atom) is Unknown and atom not in (DISTANCE, STATUS_ATOM)


def _is_of_numbers(contents: Contents, offset: Offset, size: int) -> bool:
    """Whether nothing is there but numbers, or what is not known anyway."""
    if contents.volatile:
        return True
    held = contents.held_at(offset, size)
    return held is not None and all(type(one) is int or _is_plain(one) for value in held for one in scalar(value))


def _may_touch(write: _Access, other: _Access) -> bool:
    """Whether both may be about the same bytes."""
    if write.object is None or other.object is None:
        return write.known and other.known
    if write.object is not other.object:
        return _may_be_one(write.object, other.object)
    return write.object.many or may_overlap(write.offset, write.size, other.offset, other.size)


def _may_be_one(one: Object, other: Object) -> bool:
    return one.kind in _CAME_IN and other.kind in _CAME_IN and may_be_same(one, other)
