"""Which operation of a concurrent execution is which of the serial one, up to a renaming of memory.

In: two executions. Out: a `Pairing`, or in it what could not be paired, in words.

1. Launches, then copies and calls, are paired one by one, in the serial program's order: the same kernel or call, the
   same numbers, and memory that stands for the serial program's, in the same loops and on the same questions. A serial
   buffer is the same place everywhere, and two never share a byte. Where several would do, the one that names the
   least new is taken; where that leads nowhere, another one.
2. Then memsets: one may do what several do in the serial program, where their bytes are all of its own.
3. Memory that the host fills for the device stands for memory of the same name, or was made in the same order: what
   the host puts there is not compared, so two such buffers must not change places.
4. What is left over in the concurrent program may only write memory that stands for none of the serial program's.

Words that are empty are not known, and nothing is the same as that. Sizes of copies are compared where both are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kesco.ir.access import AccessMode, Buffer, BufferKind
from kesco.ir.execution import Argument, Execution, Step, StepKind

_PAIRED = (StepKind.LAUNCH, StepKind.COPY, StepKind.LIBRARY, StepKind.OPAQUE)
_ON_HOST = frozenset({BufferKind.HOST, BufferKind.PINNED})
_TRIES = 20_000
_LOST = "cannot be followed"
Place = tuple[str, int]  # a buffer of the concurrent program, and where in it


@dataclass(slots=True)
class Pairing:
    """`pairs` from serial to concurrent steps; several memsets may be one. `places`: where a serial buffer is.

    `lost`: that something has no counterpart may be because it cannot be followed what it is given.
    """

    pairs: dict[int, int] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    loops: dict[int, int] = field(default_factory=dict)
    problems: list[tuple[str, Step]] = field(default_factory=list)
    lost: bool = False


@dataclass(slots=True)
class _Bound:
    """What a pair would name: buffers with their places, and loops."""

    places: dict[str, Place] = field(default_factory=dict)
    loops: dict[int, int] = field(default_factory=dict)


def paired(serial: Execution, concurrent: Execution) -> Pairing:
    """The pairing of two executions."""
    return _Search(serial, concurrent).found()


class _Search:
    def __init__(self, serial: Execution, concurrent: Execution) -> None:
        self.serial, self.concurrent = serial, concurrent
        self.buffers, self.theirs = _buffers(serial), _buffers(concurrent)
        self.filled = _filled(serial)
        self.pairing = Pairing()
        self.used: set[int] = set()
        self.within: dict[str, list[str]] = {}  # of a concurrent buffer, the serial ones that are in it
        self.leaving = dict(serial.leaving), dict(concurrent.leaving)
        self.tries = 0
        self.furthest: tuple[int, str, Step] | None = None

    def found(self) -> Pairing:
        """Pair all that there is."""
        work = [one for kind in _PAIRED for one in self.serial.steps if one.kind is kind]
        if not self._all(work):
            assert self.furthest is not None
            self.pairing.problems.append((self.furthest[1], self.furthest[2]))
            return self.pairing
        self._memsets()
        self._left_over()
        return self.pairing

    def _all(self, work: list[Step]) -> bool:
        """Pair each of these, going back where that leads nowhere; a stack, since there may be many."""
        stack: list[tuple[Iterator[tuple[Step, _Bound]], Step | None, _Bound]] = []
        at = 0
        if not work:
            return True
        stack.append((iter(self._candidates(work[0])), None, _Bound()))
        while stack:
            candidates, taken, bound = stack.pop()
            if taken is not None:
                self._undo(work[len(stack)], taken, bound)
            following = next(candidates, None)
            self.tries += 1
            if following is None or self.tries > _TRIES:
                if self.tries > _TRIES:
                    return False
                continue
            step, new = following
            self._do(work[len(stack)], step, new)
            stack.append((candidates, step, new))
            at = len(stack)
            if at == len(work):
                return True
            stack.append((iter(self._candidates(work[at])), None, _Bound()))
        return False

    def _do(self, one: Step, other: Step, bound: _Bound) -> None:
        self.pairing.pairs[one.number] = other.number
        self.used.add(other.number)
        self.pairing.places |= bound.places
        self.pairing.loops |= bound.loops
        for key, (place, _) in bound.places.items():
            self.within.setdefault(place, []).append(key)

    def _undo(self, one: Step, other: Step, bound: _Bound) -> None:
        del self.pairing.pairs[one.number]
        self.used.discard(other.number)
        for key, (place, _) in bound.places.items():
            del self.pairing.places[key]
            self.within[place].remove(key)
        for loop in bound.loops:
            del self.pairing.loops[loop]

    def _candidates(self, one: Step) -> list[tuple[Step, _Bound]]:
        """What an operation may be in the concurrent program, the likeliest first."""
        found: list[tuple[int, int, int, Step, _Bound]] = []
        why, closest, lost = "", None, False
        for other in self.concurrent.steps:
            if other.kind is not one.kind or other.number in self.used or _plain(other.name) != _plain(one.name):
                continue
            bound = self._bound(one, other)
            if isinstance(bound, str):
                why, closest = why or bound, closest or other
                lost = lost or _LOST in bound
                continue
            unlike = sum(not _same_name(self.buffers[a], self.theirs[b]) for a, (b, _) in bound.places.items())
            found.append((len(bound.places) + len(bound.loops), unlike, other.number, other, bound))
        if not found and (self.furthest is None or len(self.pairing.pairs) > self.furthest[0]):
            what = f"'{one.name}' has no counterpart"
            at = f" (line {closest.span.line}: {why})" if closest is not None else ""
            self.furthest = len(self.pairing.pairs), what + at, one
            self.pairing.lost = lost
        found.sort(key=lambda each: each[:3])
        return [(step, bound) for _, _, _, step, bound in found]

    def _bound(self, one: Step, other: Step) -> _Bound | str:
        """What it takes for two steps to be the same; in words why they are not."""
        if any("asked at" in each for each in (*one.conditions, *other.conditions)):
            return f"the question on which it depends whether it happens {_LOST}"
        if one.conditions != other.conditions:
            return "it depends on other questions whether it happens"
        bound = _Bound()
        why = self._same_loops(one, other, bound)
        if why:
            return why
        if len(one.arguments) != len(other.arguments):
            return "it is given other things"
        for index, (a, b) in enumerate(zip(one.arguments, other.arguments, strict=True)):
            known = all(each.buffer is not None or each.words for each in (a, b))
            if a.buffer is None or b.buffer is None:
                size = one.kind is StepKind.COPY and index == len(one.arguments) - 1
                if a.buffer is b.buffer and (a.words == b.words != "" or (size and not known)):
                    continue
                return _differ(one, index) + ("" if known else f", or {_LOST}")
            if a.offset is None or b.offset is None:
                return f"where in '{b.buffer.name}' it is {_LOST}"
            if not self._same_place(a, b, bound):
                return f"'{b.buffer.name}' is not '{a.buffer.name}' of the serial program"
        return bound

    def _same_loops(self, one: Step, other: Step, bound: _Bound) -> str:
        if len(one.loops) != len(other.loops):
            return "it is in other loops"
        for a, b in zip(one.loops, other.loops, strict=True):
            known = self.pairing.loops.get(a, bound.loops.get(a))
            if known is not None:
                if known != b:
                    return "it is in another loop"
                continue
            if b in self.pairing.loops.values() or b in bound.loops.values():
                return "it is in another loop"
            left, right = self.leaving[0].get(a, ()), self.leaving[1].get(b, ())
            if any("asked at" in each for each in (*left, *right)):
                return f"its loop is left on a question that {_LOST}"
            if left != right:
                return "its loop is left on other questions"
            bound.loops[a] = b
        return ""

    def _same_place(self, a: Argument, b: Argument, bound: _Bound) -> bool:
        assert a.buffer is not None and b.buffer is not None
        if a.offset is None or b.offset is None:
            return False
        key, place = a.buffer.key, (b.buffer.key, b.offset - a.offset)
        known = self.pairing.places.get(key, bound.places.get(key))
        if known is not None:
            return known == place
        if not _alike(a.buffer, b.buffer):
            return False
        inside = list(self.within.get(place[0], []))
        inside += [k for k, (where, _) in bound.places.items() if where == place[0]]
        for other in inside:
            there = self.pairing.places.get(other, bound.places.get(other))
            assert there is not None
            if _meet(place[1], a.buffer.bytes, there[1], self.buffers[other].bytes):
                return False
        size = b.buffer.bytes
        if place[1] < 0 or (a.buffer.bytes is None and place[1] != 0):
            return False
        if size is not None and a.buffer.bytes is not None and place[1] + a.buffer.bytes > size:
            return False
        if key in self.filled and not self._keeps_places(a.buffer, b.buffer, bound):
            return False
        bound.places[key] = place
        return True

    def _keeps_places(self, a: Buffer, b: Buffer, bound: _Bound) -> bool:
        """Whether memory that the host fills does not change places with other such memory."""
        for key, (place, _) in (*self.pairing.places.items(), *bound.places.items()):
            if key not in self.filled:
                continue
            c, d = self.buffers[key], self.theirs[place]
            named = _same_name(a, b) and _same_name(c, d)
            apart = _holds_one(a, b) and _holds_one(c, d)
            if apart and not named and (_made(a) < _made(c)) != (_made(b) < _made(d)):
                return False
        return True

    # ---- memsets

    def _memsets(self) -> None:
        theirs = [one for one in self.concurrent.steps if one.kind is StepKind.MEMSET]
        filled: dict[int, list[tuple[int, int | None]]] = {}
        for one in (each for each in self.serial.steps if each.kind is StepKind.MEMSET):
            found = next((x for x in theirs if self._is_part(one, x, filled)), None)
            if found is None:
                self.pairing.problems.append((f"'{one.name}' has no counterpart", one))
            else:
                self.pairing.pairs[one.number] = found.number
        by = {one.number: one for one in theirs}
        for number, parts in filled.items():
            target = by[number].arguments[0]
            length = _number(by[number].arguments[1])
            whole = length is None and any(size is None for _, size in parts)
            known = sum(size for _, size in set(parts) if size is not None)
            if target.buffer is not None and not whole and (length is None or known != length):
                self.pairing.problems.append(("it sets more than the serial program does", by[number]))
            else:
                self.used.add(number)

    def _is_part(self, one: Step, other: Step, filled: dict[int, list[tuple[int, int | None]]]) -> bool:
        """Whether a memset of the serial program is one of the concurrent one, or a part of it."""
        bound = _Bound()
        a, b = one.arguments[0], other.arguments[0]
        if one.conditions != other.conditions or self._same_loops(one, other, bound):
            return False
        if any("asked at" in each for each in one.conditions) or a.buffer is None or b.buffer is None:
            return False
        if one.arguments[2:] != other.arguments[2:] or not all(x.words for x in one.arguments[2:]):
            return False
        place = self.pairing.places.get(a.buffer.key)
        if place is None:
            if not self._same_place(a, b, bound):
                return False
            place = bound.places[a.buffer.key]
            self.within.setdefault(place[0], []).append(a.buffer.key)
        if a.offset is None or b.offset is None or place[0] != b.buffer.key:
            return False
        begin = place[1] + a.offset - b.offset
        size, length = _number(one.arguments[1]), _number(other.arguments[1])
        if length is None or size is None:
            inside = begin == 0 and size is None and length is None
        else:
            inside = begin >= 0 and begin + size <= length
        if not inside or (begin, size) in filled.get(other.number, []):
            return False
        filled.setdefault(other.number, []).append((begin, size))
        self.pairing.places |= bound.places
        self.pairing.loops |= bound.loops
        return True

    # ---- what is left over

    def _left_over(self) -> None:
        taken = {place for place, _ in self.pairing.places.values()}
        for one in self.concurrent.steps:
            if one.number in self.used or not one.is_work or one.kind is StepKind.ALLOCATION:
                continue
            written = [a.buffer for a in one.accesses if AccessMode.WRITE in a.mode]
            if one.kind is StepKind.OPAQUE or any(b.key in taken or not _is_own(b) for b in written):
                self.pairing.problems.append((f"'{one.name}' is not in the serial program", one))


def _buffers(execution: Execution) -> dict[str, Buffer]:
    found = {a.buffer.key: a.buffer for one in execution.steps for a in one.accesses}
    given = (g.buffer for one in execution.steps for g in one.arguments)
    return found | {b.key: b for b in given if b is not None}


def _filled(execution: Execution) -> frozenset[str]:
    """The memory whose contents the host makes and the device reads."""
    found = set()
    for one in execution.steps:
        for access in one.accesses:
            if one.kind is StepKind.COPY and AccessMode.READ in access.mode and access.buffer.kind in _ON_HOST:
                found.add(access.buffer.key)
            managed = access.buffer.kind is BufferKind.MANAGED
            if one.kind is StepKind.HOST and AccessMode.WRITE in access.mode and managed:
                found.add(access.buffer.key)
    return frozenset(found)


def _made(buffer: Buffer) -> int:
    number = buffer.key.rpartition(":")[2]
    return int(number) if number.isdigit() else -1


def _same_name(a: Buffer, b: Buffer) -> bool:
    """Whether two buffers are called the same, but for what tells the host's side of memory."""
    return _bare(a.name) == _bare(b.name) != ""


