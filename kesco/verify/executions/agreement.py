"""A concurrent execution beside a serial one: whether it does the same, in an order that keeps the results.

In: two executions, and what tells which bytes a launch touches. Out: `Agreement`.

1. The serial one's own work must be ordered: it is the reference. 2. The operations are paired (`pairing`). 3. In the
concurrent one each pair that conflicts must be ordered as it is issued (`alone`), and issued in the serial program's
order: the one before the other in a trip of the loops around both, as there. 4. What the host reads and writes of
memory that both have must lie between the same operations. 5. Memory must not be freed before what uses it is issued.

The same words are taken to be the same number and question. What the host computes, and what is in its memory before
the first copy, is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kesco.ir.access import AccessMode, BufferKind
from kesco.ir.execution import Execution, Step, StepKind
from kesco.ir.touched import Asked
from kesco.verify.executions.alone import Finding, judged
from kesco.verify.executions.conflicts import Conflicts
from kesco.verify.executions.order import Order
from kesco.verify.executions.pairing import Pairing, paired

_Between = tuple[str, tuple[int, ...], frozenset[int], frozenset[int]]


@dataclass(frozen=True, slots=True)
class Reversed:
    """Two steps of the concurrent execution that the serial one has in the other order."""

    first: Step
    second: Step
    buffer: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """What speaks against the pair; `work`: how many operations were paired; `lost`: that of `Pairing`."""

    unordered: tuple[Finding, ...] = ()
    reversed: tuple[Reversed, ...] = ()
    unpaired: tuple[tuple[str, Step], ...] = ()
    pairs: int = 0
    work: int = 0
    lost: bool = False

    @property
    def holds(self) -> bool:
        """Whether it is proven."""
        return not (self.unordered or self.reversed or self.unpaired)


@dataclass(slots=True)
class _Side:
    """One execution with what was found in it; `names` are the numbers that both have for what is paired."""

    execution: Execution
    order: Order
    conflicts: Conflicts
    names: dict[int, int]
    loops: dict[int, int]  # to the concurrent execution's

    def within(self, one: Step, other: Step) -> tuple[int, ...]:
        """The loops around both, outermost first."""
        found = []
        for a, b in zip(one.loops, other.loops, strict=False):
            if a != b:
                break
            found.append(a)
        return tuple(found)

    def before(self, one: Step, other: Step) -> bool:
        """Whether one comes before the other in a trip of the loops around both."""
        return self.order.reaches(one.number, other.number, self.within(one, other))


def agreement(serial: Execution, concurrent: Execution, asked: tuple[Asked | None, Asked | None]) -> Agreement:
    """Whether two executions do the same."""
    alone, order, conflicts = judged(serial, asked[0])
    if alone.findings:
        what = "the serial program itself does not order all that it does"
        return Agreement((), (), ((what, alone.findings[0].second),))
    pairing = paired(serial, concurrent)
    if pairing.problems:
        return Agreement((), (), tuple(pairing.problems), lost=pairing.lost)
    other, their_order, their_conflicts = judged(concurrent, asked[1])
    one = _Side(serial, order, conflicts, dict(pairing.pairs), pairing.loops)
    same = {loop: loop for loop in pairing.loops.values()}
    two = _Side(concurrent, their_order, their_conflicts, {n: n for n in pairing.pairs.values()}, same)
    pairs, turned = _turned(one, two, pairing)
    problems = (*_of_host(one, two, pairing), *_freed(one, two, pairing), *_left(one, two, pairing))
    return Agreement(other.findings, tuple(turned), problems, pairs, len(set(pairing.pairs.values())))


def _turned(one: _Side, two: _Side, pairing: Pairing) -> tuple[int, list[Reversed]]:
    """Conflicting operations that are issued in another order, and how many conflict."""
    steps, theirs = one.execution.steps, two.execution.steps
    count, found = 0, []
    matched = sorted(pairing.pairs)
    for at, a in enumerate(matched):
        for b in matched[at + 1 :]:
            x, y = pairing.pairs[a], pairing.pairs[b]
            if x == y:
                continue
            conflict = one.conflicts.of(steps[a], steps[b]) or one.conflicts.of(steps[b], steps[a])
            conflict = conflict or two.conflicts.of(theirs[x], theirs[y]) or two.conflicts.of(theirs[y], theirs[x])
            if conflict is None:
                continue
            count += 1
            here = one.before(steps[a], steps[b]), one.before(steps[b], steps[a])
            there = two.before(theirs[x], theirs[y]), two.before(theirs[y], theirs[x])
            if here != there:
                pair = (x, y) if here[0] else (y, x)
                found.append(Reversed(theirs[pair[0]], theirs[pair[1]], conflict.buffer.name))
    return count, found


# ---- the host


def _of_host(one: _Side, two: _Side, pairing: Pairing) -> Iterator[tuple[str, Step]]:
    """Reads and writes of the host that lie elsewhere."""
    buffers = {place: key for key, (place, _) in pairing.places.items()}
    several = {place for place in buffers if sum(where == place for where, _ in pairing.places.values()) > 1}
    ours = _between(one, {key: key for key in pairing.places})
    theirs = _between(two, {place: key for place, key in buffers.items() if place not in several})
    for mode, what in ((AccessMode.READ, "reads"), (AccessMode.WRITE, "writes")):
        mine = {where for where, (modes, _) in ours.items() if mode in modes}
        for where, (modes, step) in theirs.items():
            if mode in modes and where not in mine:
                yield f"the host {what} memory here between other operations than in the serial program", step
        if mode is AccessMode.WRITE:
            found = {where for where, (modes, _) in theirs.items() if mode in modes}
            for where, (modes, step) in ours.items():
                if mode in modes and where not in found:
                    yield "the host writes memory here, and not in the concurrent program", step


def _between(side: _Side, buffers: dict[str, str]) -> dict[_Between, tuple[AccessMode, Step]]:
    """Where the host reads and writes each buffer: the operations that come before, and those that come behind."""
    found: dict[_Between, tuple[AccessMode, Step]] = {}
    work = [step for step in side.execution.steps if step.number in side.names]
    for step in side.execution.steps:
        if step.kind is not StepKind.HOST:
            continue
        loops = [loop for loop in step.loops if loop in side.loops]
        for access in step.accesses:
            key = buffers.get(access.buffer.key)
            if key is None:
                continue
            for mode in (AccessMode.READ, AccessMode.WRITE):
                if mode not in access.mode:
                    continue
                touching = [w for w in work if any(_conflict(access.buffer.key, mode, w))]
                before = frozenset(side.names[w.number] for w in touching if side.before(w, step))
                behind = frozenset(side.names[w.number] for w in touching if side.before(step, w))
                if not before and not behind:
                    continue
                where = (key, tuple(side.loops[loop] for loop in loops), before, behind)
                old = found.get(where)
                found[where] = (mode | old[0] if old is not None else mode, step)
    return found


def _conflict(key: str, mode: AccessMode, work: Step) -> Iterator[bool]:
    for access in work.accesses:
        if access.buffer.key == key:
            yield AccessMode.WRITE in mode or AccessMode.WRITE in access.mode


# ---- ends


def _left(one: _Side, two: _Side, pairing: Pairing) -> Iterator[tuple[str, Step]]:
    """Operations that lie elsewhere than in the serial program beside a question by which a loop is left."""
    for a, b in pairing.pairs.items():
        work = two.execution.steps[b]
        if _questions(one, one.execution.steps[a]) != _questions(two, work):
            yield f"'{work.name}' and a question by which a loop is left are in another order", work


def _questions(side: _Side, work: Step) -> set[tuple[str, tuple[int, ...], bool, bool]]:
    """The questions that lie before or behind an operation, in the loops that hold operations."""
    found = set()
    for step in side.execution.steps:
        if step.kind is StepKind.QUESTION:
            loops = tuple(side.loops[loop] for loop in step.loops if loop in side.loops)
            if len(loops) == len(step.loops):
                found.add((step.name, loops, side.before(step, work), side.before(work, step)))
    return found


def _freed(one: _Side, two: _Side, pairing: Pairing) -> Iterator[tuple[str, Step]]:
    """Memory that is freed before an operation that uses it, unlike in the serial program."""
    back = {place: key for key, (place, _) in pairing.places.items()}
    counterparts: dict[int, list[int]] = {}
    for a, b in pairing.pairs.items():
        counterparts.setdefault(b, []).append(a)
    for free in (step for step in two.execution.steps if step.kind is StepKind.FREE):
        for key in {a.buffer.key for a in free.accesses if a.buffer.kind is not BufferKind.UNKNOWN}:
            if key not in back:
                continue
            for number, names in counterparts.items():
                work = two.execution.steps[number]
                if not any(a.buffer.key == key for a in work.accesses) or not two.before(free, work):
                    continue
                ours = [s for s in one.execution.steps if s.kind is StepKind.FREE and _touches(s, back[key])]
                for name in names:
                    if not any(one.before(s, one.execution.steps[name]) for s in ours):
                        yield f"'{work.name}' may come behind the end of its memory", work


def _touches(step: Step, key: str) -> bool:
    return any(access.buffer.key == key for access in step.accesses)
