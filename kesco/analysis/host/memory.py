"""Memory of the host on one path of control: what each object holds, and who knows of it.

A `State` shares contents with those it was copied from until it changes them. What it does not describe any more, it
lets escape; so nothing that an unknown pointer may lead to is ever forgotten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import gcd

from kesco.analysis.host.contents import FEW, WIDEST, Contents, may_overlap
from kesco.analysis.host.values import (
    ANYWHERE,
    NOTHING,
    NUMBER,
    ZERO,
    Object,
    Offset,
    Pointer,
    Scalar,
    Unknown,
    Value,
    is_known,
    joined,
    nameless,
    objects,
    pointers,
    scalar,
    united,
    unknown,
)  # fmt: skip
from kesco.analysis.host.world import World, may_be_same

_CHANGED = ("library", "descriptor")  # what code that is given it may change, though the host cannot look at it
_WORD = 8
CHANGED = unknown("memory that code which is not followed may change")


class State:
    """Memory and values on one path. `escaped`: known outside; `device`: known to kernels; `copied`: to copies alone.

    `written` are the lazy objects that have been changed, `numbered` those in which only numbers have been: others may
    be the same. `gone` may have been freed: what is made later may be where they were. `failing`: a call of CUDA has
    failed. `unwinds`: an exception is on its way. `frontier` is for whoever watches: where control may have come from.
    """

    __slots__ = (
        "_blurred", "_own", "_settled", "_world", "copied", "device", "escaped", "failing", "frontier", "gone",
        "memory", "numbered", "unwinds", "values", "written",
    )  # fmt: skip

    def __init__(self, world: World) -> None:
        self._world = world
        self._own: set[Object] = set()
        self._settled: frozenset[Object] | None = None  # what had escaped when all of that was lost
        self._blurred: frozenset[Object] | None = None  # the same, when the numbers in it were
        self.memory: dict[Object, Contents] = {}
        self.values: dict[str, Value] = {}
        self.escaped: frozenset[Object] = frozenset()
        self.device: frozenset[Object] = frozenset()
        self.copied: frozenset[Object] = frozenset()
        self.frontier: frozenset[int] = frozenset()
        self.written: frozenset[Object] = frozenset()
        self.numbered: frozenset[Object] = frozenset()
        self.gone: frozenset[Object] = frozenset()
        self.failing = self.unwinds = False

    def copy(self) -> State:
        """A state of its own that begins as this one."""
        other = State(self._world)
        self._own.clear()
        other.memory, other.values = dict(self.memory), dict(self.values)
        other.escaped, other.device, other._settled = self.escaped, self.device, self._settled
        other.frontier, other.written, other.gone = self.frontier, self.written, self.gone
        other.copied, other.numbered, other._blurred = self.copied, self.numbered, self._blurred
        other.failing, other.unwinds = self.failing, self.unwinds
        return other

    def take(self, other: State) -> None:
        """Become another state, which is used up."""
        self._own, self.memory, self.values = other._own, other.memory, other.values
        self.escaped, self.device, self._settled = other.escaped, other.device, other._settled
        self.frontier, self.written, self.gone = other.frontier, other.written, other.gone
        self.copied, self.numbered, self._blurred = other.copied, other.numbered, other._blurred
        self.failing, self.unwinds = other.failing, other.unwinds

    def look(self, at: Object) -> Contents:
        """What an object holds, to read only."""
        found = self.memory.get(at)
        if found is None:
            found = self.memory[at] = self._world.fresh(at)
        return found

    def change(self, at: Object) -> Contents:
        """What an object holds, to be changed."""
        found = self.look(at)
        if at not in self._own:
            found = self.memory[at] = found.copy()
            self._own.add(at)
        else:
            found.change()
        return found

    def put(self, at: Object, contents: Contents) -> None:
        """Let an object hold this, which others may share."""
        self.memory[at] = contents
        self._own.discard(at)

    def forget(self, gone: Collection[Object]) -> None:
        """Objects are no more."""
        for one in gone:
            self.memory.pop(one, None)
            self._own.discard(one)
        if not self.escaped.isdisjoint(gone):
            settled = self._settled is self.escaped
            self.escaped = self.escaped.difference(gone)
            self._settled = self.escaped if settled else None
        if not self.device.isdisjoint(gone):
            self.device = self.device.difference(gone)
        if not self.copied.isdisjoint(gone):
            self.copied = self.copied.difference(gone)

    def make(self, new: Object, rest: Scalar = NOTHING) -> None:
        """Begin an object; one that stands for many keeps what the others hold."""
        if new.many and new in self.memory:
            contents = self.change(new)
            contents.rest, contents.freed = united(contents.rest | rest), False
        else:
            self.memory[new] = Contents(rest=rest)
            self._own.add(new)
            if new in self.escaped:  # it is made anew where it was: what is lost next is this one, too
                self._settled = self._blurred = None

    # ---- who knows what

    def escape(self, value: Value) -> None:
        """Let what a value points to be known outside."""
        if new := objects(value) - self.escaped:
            self._show(new)
            self.escaped |= new

    def show(self, value: Value) -> None:
        """Let all that can be found from a value be known outside: its bytes are there, whatever is here later."""
        new = self.reached(objects(value)) - self.escaped
        self._show(new)
        self.escaped |= new

    def know(self, other: State) -> bool:
        """Let what another state's outside knows be known, too; whether that is more."""
        more = not (other.escaped <= self.escaped and other.device <= self.device)
        worked = self.failing and not other.failing
        less = other.frontier <= self.frontier and other.written <= self.written and other.gone <= self.gone
        if other._blurred is not self._blurred:
            self._blurred = None
        if not (less and other.copied <= self.copied and other.numbered <= self.numbered) or worked:
            self.frontier, self.copied = self.frontier | other.frontier, self.copied | other.copied
            self.numbered, self.written = self.numbered | other.numbered, self.written | other.written
            self.gone |= other.gone
            self.failing = other.failing = self.failing and other.failing
            self.know(other)
            return True
        if more or other._settled is not other.escaped:
            self._settled = None
        if more:
            self.escaped |= other.escaped
            self.device |= other.device
        return more

    def reached(self, start: Iterable[Object]) -> set[Object]:
        """These objects, and those whose addresses they hold, without variables of functions that were left."""
        found, todo = set[Object](), list(start)
        while todo:
            one = todo.pop()
            if one not in found and (one.kind != "stack" or one in self.memory):
                found.add(one)
                if one.kind != "function":
                    todo += self.look(one).links()
        return found

    def lose(self, lost: Iterable[Object]) -> None:
        """Somebody who is not followed may change these from now on."""
        gone = set(lost)
        self._show(gone - self.escaped)
        self.escaped |= gone
        for one in gone:
            self.note(one, ANYWHERE, 1, ZERO, writes=True)
            if (one.visible or one.kind in _CHANGED) and not self.look(one).volatile:
                self.change(one).volatile = True

    def _show(self, new: Iterable[Object]) -> None:
        for one in new:
            if one.kind == "function":
                self._world.shown(one)

    def lose_escaped(self) -> None:
        """Somebody who is not followed may have changed whatever has escaped."""
        self.note(None, ANYWHERE, 1, ZERO, writes=True)
        if self._settled is not self.escaped:
            self.lose(self.reached(self.escaped))
            self._settled = self.escaped

    def blur_escaped(self) -> None:
        """A number was written nobody knows where: the numbers in whatever has escaped may have changed."""
        self.note(None, ANYWHERE, 1, ZERO, writes=True)
        if self._blurred is not self.escaped and self._settled is not self.escaped:
            for one in self.reached(self.escaped):
                if one.visible and not self.look(one).volatile:
                    self.change(one).blurred = True
            self._blurred = self.escaped

    def is_reached(self, one: Object) -> bool:
        """Whether the device may be at an object while the host is."""
        return one.shared or one in self.device or one in self.copied

    def touch(self, one: Object | None, at: Offset = ANYWHERE, size: int | None = None, *, writes: bool) -> None:
        """The host reads or writes an object there, or nobody knows which."""
        self._world.touched(self, one, (at, size), writes=writes)

    def note(self, at: Object | None, offset: Offset, size: int | None, value: Value, *, writes: bool) -> None:
        """This value is read or written there: what matters where compilers evaluate in different orders."""
        if at is None or at.kind != "function":
            where = (offset, size) if size is not None else (ANYWHERE, 1)
            self._world.accessed(self, at, where, value, writes=writes)

    # ---- reading

    def come_to(self, one: Object) -> None:
        """An object is about to be read."""
        self._world.comes_to(self, one)

    def load(self, address: Value, size: int, *, pointer: bool = False) -> Scalar:
        """What is read at an address; as a `pointer`, which no number that is stored changes."""
        address = scalar(address)
        if len(address) == 1 and type(atom := next(iter(address))) is Pointer:
            return self._noted(atom, size, pointer)
        result: Value = NOTHING
        for one in address:
            if type(one) is Pointer:
                result = joined(result, self._noted(one, size, pointer))
            elif type(one) is Unknown:
                self.touch(None, writes=False)
                self.note(None, ANYWHERE, 1, NOTHING, writes=False)
                result = joined(result, frozenset((one,)))
        return scalar(result)

    def _noted(self, place: Pointer, size: int, pointer: bool) -> Scalar:
        self.come_to(place.object)
        value = self._load(place.object, place.offset, size, pointer)
        self.note(place.object, place.offset, size, value, writes=False)
        return value

    def _load(self, at: Object, offset: Offset, size: int, pointer: bool) -> Scalar:
        if at.kind == "function":
            return NUMBER
        if self.is_reached(at):
            self.touch(at, offset, size, writes=False)
        contents = self.look(at)
        if contents.volatile:
            return CHANGED
        found = self._held(at, contents, offset, size, pointer)
        if contents.blurred and not pointer:
            return frozenset(a for a in scalar(nameless(found)) if type(a) is not int) | NUMBER
        return found

    def _held(self, at: Object, contents: Contents, offset: Offset, size: int, pointer: bool) -> Scalar:
        """What is read of an object whose contents are known."""
        if contents.lazy:
            return self._load_lazily(at, contents, offset, size, pointer)
        stride, rest = offset
        if not stride:
            cell = contents.cells.get(rest)
            result = scalar(cell[1]) if cell is not None and cell[0] == size else self._pieces(contents, rest, size)
        else:
            result = contents.rest
            for o, (s, value) in contents.cells.items():
                if may_overlap(offset, size, (0, o), s):
                    exact = s == size and (o - rest) % stride == 0
                    result = united(result | (scalar(value) if exact else self.part(value)))
        for (s, r, length), value in contents.weak.items():
            if may_overlap(offset, size, (s, r), length):
                step = gcd(stride, s)
                same = length == size and ((rest - r) % step == 0 if step else rest == r)
                result = united(result | (scalar(value) if same else self.part(value)))
        return result

    def _load_lazily(self, at: Object, contents: Contents, offset: Offset, size: int, pointer: bool) -> Scalar:
        """What is read of an object that was there when the path began."""
        stride, rest = offset
        weak = any(may_overlap(offset, size, (s, r), length) for s, r, length in contents.weak)
        same, numbered = (
            at.kind != "kesco" and any(may_be_same(at, one) for one in some) for some in (self.written, self.numbered)
        )
        if stride or weak or same or (numbered and not pointer):
            return CHANGED
        cell = contents.cells.get(rest)
        if cell is not None and cell[0] == size:
            return scalar(cell[1])
        if contents.overlapping(rest, size):
            return CHANGED
        first = self._world.held_at_first(at, rest, size)
        self.change(at).cells[rest] = (size, first)
        self.escape(first)
        return first

    def at_first(self, address: Value) -> Scalar:
        """What was there when the path began, and has a name that nobody has asked for."""
        for at, (stride, offset) in pointers(address) if len(scalar(address)) == 1 else ():
            if not stride and self.look(at).lazy and offset not in self.look(at).cells:
                return self._world.held_at_first(at, offset, _WORD)
        return NOTHING

    def rest_of(self, at: Object, contents: Contents, rest: int, size: int) -> Scalar:
        """What an object holds where no cell is."""
        return self._world.held_at_first(at, rest, size) if contents.lazy else contents.rest

    def _pieces(self, contents: Contents, at: int, size: int) -> Scalar:
        """What is read where no cell is just that."""
        parts = sorted(contents.overlapping(at, size))
        if not parts:
            return contents.rest
        whole = contents.assembled(parts, at, size)
        if whole is not None:
            return frozenset((whole,))
        result = contents.rest if contents.rest <= ZERO else NUMBER
        for o in parts:
            result = united(result | self.part(contents.cells[o][1]))
        return result

    def part(self, value: Value) -> Scalar:
        """What may be read of some bytes of a value; the addresses in it are then known to nobody."""
        self.escape(value)
        return scalar(value) if scalar(value) <= ZERO else NUMBER

    # ---- writing

    def store(self, address: Value, value: Value, size: int, *, weak: bool = False, plain: bool = False) -> bool:
        """Write at an address; whether it is known where that is. What is `plain` changes no pointer."""
        targets = pointers(address)
        known = is_known(address)
        if not known:
            self.touch(None, writes=True)
            self.escape(value)
            if plain:
                self.blur_escaped()
            else:
                self.lose_escaped()
        for target, offset in targets:
            if target.kind == "function":
                continue
            self.note(target, offset, size, value, writes=True)
            if self.is_reached(target):
                self.touch(target, offset, size, writes=True)
            contents = self.look(target)
            if contents.volatile or contents.blurred:  # what is reached from there is lost with it the next time
                self.escape(value)
            if contents.volatile:
                continue
            contents = self.change(target)
            if contents.lazy and plain:
                self.numbered |= {target}
            elif contents.lazy:
                self.written |= {target}
            certain = len(targets) == 1 and known and not offset[0] and not target.many and not weak
            if certain:
                contents.cut(offset[1], size, self.part)
            if certain and size <= WIDEST:
                contents.cells[offset[1]] = (size, value)
            else:
                contents.add(offset, size, nameless(value))
        return known

    def fill(self, address: Value, size: int | None, value: Scalar) -> None:
        """Write one value all over a range, whose size may not be known."""
        known = is_known(address)
        if not known:
            self.touch(None, writes=True)
            self.lose_escaped()
        targets = pointers(address)
        for target, (stride, rest) in targets:
            self.note(target, (stride, rest), size, value, writes=True)
            if self.is_reached(target):
                self.touch(target, (stride, rest), size, writes=True)
            if target.kind == "function" or self.look(target).volatile:
                continue
            contents = self.change(target)
            if contents.lazy:
                self.written |= {target}
            if len(targets) == 1 and known and not stride and not target.many and size is not None:
                if not contents.lazy and rest <= 0 and 0 <= target.size <= rest + size:
                    contents.cells, contents.weak, contents.rest = {}, {}, value
                    continue
                contents.cut(rest, size, self.part)
                if size <= FEW:
                    for at in range(rest, rest + size, 8):
                        contents.cells[at] = (min(8, rest + size - at), value)
                    continue
                contents.add((0, rest), size, value)
            else:
                contents.add((1, 0), 1, value)