def _holds_one(a: Buffer, b: Buffer) -> bool:
    """Whether a buffer is not a part of what stands for it: of parts, the launches say which is which."""
    return a.bytes is None or b.bytes is None or a.bytes == b.bytes


def _bare(name: str) -> str:
    return name.partition(" (line")[0].removeprefix("h_")


def _is_own(buffer: Buffer) -> bool:
    return buffer.kind in (BufferKind.DEVICE, BufferKind.MANAGED, BufferKind.PINNED, BufferKind.HOST)


def _alike(a: Buffer, b: Buffer) -> bool:
    """Whether one buffer may stand for another."""
    if a.kind in _ON_HOST:
        return b.kind in _ON_HOST
    if a.kind is BufferKind.SYMBOL:
        return b.kind is a.kind and a.key == b.key
    return a.kind is b.kind and a.kind in (BufferKind.DEVICE, BufferKind.MANAGED)


def _meet(a: int, size: int | None, b: int, length: int | None) -> bool:
    """Whether two ranges may have a byte in common; without a size they go on for ever."""
    return (size is None or b < a + size) and (length is None or a < b + length)


def _plain(name: str) -> str:
    return name.removesuffix("_ptsz").removesuffix("_ptds").removesuffix("Async")


def _number(one: Argument) -> int | None:
    return int(one.words) if one.words.lstrip("-").isdigit() else None


def _differ(one: Step, index: int) -> str:
    if one.kind is not StepKind.LAUNCH:
        return f"its argument {index} is another one"
    names = ("the kernel", "the grid", "the block", "the shared memory")
    return f"{names[index] if index < len(names) else f'argument {index - len(names) + 1}'} is another one"
